"""The doctor: what it reads from made-up machines, every recommendation, the result, and what it prints."""

from __future__ import annotations

import gzip
import re
import sys
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import orjson
import pytest

from cosim.doctor import assess, latency
from cosim.doctor.assessment import Assessment, latency_statistics, max_rate
from cosim.doctor.latency import WakeupLatencies
from cosim.doctor.machine import IdleState, read_machine, steal_time
from cosim.doctor.report import conclusion, facts, format_time, histogram, to_json
from cosim.errors import InputError, RunError
from cosim.timing.privileges import Privilege

CPUS, CLOCK = "sys/devices/system/cpu", "sys/devices/system/clocksource/clocksource0"
# a machine with nothing to change
GOOD = {
    "proc/sys/kernel/osrelease": "6.12.1-rt\n",
    "proc/sys/kernel/version": "#1 SMP PREEMPT_RT Mon\n",
    "proc/sys/kernel/sched_rt_runtime_us": "-1\n",
    "proc/sys/kernel/sched_rt_period_us": "1000000\n",
    "proc/cpuinfo": "processor\t: 0\nflags\t\t: fpu tsc\n\nprocessor\t: 1\nflags\t\t: fpu tsc\n",
    "proc/cmdline": "quiet\n",
    "proc/loadavg": "0.10 0.20 0.30 1/86 774\n",
    "proc/stat": "cpu  10 20 30 40 50 60 70 80 5 5\ncpu0 1 1 1 1 1 1 1 1 0 0\n",
    f"{CPUS}/online": "0-3\n",
    f"{CPUS}/isolated": "\n",
    f"{CLOCK}/current_clocksource": "tsc\n",
    f"{CLOCK}/available_clocksource": "tsc hpet acpi_pm\n",
    **{f"{CPUS}/cpu{k}/cpufreq/scaling_governor": "performance\n" for k in range(4)},
    **{f"{CPUS}/cpu0/cpuidle/state{k}/name": f"C{k}\n" for k in (0, 2, 10)},
    **{f"{CPUS}/cpu0/cpuidle/state{k}/latency": f"{10 * k}\n" for k in (0, 2, 10)},
    **{f"{CPUS}/cpu0/cpuidle/state{k}/disable": f"{k == 2:d}\n" for k in (0, 2, 10)},
}
PRIVILEGES = (Privilege("locked memory", True, ""), Privilege("fixed priority", True, ""))
US = 1000
# latencies, ns: low, with outliers, often high
LOW, OUTLIERS, HIGH = [20 * US] * 1000, [20 * US] * 999 + [3000 * US], [20 * US] * 900 + [400 * US] * 100


class Instruments:
    """Known measurements of a machine; the host takes time while it is measured."""

    def __init__(self, late=LOW, cost=2e-8, privileges=PRIVILEGES, stat=None):
        self.late, self.cost, self.privileges, self.stat, self.requested = late, cost, privileges, stat, None

    def clock_cost(self):
        return self.cost

    def wakeups(self, seconds, cpu, progress):
        self.requested = seconds, cpu, progress
        if self.stat is not None:
            path, text = self.stat
            path.write_text(text)
        methods = {"compiled loop": [70 * US, 90 * US], "with privileges": self.late, "Python sleep": [5000 * US]}
        return WakeupLatencies(
            {method: np.array(late, dtype=np.int64) for method, late in methods.items()}, self.privileges
        )


@pytest.fixture
def machine(tmp_path):
    """Writes the files of `GOOD` with others in their places, None for one that there is not; the root."""

    def write(**others):
        root = tmp_path / "root"
        for name, text in {**GOOD, **others}.items():
            if text is not None:
                path = root / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return root

    return write


# --- what is read -----------------------------------------------------------------------------------


