"""Measured on this machine: what reading the clock costs, and how late a loop of 1 kHz wakes up.

The ways to wait are measured in turn, each in a thread of its own beside a thread that keeps Python busy, as
the rest of a program does.
"""

from __future__ import annotations

import time
import timeit
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np

from cosim.timing.clocks import NativeClock, native_clock
from cosim.timing.daemon_executor import busy
from cosim.timing.pacing import Pacing
from cosim.timing.privileges import Privilege, acquire

PERIOD_NS = 1_000_000
# ticks in machine code between looks at whether to go on; ns from such a look to the next tick, for Python to be there
CHUNK, LEAD_NS = 500, 20_000_000
# reads of the clock at a time, and how often: the least counts, the others were disturbed
READS, TIMES = 2000, 20

UNPRIVILEGED, PRIVILEGED, PYTHON_SLEEP = "machine code", "with the rights", "Python's sleep"
# of the time of the measurement
DURATION_FRACTIONS = {UNPRIVILEGED: 0.3, PRIVILEGED: 0.6, PYTHON_SLEEP: 0.1}

T = TypeVar("T")
ReportProgress = Callable[[float], object]


@dataclass(frozen=True)
class WakeupLatencies:
    """How late each wake-up was, int64 [ns], by the way of waiting; the rights that `PRIVILEGED` ran with."""

    late: dict[str, np.ndarray]
    rights: tuple[Privilege, ...]


class Instruments(Protocol):
    """What measures a machine."""

    def clock_cost(self) -> float:
        """s per reading of the clock."""
        ...

    def wakes(self, seconds: float, cpu: int | None, tell: ReportProgress | None) -> WakeupLatencies:
        """Wake up at 1 kHz for so long; cpu: of the loop with rights; tell is given the share that is done."""
        ...


class HostInstruments:
    """`Instruments` of this machine. Raises RunError where the system has no absolute sleep."""

    def clock_cost(self) -> float:
        times = (min(timeit.repeat(what, repeat=TIMES, number=READS)) for what in (time.monotonic_ns, _nothing))
        read, called = (seconds / READS for seconds in times)
        return max(read - called, 0.0)

    def wakes(self, seconds: float, cpu: int | None, tell: ReportProgress | None) -> WakeupLatencies:
        clock, pacing = native_clock(), Pacing(cpu=cpu)
        counts = {way: max(1, round(share * seconds * 1e9 / PERIOD_NS)) for way, share in DURATION_FRACTIONS.items()}
        progress = _Progress(sum(counts.values()), tell)

        def granted() -> tuple[np.ndarray, tuple[Privilege, ...]]:
            with acquire(pacing) as rights:
                return _native(clock, counts[PRIVILEGED], progress), rights

        with busy():
            plain = progress.watch(lambda: _native(clock, counts[UNPRIVILEGED], progress))
            good, rights = progress.watch(granted)
            python = progress.watch(lambda: _python(counts[PYTHON_SLEEP], progress))
        return WakeupLatencies({UNPRIVILEGED: plain, PRIVILEGED: good, PYTHON_SLEEP: python}, rights)


def _nothing() -> None: ...


class _Progress:
    """Runs work in a thread of its own; the work tells how far it is, and is ended there when the program is to end."""

    def __init__(self, total: int, tell: ReportProgress | None) -> None:
        self._total, self._tell, self._done, self._left = total, tell, 0, False

    def watch(self, work: Callable[[], T]) -> T:
        with ThreadPoolExecutor(1, "ticks") as pool:
            try:
                return pool.submit(work).result()
            except BaseException:
                self._left = True
                raise

    def add(self, ticks: int) -> None:
        if self._left:
            raise InterruptedError
        self._done += ticks
        if self._tell is not None:
            self._tell(self._done / self._total)


def _native(clock: NativeClock, count: int, progress: _Progress) -> np.ndarray:
    clock.latencies(clock.now(), PERIOD_NS, 1)  # its code is linked when it is first used
    parts = []
    for first in range(0, count, CHUNK):
        parts.append(clock.latencies(clock.now() + LEAD_NS, PERIOD_NS, min(CHUNK, count - first)))
        progress.add(len(parts[-1]))
    return np.concatenate(parts)


def _python(count: int, progress: _Progress) -> np.ndarray:
    """As a loop in Python does it: sleep for what is left of the period; periods that were missed are left out."""
    found, due, left = [], time.monotonic_ns() + PERIOD_NS, count
    while left > 0:
        time.sleep(max(due - time.monotonic_ns(), 0) / 1e9)
        late = time.monotonic_ns() - due
        found.append(late)
        periods = min(late // PERIOD_NS + 1, left)
        due, left = due + periods * PERIOD_NS, left - periods
        progress.add(periods)
    return np.array(found, dtype=np.int64)
