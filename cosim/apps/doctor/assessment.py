"""The assessment of a machine from its properties and measurements: suitable rates, and what to change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from cosim.apps.doctor.host import HostFacts
from cosim.apps.doctor.latency import PERIOD_NS, PRIVILEGED, WakeupLatencies
from cosim.core.units import show_percent

# the period of a loop must be so many times its wake-up latency: the rest is for its work
PERIOD_PER_LATENCY = 4
# Hz, the highest rate of a rig
MAX_RATE = 20_000.0
# clock sources that are read without a system call; others are slow unless a reading costs at most …
FAST_CLOCKS = ("tsc", "arch_sys_counter")
CHEAP_NS = 100.0
# runnable threads per CPU, and fraction of steal time, that disturb loops
BUSY, STEAL_FRACTION = 0.7, 0.001

CPU_FILES = "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"
CLOCK_FILE = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
PREEMPT_FILE = "/sys/kernel/debug/sched/preempt"
DEBIAN_KERNEL = "sudo apt install linux-image-rt-$(dpkg --print-architecture)"

Suitability = Literal["yes", "almost", "no"]


@dataclass(frozen=True)
class LatencyStatistics:
    """Of wake-up latencies [s]."""

    count: int
    median: float
    p99: float
    max: float


def latency_statistics(latency: np.ndarray) -> LatencyStatistics:
    """latency: (n,) ns, n > 0"""
    median, p99 = np.quantile(latency, [0.5, 0.99]) / 1e9
    return LatencyStatistics(len(latency), float(median), float(p99), float(np.max(latency)) / 1e9)


def max_rate(latency: float) -> float:
    """Hz: the highest 1, 2 or 5 · 10ⁿ whose period is at least `PERIOD_PER_LATENCY` times `latency` [s]."""
    limit = min(1.0 / (PERIOD_PER_LATENCY * max(latency, 1e-9)), MAX_RATE)
    limit *= 1.0 + 1e-9  # against rounding
    decade = 10.0 ** np.floor(np.log10(limit))
    return float(max(step * decade for step in (1.0, 2.0, 5.0) if step * decade <= limit))


@dataclass(frozen=True)
class Assessment:
    """The facts and measurements of a machine that decide which rates its loops can run at. clock_cost: s per reading;
    steal_fraction: of the time, for the host of a VM; cpu: of the loop, if chosen."""

    host: HostFacts
    clock_cost: float
    steal_fraction: float
    wakeups: WakeupLatencies
    cpu: int | None = None

    @property
    def loop(self) -> LatencyStatistics:
        """Of a loop with real-time privileges."""
        return latency_statistics(self.wakeups.latency[PRIVILEGED])

    @property
    def suitable(self) -> Suitability:
        """Whether wake-ups at 1 kHz leave time for the work of a tick: all of them, 99 of 100, or fewer."""
        allowed = PERIOD_NS / 1e9 / PERIOD_PER_LATENCY
        return "yes" if self.loop.max <= allowed else "almost" if self.loop.p99 <= allowed else "no"

    @property
    def rate(self) -> float:
        """Hz at which every wake-up would have left enough time."""
        return max_rate(self.loop.max)

    @property
    def recommendations(self) -> list[str]:
        """What to change, the most useful first: the cause and the fix."""
        return [*_missing_privileges(self), *(text for check in CHECKS if (text := check(self)))]


def _missing_privileges(d: Assessment) -> list[str]:
    # the priority, which is acquired last, matters most
    return [
        f"no {privilege.name}: {privilege.fix}" for privilege in reversed(d.wakeups.privileges) if not privilege.granted
    ]


def _load(d: Assessment) -> str | None:
    load, cpus = d.host.load_average, len(d.host.cpus)
    if load is None or load <= BUSY * cpus:
        return None
    return f"other programs use {load:g} of {cpus} CPU{'s' * (cpus > 1)}: stop them; find them with top"


def _governor(d: Assessment) -> str | None:
    """A frequency that follows the load is low when a tick begins."""
    others = sorted(set(d.host.governors.values()) - {"performance"})
    if not others:
        return None
    return f"the CPU frequency follows the load ({', '.join(others)}): echo performance | sudo tee {CPU_FILES}"


def _clock(d: Assessment) -> str | None:
    host, cost = d.host, d.clock_cost * 1e9
    if host.clock_source is None or host.clock_source in FAST_CLOCKS or cost <= CHEAP_NS:
        return None
    fast = next((clock for clock in FAST_CLOCKS if clock in host.clock_sources), None)
    fix = f"echo {fast} | sudo tee {CLOCK_FILE}" if fast else "boot with clocksource=tsc tsc=reliable"
    return f"the clock source {host.clock_source} is slow, {cost:.0f} ns per reading: {fix}"


def _isolated_cpu(d: Assessment) -> str | None:
    isolated = d.host.isolated
    if not isolated or d.cpu in isolated:
        return None
    cpu = isolated[-1]
    return (
        f"CPU {cpu} is isolated but not used: set schedule.realtime.cpu: {cpu}; measure with cosim doctor --cpu {cpu}"
    )


def _host(d: Assessment) -> str | None:
    if not d.host.virtual or (d.suitable == "yes" and d.steal_fraction <= STEAL_FRACTION):
        return None
    steal = f" ({show_percent(d.steal_fraction, 2)} steal time)" if d.steal_fraction else ""
    return (
        f"a virtual machine waits for its host{steal}: run on bare metal, or pin its CPUs to host CPUs (virsh vcpupin)"
    )


def _preemption(d: Assessment) -> str | None:
    host = d.host
    if d.suitable == "yes" or host.preemption == "realtime":
        return None
    how = f"install a kernel with PREEMPT_RT (Debian: {DEBIAN_KERNEL}; Ubuntu: sudo pro enable realtime-kernel)"
    if host.dynamic_preemption and host.preemption != "full":
        how = f"echo full | sudo tee {PREEMPT_FILE}, or boot with preempt=full; if that is not enough, {how}"
    return f"the kernel is not fully preemptible (preemption: {host.preemption or 'unknown'}): {how}"


def _isolate(d: Assessment) -> str | None:
    host = d.host
    if d.suitable == "yes" or host.isolated or len(host.cpus) < 2:
        return None
    cpu = d.cpu or host.cpus[-1]  # CPU 0 does the system's own work
    return (
        f"no CPU is isolated: boot with isolcpus={cpu} nohz_full={cpu} rcu_nocbs={cpu}, then set"
        f" schedule.realtime.cpu: {cpu}"
    )


def _throttling(d: Assessment) -> str | None:
    if d.host.realtime_fraction is None:
        return None
    return (
        f"real-time threads are throttled above {100 * d.host.realtime_fraction:g} % of the time, which matters only"
        " to loops that use more: sudo sysctl -w kernel.sched_rt_runtime_us=-1"
    )


# after the privileges: free changes first, then changes of the system, then what seldom matters
CHECKS = (_load, _governor, _clock, _isolated_cpu, _host, _preemption, _isolate, _throttling)
