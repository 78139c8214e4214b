"""The signals that a run keeps: all or some, of all ticks, every n-th or the last ones; in memory up to a budget,
beyond it in a file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cosim.core.errors import RunError
from cosim.core.growing_table import GrowingTable, SlidingTable
from cosim.output.store_file import StoreFile

BLOCK = 4096  # rows that are moved to the file at once


@dataclass(frozen=True)
class KeptTicks:
    """Which samples of a run are kept. signals: number in a tick; columns: kept ones, None for all; every: ticks whose
    number is a multiple of it; last: number of ticks at the end, None for all; budget: of the memory [bytes]; expected:
    ticks of the run."""

    signals: int
    columns: np.ndarray | None
    every: int
    last: int | None
    budget: int
    expected: int

    @property
    def width(self) -> int:
        """Columns of the table: t, then the kept signals."""
        return 1 + (self.signals if self.columns is None else len(self.columns))

    @property
    def rows(self) -> int:
        """Expected rows of the table."""
        ticks = self.expected if self.last is None else min(self.last, self.expected)
        return -(-ticks // self.every)

    @property
    def bytes(self) -> int:
        return 8 * self.width * self.rows

    @property
    def everything(self) -> bool:
        return self.columns is None and self.every == 1 and self.last is None


class SignalStore:
    """Ticks are added block by block: `room` for their signals, filled by the caller, then `add`."""

    def __init__(self, kept: KeptTicks, open_file: Callable[[], StoreFile], in_file: bool = False) -> None:
        """open_file: called once, when the budget is used up; in_file: before the first tick."""
        self.kept, self._open_file, self.file = kept, open_file, None
        self._signals = np.empty((0, kept.signals))  # of a block, where not all are kept in memory
        self._sliding = None if kept.last is None else SlidingTable(kept.width, max(-(-kept.last // kept.every), 1))
        self._added: np.ndarray = self._signals
        # in memory: t and the signals, which machine code writes in place, are apart
        expected = 1 if kept.last is not None or in_file or kept.bytes > kept.budget else kept.rows
        self._t, self._values = GrowingTable(1, expected), GrowingTable(kept.width - 1, expected)
        if in_file or (kept.bytes > kept.budget and self._sliding is None):
            self.file = open_file()

    def room(self, k: int) -> np.ndarray:
        """Where the signals (k, signals) of the next k ticks are to be written."""
        if self.file is None and self._sliding is None and 8 * self.kept.width * (self._t.count + k) > self.kept.budget:
            self._move()
        if self.kept.everything and self.file is None:
            self._added = self._values.extend(k)
            return self._added
        if len(self._signals) < k:
            self._signals = np.empty((k, self.kept.signals))
        self._added = self._signals[:k]
        return self._added

    def add(self, numbers: np.ndarray, t: np.ndarray) -> None:
        """The signals of these ticks are in the room; t (k,) in s. Raises RunError if the file cannot be written."""
        kept, values = self.kept, self._added
        if kept.everything and self.file is None:
            self._t.extend(len(t))[:, 0] = t
            return
        if kept.last is not None:
            numbers, t, values = (array[-kept.last :] for array in (numbers, t, values))
        if kept.every > 1:
            chosen = numbers % kept.every == 0
            t, values = t[chosen], values[chosen]
        if kept.columns is not None:
            values = values[:, kept.columns]
        if self._sliding is None and self.file is None:
            self._t.extend(len(t))[:, 0] = t
            self._values.extend(len(t))[:] = values
            return
        rows = np.column_stack([t, values])
        if self._sliding is not None:
            self._sliding.append(rows)
        else:
            assert self.file is not None
            self.file.append(rows)

    def _move(self) -> None:
        """Go on in the file."""
        file, t, values = self._open_file(), self._t.rows, self._values.rows
        try:
            for begin in range(0, len(t), BLOCK):
                file.append(np.hstack([t[begin : begin + BLOCK], values[begin : begin + BLOCK]]))
        except RunError:  # what is in memory stays there
            file.path.unlink(missing_ok=True)
            raise
        self.file = file
        self._t, self._values = GrowingTable(1, 1), GrowingTable(self.kept.width - 1, 1)

    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """(t (k,), kept signals (k, n)) so far, in place or read from the disk where they are used."""
        if self._sliding is None and self.file is None:
            return self._t.rows[:, 0], self._values.rows[: self._t.count]
        table = (
            self._sliding.rows if self._sliding is not None else self.file.table() if self.file is not None else None
        )
        assert table is not None
        return table[:, 0], table[:, 1:]
