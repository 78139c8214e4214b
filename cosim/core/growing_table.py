"""Tables of numbers to which rows are added block by block, and the folder of what a run puts on the disk when its
memory is used up.
"""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Callable
from pathlib import Path

import numpy as np

from cosim.core.trust.private_cache import code_folder


class GrowingTable:
    """Rows (k, columns); its memory is allocated for `expected` rows, and doubled when these are full."""

    def __init__(self, columns: int, expected: int, dtype: type = float) -> None:
        self._rows = np.empty((max(expected, 1), columns), dtype=dtype)
        self.count = 0

    def extend(self, k: int) -> np.ndarray:
        """The places of k further rows, to be filled."""
        begin, end = self.count, self.count + k
        if end > len(self._rows):
            rows = np.empty((max(2 * len(self._rows), end), self._rows.shape[1]), dtype=self._rows.dtype)
            rows[:begin] = self._rows[:begin]
            self._rows = rows
        self.count = end
        return self._rows[begin:end]

    @property
    def rows(self) -> np.ndarray:
        """All rows so far, in place."""
        return self._rows[: self.count]


class SlidingTable:
    """The last `length` rows (k, columns) of those that were added; it has the memory of twice as many."""

    def __init__(self, columns: int, length: int) -> None:
        self._rows, self._length, self._end = np.empty((2 * length, columns)), length, 0

    def append(self, rows: np.ndarray) -> None:
        rows = rows[-self._length :]
        if self._end + len(rows) > len(self._rows):
            kept = self._length - len(rows)
            self._rows[:kept] = self._rows[self._end - kept : self._end]
            self._end = kept
        self._rows[self._end : self._end + len(rows)] = rows
        self._end += len(rows)

    @property
    def rows(self) -> np.ndarray:
        """In order, in place."""
        return self._rows[max(self._end - self._length, 0) : self._end]


class SpillingTable:
    """Rows (k, columns); those beyond `memory` bytes are in a file without a name, or in memory if the disk is full.

    folder: of the file, called when it is needed.
    """

    def __init__(self, columns: int, dtype: type, memory: int, folder: Callable[[], Path]) -> None:
        self._memory, self._folder, self._columns = memory, folder, columns
        self._dtype, self._rows = np.dtype(dtype), GrowingTable(columns, 1, dtype)
        self._file: int | None = None
        self._in_file = 0  # rows

    def __len__(self) -> int:
        return self._in_file + self._rows.count

    def append(self, rows: np.ndarray) -> None:
        self._rows.extend(len(rows))[:] = rows
        if self._rows.rows.nbytes > self._memory:
            self._move()

    def _move(self) -> None:
        """Write what is in memory to the file."""
        try:
            if self._file is None:
                folder = self._folder()
                folder.mkdir(parents=True, exist_ok=True)
                self._file, path = tempfile.mkstemp(dir=folder)
                os.unlink(path)
                self._close = weakref.finalize(self, os.close, self._file)
            at, data = self._in_file * self._columns * self._dtype.itemsize, self._rows.rows.data.cast("B")
            while len(data):
                written = os.pwrite(self._file, data, at)
                at, data = at + written, data[written:]
        except OSError:
            self._memory *= 2  # and try again then
            return
        self._in_file += self._rows.count
        self._rows = GrowingTable(self._columns, self._rows.count, self._dtype.type)

    def rows(self) -> np.ndarray:
        """All rows so far; those in the file are read where they are used."""
        if self._in_file and self._rows.count:
            self._move()
        if self._file is None or not self._in_file:
            return self._rows.rows
        shape = self._in_file, self._columns
        with os.fdopen(os.dup(self._file), "rb") as file:
            found = np.memmap(file, self._dtype, mode="r", shape=shape)
        return np.concatenate([found, self._rows.rows]) if self._rows.count else found

    def close(self) -> None:
        """Also when it is garbage-collected. What `rows` returned stays readable."""
        if self._file is not None:
            self._close()
            self._file = None


def run_folder() -> Path:
    """`runs` in the cache folder where that is private; not `/tmp`, which may be in memory."""
    return code_folder() / "runs"
