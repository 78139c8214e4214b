"""An array of numbers that stays in a file: rows are read where they are used."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

BLOCK = 1 << 14  # rows that are read at once where not all are wanted


# (begin, end, columns) -> rows begin to end (not included) of the columns with these numbers: (end − begin, columns)
ReadRows = Callable[[int, int, np.ndarray], np.ndarray]


class StoredArray(np.lib.mixins.NDArrayOperatorsMixin):
    """(k,) or (k, n) numbers of float64 in a file, with the indexing of an array; what is taken out is in memory.

    numpy takes it where it takes an array, and then reads all of it, as do the methods of an array.
    """

    dtype = np.dtype(float)

    def __init__(self, read: ReadRows, *shape: int) -> None:
        self._read, self.shape = read, shape

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape))

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        for begin in range(0, len(self), BLOCK):
            yield from self[begin : begin + BLOCK]

    def __getitem__(self, key: Any) -> Any:
        key = key if isinstance(key, tuple) else (key,)
        if len(key) > self.ndim:
            raise IndexError(f"too many indices: the array has {self.ndim} dimensions")
        rows, column = (*key, slice(None))[:2]
        width = self.shape[1] if self.ndim == 2 else 1
        columns = np.arange(width)[column]
        found = self._rows(rows, np.atleast_1d(columns))
        return found[..., 0] if self.ndim == 1 or columns.ndim == 0 else found

    def _rows(self, rows: Any, columns: np.ndarray) -> np.ndarray:
        if isinstance(rows, slice):
            begin, end, step = rows.indices(len(self))
            if step == 1:
                return self._read(begin, max(end, begin), columns)
            return self._picked(np.arange(begin, end, step), columns)
        if np.ndim(rows) == 0:
            number = int(range(len(self))[rows])
            return self._read(number, number + 1, columns)[0]
        rows = np.asarray(rows)
        if rows.dtype == bool and rows.shape != self.shape[:1]:
            raise IndexError(f"the mask has the shape {rows.shape}, the array has {len(self)} rows")
        return self._picked(np.arange(len(self))[rows], columns)

    def _picked(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """These rows, read block by block."""
        found, blocks = np.empty((len(rows), len(columns))), rows // BLOCK
        for block in np.unique(blocks):
            chosen = blocks == block
            begin = int(block) * BLOCK
            found[chosen] = self._read(begin, min(begin + BLOCK, len(self)), columns)[rows[chosen] - begin]
        return found

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("the numbers are in a file; they cannot be had without a copy")
        return self[:] if dtype is None else self[:].astype(dtype, copy=False)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **keys: Any) -> Any:
        return getattr(ufunc, method)(*(x[:] if isinstance(x, StoredArray) else x for x in inputs), **keys)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(np.ndarray, name):
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        return getattr(self[:], name)

    def __repr__(self) -> str:
        return f"<StoredArray {' × '.join(map(str, self.shape))}>"
