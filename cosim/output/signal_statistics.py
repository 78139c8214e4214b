"""Figures of signals over all ticks of a run, accumulated block by block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

# name -> the signal, and the signal that is subtracted from it, or None
FollowedSignals = Mapping[str, tuple[str, str | None]]

BLOCK = 4096  # ticks of a run that are looked at together
FEW = 32  # rows


class SignalFigures(NamedTuple):
    """Of one signal over all ticks; NaN where a value was."""

    min: float
    max: float
    rms: float
    first: float
    last: float

    @property
    def peak(self) -> float:
        """The largest absolute value."""
        return max(abs(self.min), abs(self.max)) if self.min == self.min else self.min


class SignalStatistics:
    """Minimum, maximum, root mean square, first and last value of the followed signals. Plain data."""

    def __init__(self, signals: Sequence[str], followed: FollowedSignals) -> None:
        """signals: of the columns of the blocks."""
        column = {name: k for k, name in enumerate(signals)}
        # differences, then what is subtracted in each, then the others
        pairs = {name: (a, b) for name, (a, b) in followed.items() if b is not None}
        subtracted = [b for _, b in pairs.values()]
        others = [name for name in followed if name not in {*pairs, *subtracted}]
        self._differences = len(pairs)
        self.names = (*pairs, *subtracted, *others)
        chosen = [*(a for a, _ in pairs.values()), *subtracted, *(followed[name][0] for name in others)]
        self._columns = np.array([column[name] for name in chosen], dtype=np.intp)
        self.count = 0  # ticks
        # rows: minimum, maximum, sum of squares, first, last
        self.figures = np.full((5, len(self.names)), np.nan)
        self._picked = np.empty((0, len(self.names)))

    @classmethod
    def of(cls, names: Sequence[str], count: int, figures: np.ndarray) -> SignalStatistics:
        """Those of a finished run, as they were stored."""
        statistics = cls(names, {name: (name, None) for name in names})
        statistics.count, statistics.figures = count, figures
        return statistics

    def add(self, values: np.ndarray) -> None:
        """Take the ticks of a block (k, signals) into account."""
        k = len(values)
        if not k:
            return
        if len(self._picked) < k:
            self._picked = np.empty((k, len(self.names)))
        picked, figures = self._picked[:k], self.figures
        np.take(values, self._columns, axis=1, out=picked, mode="clip")  # other modes copy
        with np.errstate(over="ignore", invalid="ignore"):  # of a run that diverged
            d = self._differences
            picked[:, :d] -= picked[:, d : 2 * d]
            block = _folded(np.minimum, picked), _folded(np.maximum, picked), np.einsum("ij,ij->j", picked, picked)
            if not self.count:
                figures[:] = *block, picked[0], picked[-1]
            else:
                figures[0] = np.minimum(figures[0], block[0])
                figures[1] = np.maximum(figures[1], block[1])
                figures[2] += block[2]
                figures[4] = picked[-1]
        self.count += k

    def __getitem__(self, name: str) -> SignalFigures:
        low, high, squares, first, last = self.figures[:, self.names.index(name)].tolist()
        return SignalFigures(low, high, (squares / max(self.count, 1)) ** 0.5, first, last)

    def get(self, name: str) -> SignalFigures | None:
        """None for a signal that is not followed."""
        return self[name] if name in self.names else None


def _folded(reduce: np.ufunc, rows: np.ndarray) -> np.ndarray:
    """`reduce.reduce(rows)`: halves are taken together as wholes, which is many times faster than row by row."""
    while len(rows) > FEW:
        half = len(rows) // 2
        rows, odd = reduce(rows[:half], rows[half : 2 * half]), rows[2 * half :]
        if len(odd):
            rows[0] = reduce(rows[0], odd[0])
    return reduce.reduce(rows)
