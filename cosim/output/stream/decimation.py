"""Fewer samples than ticks: each sample stands for all ticks since the one before."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np

Decimation = Literal["last", "mean", "min_max"]


class Reduction(NamedTuple):
    """fold(parts so far or None, ticks (k, n)) -> parts (p, n); a sample has a column per part and signal, whose name
    ends in the suffix of the part; averaged: the parts are sums over the ticks."""

    suffixes: tuple[str, ...]
    fold: Callable[[np.ndarray | None, np.ndarray], np.ndarray]
    averaged: bool = False


def _last(parts: np.ndarray | None, ticks: np.ndarray) -> np.ndarray:
    return ticks[-1:].copy()


def _sum(parts: np.ndarray | None, ticks: np.ndarray) -> np.ndarray:
    total = ticks.sum(axis=0, keepdims=True)
    return total if parts is None else parts + total


def _extremes(parts: np.ndarray | None, ticks: np.ndarray) -> np.ndarray:
    low, high = ticks.min(axis=0), ticks.max(axis=0)
    if parts is not None:
        low, high = np.minimum(low, parts[1]), np.maximum(high, parts[2])
    return np.array([ticks[-1], low, high])


REDUCTIONS: dict[Decimation, Reduction] = {
    "last": Reduction(("",), _last),
    "mean": Reduction(("",), _sum, averaged=True),
    "min_max": Reduction(("", "_min", "_max"), _extremes),
}


def decimated_names(names: Sequence[str], how: Decimation) -> tuple[str, ...]:
    """The columns of a sample of these signals."""
    return tuple(name + suffix for suffix in REDUCTIONS[how].suffixes for name in names)


class Decimator:
    """Samples at most at `rate` [Hz] of simulated time: one at the first tick at or after each multiple of 1 / rate.

    It needs memory for one sample, however many ticks that stands for.
    """

    def __init__(self, rate: float, how: Decimation) -> None:
        self._period_ns, self._reduction = 1e9 / rate, REDUCTIONS[how]
        self._interval = -1  # of the last tick
        self._parts: np.ndarray | None = None
        self._ticks = 0  # in `parts`
        self._t_ns = 0  # of the last tick

    def __call__(self, t_ns: np.ndarray, rows: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """(time, values) of the samples that are due; t_ns (k,) integer ns, rows (k, n)."""
        if not len(t_ns):
            return
        intervals = (t_ns // self._period_ns).astype(np.int64)
        due = np.flatnonzero(np.diff(intervals, prepend=self._interval))
        self._interval, begin = int(intervals[-1]), 0
        for end in (due + 1).tolist():
            self._add(rows[begin:end], int(t_ns[end - 1]))
            yield from self.rest()
            begin = end
        if begin < len(rows):
            self._add(rows[begin:], int(t_ns[-1]))

    def rest(self) -> Iterator[tuple[int, np.ndarray]]:
        """The sample of the ticks since the last one, if there are any."""
        if self._parts is not None:
            parts = self._parts / self._ticks if self._reduction.averaged else self._parts
            self._parts, self._ticks = None, 0
            yield self._t_ns, parts.ravel()

    def _add(self, ticks: np.ndarray, t_ns: int) -> None:
        self._parts = self._reduction.fold(self._parts, ticks)
        self._ticks, self._t_ns = self._ticks + len(ticks), t_ns