def test_a_machine_is_read_from_its_files(machine):
    found = read_machine(machine(**{f"{CPUS}/online": "0-1,3\n", f"{CPUS}/isolated": "1,3\n"}))
    assert (found.kernel, found.preemption, found.dynamic_preemption, found.virtual) == (
        "6.12.1-rt",
        "realtime",
        False,
        False,
    )
    assert (found.clock_source, found.clock_sources) == ("tsc", ("tsc", "hpet", "acpi_pm"))
    assert (found.cpus, found.isolated) == ((0, 1, 3), (1, 3))
    assert found.governors == {0: "performance", 1: "performance", 3: "performance"}
    assert found.idle_states == (
        IdleState("C0", 0.0, True),
        IdleState("C2", 20e-6, False),
        IdleState("C10", 1e-4, True),
    )
    assert (found.realtime_fraction, found.load_average) == (None, 0.1)


def test_unknown_properties_are_none_or_empty(tmp_path, monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    found = read_machine(tmp_path)
    assert (found.kernel, found.preemption, found.clock_source, found.clock_sources) == ("", None, None, ())
    assert (found.cpus, found.isolated, found.governors, found.idle_states) == ((0, 1), (), {}, ())
    assert (found.dynamic_preemption, found.virtual, found.realtime_fraction, found.load_average) == (
        False,
        False,
        None,
        None,
    )
    assert steal_time(tmp_path) == (0, 0)


DEBUG, CONFIG = "sys/kernel/debug/sched/preempt", "proc/config.gz"
DYNAMIC = {"proc/sys/kernel/version": "#1 SMP PREEMPT_DYNAMIC Mon\n"}


@pytest.mark.parametrize(
    ("files", "preemption"),
    [
        ({"proc/sys/kernel/version": "#1 SMP Mon\n"}, None),
        ({"proc/sys/kernel/version": "#1 SMP Mon\n", "sys/kernel/realtime": "1\n"}, "realtime"),
        ({**DYNAMIC, "sys/kernel/realtime": "0\n"}, None),
        ({**DYNAMIC, "proc/cmdline": "quiet preempt=lazy\n", DEBUG: "none voluntary (full) lazy\n"}, "full"),
        ({**DYNAMIC, "proc/cmdline": "quiet preempt=lazy\n"}, "lazy"),
        ({**DYNAMIC, "proc/cmdline": "nopreempt=full\n"}, None),
        ({**DYNAMIC, CONFIG: gzip.compress(b"CONFIG_PREEMPT_DYNAMIC=y\nCONFIG_PREEMPT_NONE=y\n")}, "none"),
        ({**DYNAMIC, CONFIG: gzip.compress(b"# CONFIG_PREEMPT_NONE is not set\nCONFIG_PREEMPT=y\n")}, "full"),
        ({**DYNAMIC, "boot/config-6.12.1-rt": "CONFIG_PREEMPT_VOLUNTARY=y\n"}, "voluntary"),
        ({**DYNAMIC, "boot/config-6.12.2-rt": "CONFIG_PREEMPT_VOLUNTARY=y\n"}, None),
    ],
)
def test_preemption_is_read_from_the_most_reliable_source(machine, files, preemption):
    assert read_machine(machine(**files)).preemption == preemption


@pytest.mark.parametrize(
    "files",
    [
        {"proc/cpuinfo": "flags : fpu hypervisor tsc\n"},
        {"sys/hypervisor/type": "xen\n"},
        {"proc/cpuinfo": "Features : fp\n", "proc/device-tree/hypervisor/compatible": "linux,kvm\0"},
    ],
)
def test_virtual_machines_are_detected(machine, files):
    assert read_machine(machine(**files)).virtual


# --- recommendations --------------------------------------------------------------------------------


def recommendations(machine, files=None, cpu=None, **measured):
    return assess(machine(**(files or {})), 1.0, cpu, Instruments(**measured)).recommendations


def test_a_good_machine_gets_no_recommendation(machine):
    assert recommendations(machine) == []


GUEST = {"proc/cpuinfo": "flags : hypervisor\n"}
HOST = ": run on bare metal, or pin its CPUs to host CPUs (virsh vcpupin)"
ISOLATE = "no CPU is isolated: boot with isolcpus={0} nohz_full={0} rcu_nocbs={0}, then set schedule.realtime.cpu: {0}"
KERNEL = (
    "install a kernel with PREEMPT_RT (Debian: sudo apt install linux-image-rt-$(dpkg --print-architecture); Ubuntu:"
    " sudo pro enable realtime-kernel)"
)
FULL = "echo full | sudo tee /sys/kernel/debug/sched/preempt, or boot with preempt=full; if that is not enough, "
SAVES = {f"{CPUS}/cpu1/cpufreq/scaling_governor": "schedutil\n", f"{CPUS}/cpu3/cpufreq/scaling_governor": "powersave\n"}
HPET = {f"{CLOCK}/current_clocksource": "hpet\n"}


@pytest.mark.parametrize(
    ("files", "measured", "change"),
    [
        (
            {"proc/loadavg": "2.90 1 1 1/1 1\n"},
            {},
            "other programs use 2.9 of 4 CPUs: stop them; find them with top",
        ),
        (
            SAVES,
            {},
            "the CPU frequency follows the load (powersave, schedutil): echo performance | sudo tee"
            " /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor",
        ),
        (
            HPET,
            {"cost": 1.3e-6},
            "the clock source hpet is slow, 1300 ns per reading: echo tsc | sudo tee"
            " /sys/devices/system/clocksource/clocksource0/current_clocksource",
        ),
        (
            {**HPET, f"{CLOCK}/available_clocksource": "hpet acpi_pm\n"},
            {"cost": 1.3e-6},
            "the clock source hpet is slow, 1300 ns per reading: boot with clocksource=tsc tsc=reliable",
        ),
        (
            {f"{CPUS}/isolated": "2-3\n"},
            {},
            "CPU 3 is isolated but not used: set schedule.realtime.cpu: 3; measure with cosim doctor --cpu 3",
        ),
        (
            {f"{CPUS}/isolated": "2-3\n"},
            {"cpu": 1},
            "CPU 3 is isolated but not used: set schedule.realtime.cpu: 3; measure with cosim doctor --cpu 3",
        ),
        (
            {f"{CPUS}/isolated": "2\n", **GUEST},
            {"cpu": 2, "late": OUTLIERS},
            f"a virtual machine waits for its host{HOST}",
        ),
        ({}, {"late": OUTLIERS}, ISOLATE.format(3)),
        ({}, {"late": HIGH, "cpu": 1}, ISOLATE.format(1)),
        ({}, {"late": HIGH, "cpu": 0}, ISOLATE.format(3)),
        (
            {"proc/sys/kernel/sched_rt_runtime_us": "450000\n", "proc/sys/kernel/sched_rt_period_us": "500000\n"},
            {},
            "real-time threads are throttled above 90 % of the time, which matters only to loops that use more:"
            " sudo sysctl -w kernel.sched_rt_runtime_us=-1",
        ),
        (
            {"proc/sys/kernel/version": "#1 PREEMPT\n", DEBUG: "(full)\n", f"{CPUS}/online": "0\n"},
            {"late": OUTLIERS},
            f"the kernel is not fully preemptible (preemption: full): {KERNEL}",
        ),
        (
            {**DYNAMIC, DEBUG: "(full)\n", f"{CPUS}/online": "0\n"},
            {"late": OUTLIERS},
            f"the kernel is not fully preemptible (preemption: full): {KERNEL}",
        ),
        (
            {**DYNAMIC, f"{CPUS}/online": "0\n"},
            {"late": OUTLIERS},
            f"the kernel is not fully preemptible (preemption: unknown): {FULL}{KERNEL}",
        ),
        (
            {},
            {"privileges": (Privilege("priority", False, "request it"), Privilege("memory", True, ""))},
            "no priority: request it",
        ),
    ],
)
def test_each_recommendation_alone(machine, files, measured, change):
    assert recommendations(machine, files, **measured) == [change]


@pytest.mark.parametrize(
    ("files", "measured"),
    [
        ({"proc/loadavg": "2.80 9 9 1/1 1\n"}, {}),
        (HPET, {"cost": 9e-8}),
        ({}, {"cost": 1e-6}),  # tsc: there is nothing faster
        ({f"{CPUS}/isolated": "2-3\n"}, {"cpu": 2}),
        (GUEST, {}),
        (DYNAMIC, {}),
        ({f"{CPUS}/online": "0\n"}, {"late": HIGH}),
    ],
)
def test_what_does_not_matter_is_not_recommended(machine, files, measured):
    assert recommendations(machine, files, **measured) == []


def test_steal_time_is_reported_even_with_low_latencies(machine):
    root = machine(**GUEST)
    for stolen, text in ((90, f"a virtual machine waits for its host (5 % steal time){HOST}"), (80, None)):
        (root / "proc/stat").write_text(GOOD["proc/stat"])
        after = f"cpu  10 20 30 {230 - (stolen - 80)} 50 60 70 {stolen} 99 99\n"
        found = assess(root, 1.0, None, Instruments(stat=(root / "proc/stat", after)))
        assert found.steal_fraction == pytest.approx((stolen - 80) / 190)
        assert found.recommendations == ([text.replace("5 %", "5.3 %")] if text else [])


def test_the_most_useful_recommendation_comes_first(machine):
    files = {
        **GUEST,
        **DYNAMIC,
        **SAVES,
        **HPET,
        "proc/loadavg": "9 9 9 1/1 1\n",
        "proc/sys/kernel/sched_rt_runtime_us": "950000\n",
    }
    privileges = (Privilege("memory", False, "a"), Privilege("priority", False, "b"))
    starts = (
        "no priority",
        "no memory",
        "other programs",
        "the CPU frequency",
        "the clock source",
        "a virtual",
        "the kernel",
    )
    found = recommendations(machine, files, late=HIGH, cost=1e-6, privileges=privileges)
    assert [text.startswith(start) for text, start in zip(found, starts, strict=False)] == [True] * 7
    rest = "the time, which matters only to loops that use more"
    assert [text.split(":")[0] for text in found[7:]] == [
        "no CPU is isolated",
        f"real-time threads are throttled above 95 % of {rest}",
    ]


# --- the result -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("late", "rate"),
    [(250e-6, 1000), (251e-6, 500), (125e-6, 2000), (4e-3, 50), (13e-6, 10_000), (1e-6, 20_000), (0, 20_000), (2, 0.1)],
)
def test_the_rate_leaves_time_for_work_and_is_a_round_number(late, rate):
    assert max_rate(late) == pytest.approx(rate)


