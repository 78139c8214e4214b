"""The output and the options of `cosim doctor`."""

from __future__ import annotations

import re
import sys
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import orjson
import pytest

from cosim.apps.doctor import assess, latency
from cosim.apps.doctor.assessment import Assessment
from cosim.apps.doctor.report import conclusion, facts, format_time, histogram, to_json
from cosim.core.errors import InputError, RunError
from cosim.execution.timing.privileges import Privilege
from tests.doctor.doctor_helpers import CPUS, HIGH, LOW, OUTLIERS, Instruments


def test_the_facts_of_a_good_machine(machine, said):
    said(facts(assess(machine(), 1.0, None, Instruments())))


def test_the_facts_of_a_machine_with_unknown_properties(tmp_path, monkeypatch, said):
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    found = assess(tmp_path, 1.0, None, Instruments(privileges=(Privilege("priority", False, "request it"),)))
    virtual = replace(found.host, virtual=True, isolated=(0, 1, 3), realtime_fraction=0.95)
    said(facts(replace(found, host=virtual, steal_fraction=0.012)))


def test_nothing_to_change_and_the_note_on_boot_options(machine, said):
    root = machine()
    for late in (LOW, HIGH):
        said(conclusion(assess(root, 1.0, None, Instruments(late=late)))[1:])


def test_the_histogram_has_a_bar_for_every_count():
    methods = {"a": np.array([-5, 999, *[1000] * 800]), "b": np.array([1999, 5_000, 2_000_000_000])}
    rows = dict(histogram(methods))
    assert list(rows)[:3] == ["under 1 µs", "1–2 µs", "2–5 µs"]
    assert list(rows)[-3:] == ["200–500 ms", "500 ms – 1 s", "over 1 s"]
    assert rows["under 1 µs"] == ["▏            2", ""]
    assert rows["1–2 µs"] == ["████████████ 800", "████████████ 1"]
    assert rows["5–10 µs"][1] == rows["over 1 s"][1] == "████████████ 1"
    assert rows["2–5 µs"] == ["", ""]


def test_bars_are_proportional_to_the_counts():
    late = np.repeat([1000, 2000, 5000, 10_000], [24, 12, 5, 2])
    assert [row[0] for _, row in histogram({"a": late})] == [
        "████████████ 24",
        "██████       12",
        "██▌          5",
        "█            2",
    ]


def test_times_have_an_si_prefix():
    times = {0.0: "0 ns", 2e-8: "20 ns", 9.996e-7: "1 µs", 1.25e-3: "1.25 ms", 1.5: "1.5 s"}
    assert {t: format_time(t) for t in times} == times


def test_json_has_all_figures(machine):
    found = orjson.loads(orjson.dumps(to_json(assess(machine(), 1.0, 2, Instruments(late=OUTLIERS)))))
    assert found["machine"]["governors"] == dict.fromkeys("0123", "performance")
    assert (found["clock_read_s"], found["steal_fraction"], found["cpu"], found["period_s"]) == (2e-8, 0.0, 2, 1e-3)
    assert found["privileges"][0] == {"name": "locked memory", "granted": True, "fix": ""}
    statistics = found["latency"]["with privileges"]
    assert {name: statistics[name] for name in ("count", "median_s", "max_s")} == {
        "count": 1000, "median_s": 2e-5, "max_s": 3e-3,
    }  # fmt: skip
    bins = dict(zip(found["bin_edges_s"], statistics["histogram"], strict=True))
    assert {start: n for start, n in bins.items() if n} == {2e-5: 999, 2e-3: 1}
    assert found["result"] == {"method": "with privileges", "suitable": "almost", "rate_Hz": 50.0}
    assert len(found["recommendations"]) == 1


def test_options_reach_the_instruments(machine):
    instruments = Instruments()
    progress = [].append
    found = assess(machine(), 2.5, 1, instruments, progress)
    assert instruments.requested == (2.5, 1, progress)
    assert isinstance(found, Assessment)
    assert found.cpu == 1


