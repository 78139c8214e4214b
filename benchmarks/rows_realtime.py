"""Real-time rigs against `cyclictest`: wake-up latencies, missed deadlines, drift.

cyclictest runs before and after ours, for the same duration, on the same CPU at the same priority. Both skip missed
periods and report latencies in whole µs, rounded down.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks import cyclictest
from benchmarks.paired_timing import Budget, Samples
from benchmarks.robots import sample_rig
from benchmarks.rows import BenchCase, Measurement, NotMeasured, Target
from cosim import load_rig
from cosim.core.errors import CosimError, RunError
from cosim.execution.timing import privileges
from cosim.execution.timing.daemon_executor import busy
from cosim.execution.timing.deadlines import DeadlineRecord
from cosim.simulation.loop.pacing import Pacing

CHANCE = 0.01  # probability to call ours worse than cyclictest although both miss equally often
PARTS = 10  # of a run, a p99 for each

# not traceable: its `if` depends on a number
CONTROLLER = """
import numpy as np
from cosim.plugin import COMMAND, FEEDBACK, REFERENCE, PerJoint, joint_signals, param, params

@params
class Params:
    kp: PerJoint = param(unit="joint stiffness", min=0)
    kd: PerJoint = param(unit="joint damping", min=0)

class Pd:
    def __init__(self, params, context):
        n = len(context.joints)
        self.params = params
        self.inputs = joint_signals((*FEEDBACK[:2], *REFERENCE[:2]), n)
        self.outputs = joint_signals(COMMAND, n)
        self.zeros = np.zeros(n)

    def initial(self):
        return {}

    def update(self, t, p, x, u):
        error = u["reference_position"] - u["position"]
        if np.abs(error).max() > 1.0:
            error = np.clip(error, -1.0, 1.0)
        effort = np.multiply(p.kp, error) + np.multiply(p.kd, u["reference_velocity"] - u["velocity"])
        return {}, {"effort": effort} | dict.fromkeys(("position", "velocity", "kp", "kd"), self.zeros)

