"""Measurements on this machine: the cost of reading the clock, and the wake-up latency of a loop at 1 kHz.

The methods to wait are measured one after the other, each in its own thread beside a thread that keeps Python busy, as
the rest of a program does.
"""

from __future__ import annotations

import gc
import time
import timeit
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np

from cosim.execution.timing.daemon_executor import busy
from cosim.execution.timing.privileges import Privilege, acquire
from cosim.simulation.loop.clocks import NativeClock, native_clock
from cosim.simulation.loop.pacing import Pacing

PERIOD_NS = 1_000_000
# ticks of the compiled loop between two progress reports; ns from a report to the next tick, for Python to return
CHUNK, LEAD_NS = 500, 20_000_000
# reads of the clock per repetition, and repetitions; the fastest one counts, the others were disturbed
READS, TIMES = 2000, 20

UNPRIVILEGED, PRIVILEGED, PYTHON_SLEEP = "compiled loop", "with privileges", "Python sleep"
# of the duration of the measurement
DURATION_FRACTIONS = {UNPRIVILEGED: 0.3, PRIVILEGED: 0.6, PYTHON_SLEEP: 0.1}

T = TypeVar("T")
ReportProgress = Callable[[float], object]


@dataclass(frozen=True)
class WakeupLatencies:
    """Latency of each wake-up, int64 [ns], by method; the real-time privileges that `PRIVILEGED` ran with."""

    latency: dict[str, np.ndarray]
    privileges: tuple[Privilege, ...]


class Instruments(Protocol):
    """What measures a machine."""

    def clock_cost(self) -> float:
        """s per reading of the clock."""
        ...

    def wakeups(self, seconds: float, cpu: int | None, progress: ReportProgress | None) -> WakeupLatencies:
        """Wake up at 1 kHz for so long; cpu: of the loop with privileges; progress gets the fraction that is done."""
        ...


class HostInstruments:
    """`Instruments` of this machine. Raises RunError where the system has no absolute sleep."""

    def clock_cost(self) -> float:
        # a call of C code that does next to nothing; one of Python code would take as long as the reading
        calls = (time.monotonic_ns, gc.isenabled)
        times = (min(timeit.repeat(call, repeat=TIMES, number=READS)) for call in calls)
        read, called = (seconds / READS for seconds in times)
        return max(read - called, 0.0)

    def wakeups(self, seconds: float, cpu: int | None, progress: ReportProgress | None) -> WakeupLatencies:
        clock, pacing = native_clock(), Pacing(cpu=cpu)
        counts = {
            method: max(1, round(fraction * seconds * 1e9 / PERIOD_NS))
            for method, fraction in DURATION_FRACTIONS.items()
        }
        worker = _Worker(sum(counts.values()), progress)

        def privileged() -> tuple[np.ndarray, tuple[Privilege, ...]]:
            with acquire(pacing) as privileges:
                return _native(clock, counts[PRIVILEGED], worker), privileges

        with busy():
            plain = worker.run(lambda: _native(clock, counts[UNPRIVILEGED], worker))
            good, privileges = worker.run(privileged)
            python = worker.run(lambda: _python(counts[PYTHON_SLEEP], worker))
        return WakeupLatencies({UNPRIVILEGED: plain, PRIVILEGED: good, PYTHON_SLEEP: python}, privileges)


class _Worker:
    """Runs functions in a separate thread; they report ticks with `add`, which raises when the program ends."""

    def __init__(self, total: int, report: ReportProgress | None) -> None:
        self._total, self._report, self._done, self._cancelled = total, report, 0, False

    def run(self, work: Callable[[], T]) -> T:
        with ThreadPoolExecutor(1, "ticks") as pool:
            try:
                return pool.submit(work).result()
            except BaseException:
                self._cancelled = True
                raise

    def add(self, ticks: int) -> None:
        if self._cancelled:
            raise InterruptedError
        self._done += ticks
        if self._report is not None:
            self._report(self._done / self._total)


def _native(clock: NativeClock, count: int, worker: _Worker) -> np.ndarray:
    clock.latencies(clock.now(), PERIOD_NS, 1)  # the first use links its code
    parts = []
    for first in range(0, count, CHUNK):
        parts.append(clock.latencies(clock.now() + LEAD_NS, PERIOD_NS, min(CHUNK, count - first)))
        worker.add(len(parts[-1]))
    return np.concatenate(parts)


def _python(count: int, worker: _Worker) -> np.ndarray:
    """A loop in Python: sleep for the rest of the period; missed periods are skipped."""
    latencies, due, left = [], time.monotonic_ns() + PERIOD_NS, count
    while left > 0:
        time.sleep(max(due - time.monotonic_ns(), 0) / 1e9)
        late = time.monotonic_ns() - due
        latencies.append(late)
        periods = min(late // PERIOD_NS + 1, left)
        due, left = due + periods * PERIOD_NS, left - periods
        worker.add(periods)
    return np.array(latencies, dtype=np.int64)