@pytest.mark.parametrize(("online", "has"), [("0-1,3\n", "3 CPUs, 0-1,3"), ("0\n", "1 CPU, 0")])
def test_a_cpu_that_does_not_exist(machine, online, has):
    instruments = Instruments()
    for cpu in (2, -1):
        with pytest.raises(InputError, match=f"^--cpu: there is no CPU {cpu}; this machine has {re.escape(has)}$"):
            assess(machine(**{f"{CPUS}/online": online}), 1.0, cpu, instruments)
    assert instruments.requested is None


def test_other_systems_are_refused(machine, monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(RunError, match=r"^cosim doctor needs Linux, the only system with real-time loops$"):
        assess(machine(), 1.0, None, Instruments())


@pytest.mark.parametrize("duration", ["soon", "5 V", "11 min", "0"])
def test_wrong_durations(command, duration, said):
    said(command.refuses("doctor", "--duration", duration))


def test_other_wrong_options(command):
    assert command.refuses("doctor", "--json", "none/f.json")[0].startswith("--json: none/f.json: there is no folder")
    assert command.refuses("doctor", "--cpu", "100000")[0].startswith("--cpu: there is no CPU 100000; this machine has")


linux = pytest.mark.skipif(sys.platform != "linux", reason="real-time loops need Linux")


class SteadyClock:
    """Always 7 ns late, and does not wait."""

    def __init__(self):
        self.counts = []

    def now(self):
        return 10**18

    def latencies(self, first, period, count):
        assert first > self.now() or count == 1
        assert period == 1_000_000
        self.counts.append(count)
        return np.full(count, 7)


@linux
def test_long_measurements_report_their_progress(monkeypatch):
    clock, reported = SteadyClock(), []
    monkeypatch.setattr(latency, "native_clock", lambda: clock)
    wakeups = latency.HostInstruments().wakeups(2.0, None, reported.append)
    assert clock.counts == [1, 500, 100, 1, 500, 500, 200]
    assert [len(wakeups.latency[method]) for method in ("compiled loop", "with privileges")] == [600, 1200]
    assert reported[:5] == [pytest.approx(part / 2000) for part in (500, 600, 1100, 1600, 1800)]
    assert reported == sorted(reported)
    assert reported[-1] == 1.0


@linux
def test_an_interrupted_measurement_leaves_no_thread(monkeypatch):
    def interrupt(fraction):
        raise KeyboardInterrupt

    monkeypatch.setattr(latency, "native_clock", SteadyClock)
    threads = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        latency.HostInstruments().wakeups(2.0, None, interrupt)
    assert threading.active_count() == threads


@linux
def test_the_command_prints_facts_histogram_and_result(command):
    out = command.prints("doctor", "--duration", "50 ms", "--cpu", "0", "--json", "f.json")
    lines = out.splitlines()
    assert [line.split()[0] for line in lines[:6]] == ["kernel", "machine", "CPUs", "power", "clock", "privileges"]
    assert lines[7] == "wake-up latency at 1000 Hz, each method beside a busy Python thread"
    assert re.split("  +", lines[8].strip()) == ["latency", "compiled loop", "with privileges", "Python sleep"]
    (median,) = (k for k, line in enumerate(lines) if line.strip().startswith("median "))
    assert [line.split()[0] for line in lines[median : median + 3]] == ["median", "p99", "max"]
    assert sum(line.startswith("result ") for line in lines) == 1
    assert any(line.startswith("change ") for line in lines)
    assert lines[-1] == "wrote      f.json"
    found = orjson.loads(Path("f.json").read_bytes())
    counts = {method: late["count"] for method, late in found["latency"].items()}
    assert (counts["compiled loop"], counts["with privileges"]) == (15, 30)
    assert 1 <= counts["Python sleep"] <= 5
    assert [sum(late["histogram"]) for late in found["latency"].values()] == list(counts.values())
    assert found["clock_read_s"] > 0.0


@linux
def test_json_to_stdout_is_the_only_output(command, monkeypatch):
    monkeypatch.setattr(latency, "native_clock", SteadyClock)
    out = command.prints("doctor", "--duration", "0.05", "--json", "-")
    assert orjson.loads(out)["cpu"] is None
