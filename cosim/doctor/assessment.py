"""What follows from what a machine says and from what was measured: a verdict, and what to change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from cosim.doctor.latency import PERIOD_NS, PRIVILEGED, WakeupLatencies
from cosim.doctor.machine import MachineFacts

# the period of a loop is to be so many times as long as its wake-ups are late: the rest of it is for its work
PERIOD_PER_LATENCY = 4
# Hz, the highest rate of a rig
MAX_RATE = 20_000.0
# clocks that the processor reads without the kernel; others cost more, unless they turn out to be as cheap as …
FAST_CLOCKS = ("tsc", "arch_sys_counter")
CHEAP_NS = 100.0
# runnable threads per CPU, and share of the time stolen by the host, that loops feel
BUSY, STOLEN = 0.7, 0.001

CPU_FILES = "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"
CLOCK_FILE = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
PREEMPT_FILE = "/sys/kernel/debug/sched/preempt"
DEBIAN_KERNEL = "sudo apt install linux-image-rt-$(dpkg --print-architecture)"

Suitability = Literal["yes", "almost", "no"]


@dataclass(frozen=True)
class LatencyStatistics:
    """Of wake-ups, s."""

    count: int
    median: float
    p99: float
    max: float


def latency_statistics(late: np.ndarray) -> LatencyStatistics:
    """late: (n,) ns, n > 0"""
    median, p99 = np.quantile(late, [0.5, 0.99]) / 1e9
    return LatencyStatistics(len(late), float(median), float(p99), float(np.max(late)) / 1e9)


def max_rate(late: float) -> float:
    """Hz: the highest 1, 2 or 5 · 10ⁿ whose period is `PERIOD_PER_LATENCY` times as long as `late` [s]."""
    most = min(1.0 / (PERIOD_PER_LATENCY * max(late, 1e-9)), MAX_RATE)
    most *= 1.0 + 1e-9  # what is a step of the series but for its rounding is that step
    decade = 10.0 ** np.floor(np.log10(most))
    return float(max(step * decade for step in (1.0, 2.0, 5.0) if step * decade <= most))


@dataclass(frozen=True)
class Assessment:
    """clock_cost: s per reading; stolen: share of the time that the host took meanwhile; cpu: of the loop, if asked."""

    machine: MachineFacts
    clock_cost: float
    stolen: float
    wakes: WakeupLatencies
    cpu: int | None = None

    @property
    def loop(self) -> LatencyStatistics:
        """Of a loop as this program runs it."""
        return latency_statistics(self.wakes.late[PRIVILEGED])

    @property
    def fit(self) -> Suitability:
        """Whether a loop of 1 kHz wakes up with room for its work: every time, 99 times of 100, or less often."""
        allowed = PERIOD_NS / 1e9 / PERIOD_PER_LATENCY
        return "yes" if self.loop.max <= allowed else "almost" if self.loop.p99 <= allowed else "no"

    @property
    def rate(self) -> float:
        """Hz at which every wake-up would have left room."""
        return max_rate(self.loop.max)

    @property
    def changes(self) -> list[str]:
        """What to change, the most useful first; each says why and how."""
        return [*_missing_privileges(self), *(text for advise in CHECKS if (text := advise(self)))]


def _missing_privileges(d: Assessment) -> list[str]:
    # the priority, which is taken last, matters most
    return [f"no {right.name}: {right.mend}" for right in reversed(d.wakes.rights) if not right.granted]


def _load(d: Assessment) -> str | None:
    load, cpus = d.machine.load, len(d.machine.cpus)
    if load is None or load <= BUSY * cpus:
        return None
    return f"other programs keep {load:g} of {cpus} CPU{'s' * (cpus > 1)} busy: end them; see which with top"


def _governor(d: Assessment) -> str | None:
    """Clocks that follow the load are slow when a tick begins."""
    others = sorted(set(d.machine.governors.values()) - {"performance"})
    if not others:
        return None
    return f"the processor saves power ({', '.join(others)}): echo performance | sudo tee {CPU_FILES}"


def _clock(d: Assessment) -> str | None:
    machine, cost = d.machine, d.clock_cost * 1e9
    if machine.clock is None or machine.clock in FAST_CLOCKS or cost <= CHEAP_NS:
        return None
    fast = next((clock for clock in FAST_CLOCKS if clock in machine.clocks), None)
    mend = f"echo {fast} | sudo tee {CLOCK_FILE}" if fast else "boot with clocksource=tsc tsc=reliable"
    return f"the clock {machine.clock} is slow, {cost:.0f} ns per reading: {mend}"


def _isolated_cpu(d: Assessment) -> str | None:
    isolated = d.machine.isolated
    if not isolated or d.cpu in isolated:
        return None
    cpu = isolated[-1]
    return f"CPU {cpu} is isolated but not used: schedule.realtime.cpu: {cpu}; measure with cosim doctor --cpu {cpu}"


def _host(d: Assessment) -> str | None:
    if not d.machine.virtual or (d.fit == "yes" and d.stolen <= STOLEN):
        return None
    took = f", which took {100 * d.stolen:.2g} % of the time" if d.stolen else ""
    return (
        f"a virtual machine waits for its host{took}: run without one, or give each of its CPUs one of the host's"
        " (virsh vcpupin)"
    )


def _preemption(d: Assessment) -> str | None:
    machine = d.machine
    if d.fit == "yes" or machine.preemption == "realtime":
        return None
    how = f"install a kernel with PREEMPT_RT (Debian: {DEBIAN_KERNEL}; Ubuntu: sudo pro enable realtime-kernel)"
    if machine.dynamic and machine.preemption != "full":
        how = f"echo full | sudo tee {PREEMPT_FILE}, or boot with preempt=full; if that is not enough, {how}"
    return f"the kernel does not interrupt itself at once (preemption: {machine.preemption or 'not told'}): {how}"


def _isolate(d: Assessment) -> str | None:
    machine = d.machine
    if d.fit == "yes" or machine.isolated or len(machine.cpus) < 2:
        return None
    cpu = d.cpu or machine.cpus[-1]  # CPU 0 has to do the system's own work
    return (
        f"other work runs on every CPU: boot with isolcpus={cpu} nohz_full={cpu} rcu_nocbs={cpu}, then"
        f" schedule.realtime.cpu: {cpu}"
    )


def _throttle(d: Assessment) -> str | None:
    if d.machine.throttle is None:
        return None
    return (
        f"fixed priority is held up after {100 * d.machine.throttle:g} % of each second, which matters only to ticks"
        " and spins that fill more of it: sudo sysctl -w kernel.sched_rt_runtime_us=-1"
    )


# after the rights: what costs nothing, then what needs another system, then what seldom matters
CHECKS = (_load, _governor, _clock, _isolated_cpu, _host, _preemption, _isolate, _throttle)
