"""The doctor: what it reads from made-up machines, every recommendation, the result, and what it prints."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from cosim.doctor import assess
from cosim.doctor.assessment import latency_statistics, max_rate
from cosim.doctor.machine import IdleState, read_machine, steal_time
from cosim.doctor.report import conclusion
from cosim.timing.privileges import Privilege
from tests.doctor.doctor_helpers import (
    CLOCK,
    CPUS,
    GOOD,
    HIGH,
    ISOLATE,
    LOW,
    OUTLIERS,
    US,
    Instruments,
    recommendations,
)

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


def test_a_good_machine_gets_no_recommendation(machine):
    assert recommendations(machine) == []


GUEST = {"proc/cpuinfo": "flags : hypervisor\n"}


HOST = ": run on bare metal, or pin its CPUs to host CPUs (virsh vcpupin)"


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
