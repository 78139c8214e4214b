"""Median, 99th percentile and maximum of times that come in blocks: exact, in bounded memory.

The blocks are read several times. The element of a rank in the sorted times is found by counting: how many are in each
of BINS intervals between the lowest and the highest, then again within the interval of the rank until it is one number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

PERCENTILES = ("median_s", "p99_s", "max_s")
FRACTIONS = (0.5, 0.99)  # of the times that are not longer
BINS = 1 << 16

# makes an iterator over blocks, each with whole numbers (k,) of every series
Blocks = Callable[[], Iterable[Sequence[np.ndarray]]]


@dataclass
class _Search:
    """For the element of this rank of a series, from `lowest` to `highest`; so many are below `lowest`."""

    series: int
    rank: int
    lowest: int
    highest: int
    below: int = 0

    @property
    def interval(self) -> tuple[int, int, int]:
        return self.series, self.lowest, self.highest

    def narrow(self, inside: np.ndarray) -> None:
        """inside: number of elements in each of the parts of the interval."""
        width, ends = _width(self.lowest, self.highest), self.below + np.cumsum(inside)
        part = int(np.searchsorted(ends, self.rank, side="right"))
        self.below = int(ends[part] - inside[part])
        self.lowest += part * width
        self.highest = min(self.highest, self.lowest + width - 1)


def _width(lowest: int, highest: int) -> int:
    """Of the parts of an interval."""
    return (highest - lowest) // BINS + 1


def percentiles(blocks: Blocks, series: int) -> list[dict[str, float] | None]:
    """Of each series [ns] those of PERCENTILES; None of none. They are those of `numpy.percentile` of all times."""
    count, lowest, highest = [0] * series, [0] * series, [0] * series
    for block in blocks():
        for i, times in enumerate(block):
            if len(times):
                low, high = int(times.min()), int(times.max())
                lowest[i], highest[i] = (min(lowest[i], low), max(highest[i], high)) if count[i] else (low, high)
                count[i] += len(times)
    ranks = {(i, rank) for i in range(series) for f in FRACTIONS for rank in _around(f, count[i])}
    searches = {(i, rank): _Search(i, rank, lowest[i], highest[i]) for i, rank in ranks}
    while open_ones := [search for search in searches.values() if search.lowest < search.highest]:
        found = _counted(blocks, {search.interval for search in open_ones})
        for search in open_ones:
            search.narrow(found[search.interval])
    return [
        _figures([[searches[i, rank].lowest for rank in _around(f, n)] for f in FRACTIONS], n, top) if n else None
        for i, (n, top) in enumerate(zip(count, highest, strict=True))
    ]


def _figures(around: Sequence[Sequence[int]], count: int, highest: int) -> dict[str, float]:
    """around: the elements of the ranks below and above each of the FRACTIONS."""
    ns = [_between(low, high, f, count) for (low, high), f in zip(around, FRACTIONS, strict=True)]
    return {name: value / 1e9 for name, value in zip(PERCENTILES, (*ns, highest), strict=True)}


def percentiles_of(ns: np.ndarray) -> dict[str, float] | None:
    """The same of one series (k,) in one block."""
    return percentiles(lambda: [[ns]], 1)[0]


def _counted(blocks: Blocks, intervals: set[tuple[int, int, int]]) -> dict[tuple[int, int, int], np.ndarray]:
    """Elements of a series in each part of an interval (series, lowest, highest)."""
    found = {key: np.zeros((key[2] - key[1]) // _width(key[1], key[2]) + 1, dtype=np.int64) for key in intervals}
    for block in blocks():
        for (i, lowest, highest), parts in found.items():
            times = block[i]
            inside = times[(times >= lowest) & (times <= highest)]
            parts += np.bincount((inside - lowest) // _width(lowest, highest), minlength=len(parts))
    return found


def _around(fraction: float, count: int) -> tuple[int, ...]:
    """The ranks below and above a fraction of the elements; none of none."""
    rank = int(fraction * (count - 1))
    return (rank, min(rank + 1, count - 1)) if count else ()


def _between(low: int, high: int, fraction: float, count: int) -> float:
    """Between the elements of two ranks in proportion, rounded as numpy does it."""
    part = fraction * (count - 1) % 1.0
    return high - (high - low) * (1.0 - part) if part >= 0.5 else low + (high - low) * part
