"""Named arrays that change with time in steps, such as gains along a motion, as one table in machine code."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cosim.core.compile.row_lookup import RowLookup
from cosim.core.layout import Layout
from cosim.core.types import Array, Numeric, State


class TableOverTime:
    """A lookup table: TableOverTime(begins, items, name)(t) has the arrays of the last item that begins at t or before,
    else of the first; a single item becomes constants of the code.

    begins (k,): times [s] that increase; items: dicts of the same names and shapes."""

    def __init__(self, begins: Array, items: Sequence[State], name: str) -> None:
        """Raises ValueError where there is not an item for each of `begins`."""
        self.begins, self.items, self._layout = begins, list(items), Layout(items[0])
        rows = np.array([self._layout.pack(item) for item in items], dtype=float)
        self._row_at = RowLookup(begins, rows, name)

    def __call__(self, t: Numeric) -> State:
        return self.items[0] if len(self.items) == 1 else self._layout.unpack(self._row_at(t))
