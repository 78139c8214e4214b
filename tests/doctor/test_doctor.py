"""The doctor: what it reads from made-up machines, every recommendation, the result, and what it prints."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from cosim.apps.doctor import assess
from cosim.apps.doctor.assessment import latency_statistics, max_rate
from cosim.apps.doctor.host import IdleState, read_host, steal_time
from cosim.apps.doctor.report import conclusion
from cosim.execution.timing.privileges import Privilege
from tests.doctor.doctor_helpers import CLOCK, CPUS, GOOD, HIGH, LOW, OUTLIERS, US, Instruments, recommendations


def test_a_machine_is_read_from_its_files(machine):
    found = read_host(machine(**{f"{CPUS}/online": "0-1,3\n", f"{CPUS}/isolated": "1,3\n"}))
    assert (found.kernel, found.preemption) == ("6.12.1-rt", "realtime")
    assert not found.dynamic_preemption and not found.virtual
    assert (found.clock_source, found.clock_sources) == ("tsc", ("tsc", "hpet", "acpi_pm"))
    assert (found.cpus, found.isolated) == ((0, 1, 3), (1, 3))
    assert found.governors == {0: "performance", 1: "performance", 3: "performance"}
    states = ("C0", 0.0, True), ("C2", 20e-6, False), ("C10", 1e-4, True)
    assert found.idle_states == tuple(IdleState(*state) for state in states)
    assert (found.realtime_fraction, found.load_average) == (None, 0.1)


def test_unknown_properties_are_none_or_empty(tmp_path, monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    found = read_host(tmp_path)
    assert (found.kernel, found.preemption, found.clock_source, found.clock_sources) == ("", None, None, ())
    assert (found.cpus, found.isolated, found.governors, found.idle_states) == ((0, 1), (), {}, ())
    assert not found.dynamic_preemption and not found.virtual
    assert found.realtime_fraction is found.load_average is None
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
    assert read_host(machine(**files)).preemption == preemption


@pytest.mark.parametrize(
    "files",
    [
        {"proc/cpuinfo": "flags : fpu hypervisor tsc\n"},
        {"sys/hypervisor/type": "xen\n"},
        {"proc/cpuinfo": "Features : fp\n", "proc/device-tree/hypervisor/compatible": "linux,kvm\0"},
    ],
)
def test_virtual_machines_are_detected(machine, files):
    assert read_host(machine(**files)).virtual


def test_a_good_machine_gets_no_recommendation(machine):
    assert recommendations(machine) == []


GUEST, HPET = {"proc/cpuinfo": "flags : hypervisor\n"}, {f"{CLOCK}/current_clocksource": "hpet\n"}
SAVES = {f"{CPUS}/cpu1/cpufreq/scaling_governor": "schedutil\n", f"{CPUS}/cpu3/cpufreq/scaling_governor": "powersave\n"}
THROTTLED = {"proc/sys/kernel/sched_rt_runtime_us": "450000\n", "proc/sys/kernel/sched_rt_period_us": "500000\n"}
ONE_CPU = {f"{CPUS}/online": "0\n"}
ALONE = {
    "load": ({"proc/loadavg": "2.90 1 1 1/1 1\n"}, {}),
    "governors": (SAVES, {}),
    "clock source": (HPET, {"cost": 1.3e-6}),
    "no other clock source": ({**HPET, f"{CLOCK}/available_clocksource": "hpet acpi_pm\n"}, {"cost": 1.3e-6}),
    "isolated": ({f"{CPUS}/isolated": "2-3\n"}, {}),
    "isolated, another chosen": ({f"{CPUS}/isolated": "2-3\n"}, {"cpu": 1}),
    "host": ({f"{CPUS}/isolated": "2\n", **GUEST}, {"cpu": 2, "late": OUTLIERS}),
    "outliers": ({}, {"late": OUTLIERS}),
    "late": ({}, {"late": HIGH, "cpu": 1}),
    "late on the first": ({}, {"late": HIGH, "cpu": 0}),
    "throttled": (THROTTLED, {}),
    "kernel": ({"proc/sys/kernel/version": "#1 PREEMPT\n", DEBUG: "(full)\n", **ONE_CPU}, {"late": OUTLIERS}),
    "dynamic kernel": ({**DYNAMIC, DEBUG: "(full)\n", **ONE_CPU}, {"late": OUTLIERS}),
    "unknown kernel": ({**DYNAMIC, **ONE_CPU}, {"late": OUTLIERS}),
    "privileges": ({}, {"privileges": (Privilege("priority", False, "request it"), Privilege("memory", True, ""))}),
}


@pytest.mark.parametrize("what", ALONE)
def test_each_recommendation_alone(machine, what, said):
    files, measured = ALONE[what]
    (change,) = recommendations(machine, files, **measured)
    said(change)


@pytest.mark.parametrize(
    ("files", "measured"),
    [
        ({"proc/loadavg": "2.80 9 9 1/1 1\n"}, {}),
        (HPET, {"cost": 9e-8}),
        ({}, {"cost": 1e-6}),  # tsc: there is nothing faster
        ({f"{CPUS}/isolated": "2-3\n"}, {"cpu": 2}),
        (GUEST, {}),
        (DYNAMIC, {}),
        (ONE_CPU, {"late": HIGH}),
    ],
)
def test_what_does_not_matter_is_not_recommended(machine, files, measured):
    assert recommendations(machine, files, **measured) == []


def test_steal_time_is_reported_even_with_low_latencies(machine, said):
    root = machine(**GUEST)
    for stolen, count in ((90, 1), (80, 0)):
        (root / "proc/stat").write_text(GOOD["proc/stat"])
        after = f"cpu  10 20 30 {230 - (stolen - 80)} 50 60 70 {stolen} 99 99\n"
        found = assess(root, 1.0, None, Instruments(stat=(root / "proc/stat", after)))
        assert found.steal_fraction == pytest.approx((stolen - 80) / 190)
        assert len(found.recommendations) == count
        said(found.recommendations)


def test_the_most_useful_recommendation_comes_first(machine, said):
    files = {**GUEST, **DYNAMIC, **SAVES, **HPET, "proc/loadavg": "9 9 9 1/1 1\n"}
    files |= {"proc/sys/kernel/sched_rt_runtime_us": "950000\n"}
    privileges = (Privilege("memory", False, "a"), Privilege("priority", False, "b"))
    said(recommendations(machine, files, late=HIGH, cost=1e-6, privileges=privileges))


@pytest.mark.parametrize(
    ("late", "rate"),
    [(250e-6, 1000), (251e-6, 500), (125e-6, 2000), (4e-3, 50), (13e-6, 10_000), (1e-6, 20_000), (0, 20_000), (2, 0.1)],
)
def test_the_rate_leaves_time_for_work_and_is_a_round_number(late, rate):
    assert max_rate(late) == pytest.approx(rate)


RESULTS = {"low": LOW, "at the bound": [250 * US] * 2, "outliers": OUTLIERS, "high": HIGH}


@pytest.mark.parametrize("late", RESULTS)
def test_the_result(machine, late, said):
    said(conclusion(assess(machine(), 1.0, None, Instruments(late=RESULTS[late])))[0])


def test_latency_statistics_are_in_seconds():
    found = latency_statistics(np.arange(101) * 1000)
    assert (found.count, found.median, found.p99, found.max) == (101, *map(pytest.approx, (50e-6, 99e-6, 100e-6)))
