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

from cosim.doctor import assess, latency
from cosim.doctor.assessment import Assessment
from cosim.doctor.report import conclusion, facts, format_time, histogram, to_json
from cosim.errors import InputError, RunError
from cosim.timing.privileges import Privilege
from tests.doctor.doctor_helpers import CPUS, HIGH, ISOLATE, OUTLIERS, Instruments


def test_the_facts_of_a_good_machine(machine):
    assert facts(assess(machine(), 1.0, None, Instruments())) == [
        "kernel     6.12.1-rt, preemption: realtime",
        "machine    not virtual",
        "CPUs       4, isolated: none; load average 0.1",
        "power      governor: performance; idle states: C0 (0 ns), C10 (100 µs)",
        "clock      tsc, 20 ns per reading",
        "privileges locked memory, fixed priority; real-time threads not throttled",
    ]


def test_the_facts_of_a_machine_with_unknown_properties(tmp_path, monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    refused = (Privilege("priority", False, "request it"),)
    found = assess(tmp_path, 1.0, None, Instruments(privileges=refused))
    virtual = replace(
        found,
        machine=replace(found.machine, virtual=True, isolated=(0, 1, 3), realtime_fraction=0.95),
        steal_fraction=0.012,
    )
    assert facts(virtual) == [
        "kernel     unknown, preemption: unknown",
        "machine    virtual, 1.2 % steal time",
        "CPUs       1, isolated: 0-1,3",
        "power      governor: unknown; idle states: unknown",
        "clock      unknown, 20 ns per reading",
        "privileges none; real-time threads throttled above 95 % of the time",
    ]


def test_nothing_to_change_and_the_note_on_boot_options(machine):
    root = machine()
    assert conclusion(assess(root, 1.0, None, Instruments()))[1:] == ["change     nothing"]
    assert conclusion(assess(root, 1.0, None, Instruments(late=HIGH)))[1:] == [
        f"change     {ISOLATE.format(3)}",
        "note       add boot options to GRUB_CMDLINE_LINUX in /etc/default/grub, then run sudo update-grub and reboot",
    ]


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
    assert [format_time(t) for t in (0.0, 2e-8, 9.996e-7, 1.25e-3, 1.5)] == [
        "0 ns",
        "20 ns",
        "1 µs",
        "1.25 ms",
        "1.5 s",
    ]


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
    assert found["recommendations"] == [ISOLATE.format(2)]


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


def test_wrong_options(command):
    for options, message in {
        ("--duration", "soon"): "--duration: expected a number, got 'soon'",
        ("--duration", "5 V"): "--duration: unit 'V' does not fit here; use s, ms, us, min, h",
        ("--duration", "11 min"): "--duration: expected 50 ms to 10 min, got '11 min'",
        ("--duration", "0"): "--duration: expected 50 ms to 10 min, got '0'",
        ("--json", "none/f.json"): "--json: none/f.json: there is no folder 'none'; create it or choose another",
    }.items():
        assert command.refuses("doctor", *options) == [message]
    (line,) = command.refuses("doctor", "--cpu", "100000")
    assert line.startswith("--cpu: there is no CPU 100000; this machine has ")


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
    code, out, err = command("doctor", "--duration", "50 ms", "--cpu", "0", "--json", "f.json")
    assert (code, err) == (0, [])
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
    assert 0.0 < found["clock_read_s"] < 1e-3


@linux
def test_json_to_stdout_is_the_only_output(command):
    code, out, err = command("doctor", "--duration", "0.05", "--json", "-")
    assert (code, err) == (0, [])
    assert orjson.loads(out)["cpu"] is None