load = Pd
"""


@dataclass(frozen=True)
class Setup:
    """A real-time run of the sample rig: its period [µs]; native: all compiled, else with a controller in Python; busy:
    beside a thread that keeps the interpreter busy."""

    period: int
    native: bool = True
    busy: bool = True

    def disturbed(self) -> AbstractContextManager[object]:
        return busy() if self.busy else nullcontext()

    def ticks(self, seconds: float) -> int:
        return round(seconds * 1e6 / self.period)

    def run(self, seconds: float, cpu: int) -> DeadlineRecord:
        """Raises NotMeasured when the run cannot begin, RunError when something stopped it."""
        keys = [f"schedule.step={self.period} us", f"schedule.realtime={{cpu: {cpu}, overrun: skip, warm_up: 0 s}}"]
        with tempfile.TemporaryDirectory() as folder:
            if not self.native:
                file = Path(folder, "pd.py")
                file.write_text(CONTROLLER)
                keys.append(f"controllers.arm.type={file}")
            path = sample_rig()
            with load_rig(path, keys, interpret=False).scheduler() as scheduler:
                try:
                    scheduler.prepare()
                    scheduler.arm()
                except CosimError as error:
                    raise NotMeasured(str(error)) from error
                with self.disturbed():
                    scheduler.start(self.ticks(seconds))
                    while scheduler.read() is not None:
                        pass
                if scheduler.fault:
                    raise RunError(scheduler.fault, str(path))
                return scheduler.timing


ONE_KHZ = Setup(1000)
# the last run of each setup, for the row of the drift
_runs: dict[tuple[Setup, float], DeadlineRecord] = {}


def beside_cyclictest(setup: Setup, count_misses: bool, budget: Budget) -> Measurement:
    """p99 of the latencies. count_misses: more missed deadlines than of cyclictest miss the target.

    Raises NoCyclictest; NotMeasured where nothing can be run at a fixed priority.
    """
    cpu, pacing = last_cpu(), Pacing()
    cyclictest.cyclictest_path()
    check_priority()

    def other() -> np.ndarray:
        with setup.disturbed():
            return cyclictest.latencies(setup.ticks(budget.run), setup.period, cpu, pacing.priority)

    before = other()
    ours = _runs[setup, budget.run] = setup.run(budget.run, cpu)
    return judged(ours, before, other(), count_misses)


def judged(timing: DeadlineRecord, before: np.ndarray, after: np.ndarray, count_misses: bool) -> Measurement:
    """Ours against the latencies [µs] of cyclictest before and after it, taken together."""
    ours, other = timing.latency_ns // 1000, np.concatenate([before, after])
    our_p99, other_p99 = np.percentile(ours, 99), np.percentile(other, 99)
    parts = [np.percentile(part, 99) / other_p99 for part in np.array_split(ours, min(PARTS, len(ours)))]
    low, high = (float(x) for x in np.percentile(parts, (25, 75)))
    missed = len(timing.missed.row)
    would, more_misses = misses_beside(timing, missed, other)
    note = (
        f"median, p99, max in whole µs: {percentiles(ours)};"
        f" cyclictest {percentiles(before)} before, {percentiles(after)} after;"
        f" p99 of our {len(parts)} parts {low:.2f} to {high:.2f} × (quartiles);"
        f" deadlines missed: {missed} of {len(ours)}, cyclictest would have missed {would:g}"
    )
    samples = Samples(np.array([our_p99 * 1e-6]), np.array([other_p99 * 1e-6]))
    failed = "more deadlines missed than by cyclictest, beyond chance" if count_misses and more_misses else ""
    return Measurement(samples, note=note, growth=True, quartiles=(low, high), failed=failed)


def misses_beside(timing: DeadlineRecord, missed: int, other: np.ndarray) -> tuple[float, bool]:
    """(the deadlines that cyclictest, with these latencies [µs], would have missed in as many ticks as usual as ours;
    whether `missed` are more than these, beyond chance)."""
    usual, ticks = np.median(timing.busy_ns) / 1e3, len(timing.latency_ns)
    misses = int(np.count_nonzero(other + usual > timing.period_ns / 1e3))
    return misses * ticks / len(other), unlikely(missed, ticks, misses, len(other))


def unlikely(missed: int, ticks: int, others: int, loops: int) -> bool:
    """Whether our ticks have so many of all misses with a probability below CHANCE if both miss equally often."""
    from scipy.stats import binom

    return missed > 0 and float(binom.sf(missed - 1, missed + others, ticks / (ticks + loops))) < CHANCE


def percentiles(latencies: np.ndarray) -> str:
    return ", ".join(f"{value:.0f}" for value in np.percentile(latencies, (50, 99, 100)))


def drift(budget: Budget) -> Measurement:
    """The deviation of the last due time from the monotonic clock, counted from the first, without the clock slip."""
    timing = _runs.get((ONE_KHZ, budget.run))
    if timing is None:
        timing = ONE_KHZ.run(budget.run, last_cpu())
    due, periods = timing.stamps[:, 0], int(timing.numbers[-1] - timing.numbers[0])
    elapsed = int(due[-1] - due[0])
    off = elapsed - periods * round(timing.period_ns) - timing.slip_ns
    note = (
        f"{periods} periods and {timing.slip_ns} ns of clock slip took {elapsed} ns by due times, off by {off} ns;"
        f" the last tick had a wake-up latency of {timing.latency_ns[-1] / 1e3:.0f} µs"
    )
    return Measurement(Samples(np.array([abs(off) * 1e-9])), note=note)


# --- the machine ---


def last_cpu() -> int:
    """The last CPU: the system's own work is usually on the first. Raises NotMeasured."""
    if not hasattr(os, "sched_getaffinity"):
        raise NotMeasured("real-time runs need Linux")
    return max(os.sched_getaffinity(0))


def check_priority() -> None:
    """Raises NotMeasured if a thread cannot get a fixed priority."""
    with privileges.acquire(Pacing()) as privileges_held:
        missing = [p for p in privileges_held if "SCHED_FIFO" in p.name and not p.granted]
    for privilege in missing:
        raise NotMeasured(f"this needs a {privilege.name}: {privilege.fix}")


SIMILAR_LATENCY = Target("ratio", 1.25, at_most=True)
BEFORE_AND_AFTER = "cyclictest on the same CPU at the same priority, before and after"

CASES = (
    BenchCase(
        "realtime native 1 kHz",
        "p99 of the wake-up latency of ur5_sim in real time at 1 kHz, compiled, beside a busy Python thread",
        partial(beside_cyclictest, ONE_KHZ, True),
        BEFORE_AND_AFTER,
        target=SIMILAR_LATENCY,
    ),
    BenchCase(
        "realtime native 4 kHz",
        "the same at 4 kHz",
        partial(beside_cyclictest, Setup(250), True),
        BEFORE_AND_AFTER,
        target=SIMILAR_LATENCY,
    ),
    BenchCase(
        "realtime python 1 kHz",
        "p99 of the wake-up latency of ur5_sim in real time at 1 kHz, with a controller of six joints in Python",
        partial(beside_cyclictest, Setup(1000, native=False, busy=False), False),
        BEFORE_AND_AFTER,
        target=Target("ratio", 3.0, at_most=True),
    ),
    BenchCase(
        "realtime drift",
        "deviation of the last due time of the run at 1 kHz from the monotonic clock",
        drift,
        target=Target("ours", 0.0, at_most=True),
    ),
)
