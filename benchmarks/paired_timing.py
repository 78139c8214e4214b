"""Paired timing of two functions on a noisy machine.

The two run alternately in short blocks, A B A B …, so that a disturbance affects both. Results are medians: of each and
of the ratios of neighbouring blocks.
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

StopwatchClock = Callable[[], float]  # s
RepeatedCall = Callable[[int], object]  # repeats a call n times in its own loop


@dataclass(frozen=True)
class Budget:
    """The extent of a measurement: pairs of blocks, duration of a block [s], starts of a new process, duration of a
    real-time run [s]."""

    pairs: int
    block: float
    starts: int
    run: float = 5.0

    def of(self, whole: int, least: int = 1) -> int:
        """Of the runs, trials or bodies that a row is about: all, but of a budget below QUICK a part, as of its pairs;
        at least so many."""
        return max(least, round(whole * min(1.0, self.pairs / QUICK.pairs)))


FULL = Budget(pairs=200, block=4e-3, starts=5, run=60.0)
QUICK = Budget(pairs=30, block=2e-3, starts=2)


@dataclass(frozen=True)
class Samples:
    """Seconds per unit, (runs,) each, of ours and of the other; equal indices are neighbouring blocks."""

    ours: np.ndarray
    other: np.ndarray | None = None

    def per(self, ours: float, other: float) -> Samples:
        """Per unit, if one repetition had so many units of each."""
        return Samples(self.ours / ours, None if self.other is None else self.other / other)


def time_pairs(
    ours: RepeatedCall,
    other: RepeatedCall,
    budget: Budget,
    clock: StopwatchClock = time.perf_counter,
    all_processors: bool = False,
) -> Samples:
    """Seconds per repetition of both, `budget.pairs` times each, alternating; on one processor, or on all."""
    both = ours, other
    with undisturbed(all_processors):
        counts = [repetitions(block, budget.block, clock) for block in both]
        plan = list(zip(both, counts, strict=True))
        rows = [[_seconds(block, n, clock) / n for block, n in plan] for _ in range(budget.pairs)]
    columns = np.array(rows).T
    return Samples(columns[0], columns[1])


def shortest_time(block: RepeatedCall, budget: Budget, clock: StopwatchClock = time.perf_counter) -> float:
    """Seconds per repetition, the minimum of twenty blocks: enough to choose the fastest."""
    with undisturbed():
        n = repetitions(block, budget.block, clock)
        return min(_seconds(block, n, clock) for _ in range(20)) / n


def repetitions(block: RepeatedCall, seconds: float, clock: StopwatchClock) -> int:
    """The number of repetitions that take about `seconds`; the search warms up caches and branch predictors."""
    n = 1
    while (taken := _seconds(block, n, clock)) < seconds / 2:
        n *= 2
    return max(1, round(n * seconds / taken))


def _seconds(block: RepeatedCall, n: int, clock: StopwatchClock) -> float:
    begun = clock()
    block(n)
    return clock() - begun


@contextmanager
def undisturbed(all_processors: bool = False) -> Iterator[None]:
    """Without garbage collection, with this thread bound to one processor where the system supports it, or to none."""
    collecting = gc.isenabled()
    bound = hasattr(os, "sched_getaffinity") and not all_processors
    allowed = os.sched_getaffinity(0) if bound else set()
    gc.disable()
    try:
        if allowed:
            os.sched_setaffinity(0, {max(allowed)})
        yield
    finally:
        if allowed:
            os.sched_setaffinity(0, allowed)
        if collecting:
            gc.enable()