@pytest.mark.parametrize(
    ("late", "result"),
    [
        (
            LOW,
            "suitable for 1 kHz: latency p99 20 µs, max 20 µs of 1,000 wake-ups with privileges; real time up to"
            " 10 kHz",
        ),
        (
            [250 * US] * 2,
            "suitable for 1 kHz: latency p99 250 µs, max 250 µs of 2 wake-ups with privileges; real time up to 1 kHz",
        ),
        (
            OUTLIERS,
            "1 kHz with occasional late ticks: latency p99 20 µs, max 3 ms of 1,000 wake-ups with privileges; real time"
            " up to 50 Hz, 99 of 100 ticks up to 10 kHz",
        ),
        (
            HIGH,
            "not suitable for 1 kHz: latency p99 400 µs, max 400 µs of 1,000 wake-ups with privileges; real time"
            " up to 500 Hz",
        ),
    ],
)
def test_the_result(machine, late, result):
    found = assess(machine(), 1.0, None, Instruments(late=late))
    assert conclusion(found)[0] == f"result     {result}"


def test_latency_statistics_are_in_seconds():
    found = latency_statistics(np.arange(101) * 1000)
    assert (found.count, found.median, found.p99, found.max) == (101, *map(pytest.approx, (50e-6, 99e-6, 100e-6)))


# --- what is shown ----------------------------------------------------------------------------------


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


# --- options ----------------------------------------------------------------------------------------


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
