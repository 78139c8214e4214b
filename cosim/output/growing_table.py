"""A table of numbers to which rows are added block by block."""

from __future__ import annotations

import numpy as np


class GrowingTable:
    """Rows (k, columns) of float64; its memory is allocated for `expected` rows, and doubled when these are full."""

    def __init__(self, columns: int, expected: int) -> None:
        self._rows = np.empty((max(expected, 1), columns))
        self.count = 0

    def extend(self, k: int) -> np.ndarray:
        """The places of k further rows, to be filled."""
        begin, end = self.count, self.count + k
        if end > len(self._rows):
            rows = np.empty((max(2 * len(self._rows), end), self._rows.shape[1]))
            rows[:begin] = self._rows[:begin]
            self._rows = rows
        self.count = end
        return self._rows[begin:end]

    @property
    def rows(self) -> np.ndarray:
        """All rows so far, in place."""
        return self._rows[: self.count]
