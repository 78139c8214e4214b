"""Figures of signals over all ticks of a run, accumulated block by block.

What is measured counts once per sample: a sample is new in the ticks in which the signal of its time changes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

# name -> the signal, and the signal that is subtracted from it, or None
FollowedSignals = Mapping[str, tuple[str, str | None]]

BLOCK = 2048  # ticks that are looked at together
FEW_ROWS = 32  # rows


class SignalFigures(NamedTuple):
    """Of one signal over all ticks; NaN where a value was."""

    min: float
    max: float
    rms: float
    first: float
    last: float
    peak_tick: int | None = None  # at which the largest absolute value was first there, None where that is not followed

    @property
    def peak(self) -> float:
        """The largest absolute value."""
        return max(abs(self.min), abs(self.max)) if self.min == self.min else self.min


class SignalStatistics:
    """Minimum, maximum, root mean square, first and last value of the followed signals. Plain data."""

    def __init__(
        self,
        signals: Sequence[str],
        followed: FollowedSignals,
        sampled: Mapping[str, str] = MappingProxyType({}),
        timed: Collection[str] = (),
    ) -> None:
        """signals: of the columns of the blocks; sampled: name of a followed signal -> the signal with the time of its
        samples, for those that are measured; timed: followed signals whose peak has a time."""
        column = {name: k for k, name in enumerate(signals)}
        # differences, then what is subtracted in each, then the others
        pairs = {name: (a, b) for name, (a, b) in followed.items() if b is not None}
        subtracted = [b for _, b in pairs.values()]
        others = [name for name in followed if name not in {*pairs, *subtracted}]
        self._differences = len(pairs)
        self.names = (*pairs, *subtracted, *others)
        chosen = [*(a for a, _ in pairs.values()), *subtracted, *(followed[name][0] for name in others)]
        self._columns = np.array([column[name] for name in chosen], dtype=np.intp)
        # of the names that are measured: their places, and the columns of the times of their samples
        self._sampled = np.array([k for k, name in enumerate(self.names) if name in sampled], dtype=np.intp)
        times = [sampled[self.names[k]] for k in self._sampled]
        self._times = np.array([column[name] for name in times], dtype=np.intp)
        self._new = np.empty((0, len(self._sampled)), bool)  # whether a sample was new, of the rows of the block
        self._last_times = np.full(len(self._sampled), np.nan)
        followed_peaks = frozenset(timed)
        self._timed = np.array([k for k, name in enumerate(self.names) if name in followed_peaks], dtype=np.intp)
        self._samples = np.zeros(len(self._sampled))  # in whole blocks
        self.count = 0  # ticks
        self._whole: np.ndarray | None = None  # figures of whole blocks
        self._first = np.full(len(self.names), np.nan)
        # figures must not depend on how a run was divided: they are taken over blocks of their own
        self._block, self._filled = np.empty((0, len(self.names))), 0

    @classmethod
    def of(cls, names: Sequence[str], count: int, figures: np.ndarray) -> SignalStatistics:
        """The statistics of a finished run, as they were stored."""
        statistics = cls(names, {name: (name, None) for name in names})
        peaks = figures[5:] if len(figures) > 5 else np.full((1, len(names)), np.nan)  # older ones have none
        statistics.count, statistics._whole = count, np.vstack([figures[:4], peaks])
        statistics._first = figures[4]
        return statistics

    def add(self, values: np.ndarray) -> None:
        """Take the ticks of a block (k, signals) into account."""
        if not len(self._block):
            self._block = np.empty((BLOCK, len(self.names)))
            self._new = np.empty((BLOCK, len(self._sampled)), bool)
        while len(values):
            begin = self._filled
            part, values = values[: BLOCK - begin], values[BLOCK - begin :]
            self._filled = begin + len(part)
            # other modes copy
            np.take(part, self._columns, axis=1, out=self._block[begin : self._filled], mode="clip")
            if len(self._sampled):
                times = np.vstack([self._last_times, part[:, self._times]])
                self._new[begin : self._filled] = times[1:] != times[:-1]
                self._last_times = times[-1]
            if not self.count:
                self._first = self._followed(self._block[:1].copy())[0]
            self.count += len(part)
            if self._filled == BLOCK:
                self._whole, self._samples = self._with_block(self._block)
                self._filled = 0

    def _followed(self, picked: np.ndarray) -> np.ndarray:
        """The rows after the subtractions, in place."""
        d = self._differences
        with np.errstate(over="ignore", invalid="ignore"):  # of a run that diverged
            picked[:, :d] -= picked[:, d : 2 * d]
        return picked

    def _with_block(self, picked: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(rows: minimum, maximum, sum of squares, last value, tick of the peak; samples of what is measured); of the
        whole blocks and this one."""
        rows = self._followed(picked)
        new, last = self._new[: len(rows)], rows[-1].copy()
        with np.errstate(over="ignore", invalid="ignore"):
            low, high, squares = _folded(np.minimum, rows), _folded(np.maximum, rows), np.einsum("ij,ij->j", rows, rows)
            if (k := self._sampled).size:
                measured = rows[:, k]
                low[k] = np.min(measured, axis=0, where=new, initial=np.inf)
                high[k] = np.max(measured, axis=0, where=new, initial=-np.inf)
                squares[k] = np.sum(measured * measured, axis=0, where=new)
            peaks = self._peak_ticks(rows)
            if self._whole is not None:
                low, high = np.minimum(self._whole[0], low), np.maximum(self._whole[1], high)
                squares = self._whole[2] + squares
        return np.stack([low, high, squares, last, peaks]), self._samples + new.sum(axis=0)

    def _peak_ticks(self, rows: np.ndarray) -> np.ndarray:
        """Of every name the tick at which its absolute value was largest, in the whole blocks and these rows, the last
        ones so far; NaN where that is not followed."""
        peaks = np.full(len(self.names), np.nan) if self._whole is None else self._whole[4].copy()
        if (k := self._timed).size:
            sizes = np.abs(rows[:, k])
            at = sizes.argmax(axis=0)
            before = -np.inf if self._whole is None else np.abs(self._whole[:2, k]).max(axis=0)
            ticks = self.count - len(rows) + at
            peaks[k] = np.where(sizes[at, np.arange(k.size)] > before, ticks, peaks[k])
        return peaks

    @property
    def figures(self) -> np.ndarray:
        """Rows: minimum, maximum, sum of squares, last, first value, tick of the peak; NaN before the first tick. The
        sum of the squares of samples is multiplied by ticks per sample."""
        whole, samples = self._whole, self._samples
        if self._filled:
            whole, samples = self._with_block(self._block[: self._filled].copy())
        if whole is None:
            whole = np.full((5, len(self.names)), np.nan)
        elif len(samples):
            whole = whole.copy()
            whole[2, self._sampled] *= self.count / samples
        return np.vstack([whole[:4], self._first, whole[4]])

    def by_name(self) -> dict[str, SignalFigures]:
        """The figures of all followed signals."""
        low, high, squares, last, first, peaks = self.figures
        rms = np.sqrt(squares / max(self.count, 1))
        ticks = [int(tick) if tick == tick else None for tick in peaks.tolist()]
        rows = zip(*(row.tolist() for row in (low, high, rms, first, last)), ticks, strict=True)
        return {name: SignalFigures(*row) for name, row in zip(self.names, rows, strict=True)}


def _folded(reduce: np.ufunc, rows: np.ndarray) -> np.ndarray:
    """`reduce.reduce(rows)`: halves are taken together as wholes, which is many times faster than row by row."""
    while len(rows) > FEW_ROWS:
        half = len(rows) // 2
        rows, odd = reduce(rows[:half], rows[half : 2 * half]), rows[2 * half :]
        if len(odd):
            rows[0] = reduce(rows[0], odd[0])
    return reduce.reduce(rows)
