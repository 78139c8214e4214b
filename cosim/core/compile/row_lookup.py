"""Constant tables in machine code: a row found by binary search, for trajectories of any number of pieces and for named
arrays that change with time in steps, such as gains along a motion.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cosim.core import ops
from cosim.core.compile.mathlib import constant
from cosim.core.compile.trace import RoutineBase
from cosim.core.errors import CompileError
from cosim.core.layout import Layout
from cosim.core.types import Array, Numeric, State


class RowLookup(RoutineBase):
    """row = RowLookup(begins, rows)(t), a routine like `Routine`: the last row that begins at t or before, else the
    first one; the first one for NaN.

    begins (n,): increasing; rows (n, width); t (). Its cost grows with log n, its code with n · width · 8 bytes.
    """

    piecewise_constant = True

    def __init__(self, begins: Array, rows: Array, name: str = "row_lookup") -> None:
        """Raises ValueError if the shapes do not fit or `begins` does not increase."""
        if rows.shape[:1] != begins.shape or not begins.size or rows.ndim != 2:
            raise ValueError(f"a row (width,) for each of begins (n,) is needed, got {rows.shape} and {begins.shape}")
        if not (np.diff(begins) > 0.0).all():
            raise ValueError("begins must increase")
        self.begins, self.rows, self.name = begins, rows, name
        self.shapes, self.output_shapes = ((),), (rows.shape[1:],)

    @property
    def callees(self) -> list[RoutineBase]:
        return []

    @property
    def operations(self) -> int:
        """Comparisons of the search."""
        return (len(self.begins) - 1).bit_length()

    def fn(self, t: Numeric) -> Array:
        """On a number. Raises CompileError on a symbol, for which a search has no expression."""
        if ops.is_symbolic(t):
            raise CompileError(f"'{self.name}' is a search and has no expression, so no derivative can be taken")
        begun = int(np.searchsorted(self.begins, t, side="right")) if t == t else 0
        return self.rows[max(begun - 1, 0)]

    def _text(self, symbol: str, lanes: int) -> str:
        """IR of `@symbol.<lanes>`: a search between rows `low` and `high`, and a copy, for each lane."""
        count, width = self.rows.shape
        begins, rows = (
            f"@{symbol}.{lanes}.{name} = internal constant [{values.size} x double] "
            f"[{', '.join(f'double {constant(float(value))}' for value in values.ravel())}]"
            for name, values in (("begins", self.begins), ("rows", self.rows))
        )
        return f"""
{begins}
{rows}
define internal void @{symbol}.{lanes}(ptr %in0, ptr %out0) nounwind {{
entry:
  br label %lane
lane:
  %k = phi i64 [ 0, %entry ], [ %k.next, %copied ]
  %t.at = getelementptr inbounds double, ptr %in0, i64 %k
  %t = load double, ptr %t.at, align 8
  br label %search
search:
  %low = phi i64 [ 0, %lane ], [ %low.next, %search ]
  %high = phi i64 [ {count}, %lane ], [ %high.next, %search ]
  %sum = add i64 %low, %high
  %middle = lshr i64 %sum, 1
  %begin.at = getelementptr inbounds double, ptr @{symbol}.{lanes}.begins, i64 %middle
  %begin = load double, ptr %begin.at, align 8
  %begun = fcmp ole double %begin, %t
  %low.next = select i1 %begun, i64 %middle, i64 %low
  %high.next = select i1 %begun, i64 %high, i64 %middle
  %width = sub i64 %high.next, %low.next
  %wide = icmp sgt i64 %width, 1
  br i1 %wide, label %search, label %found
found:
  %first = mul i64 %low.next, {width}
  br label %copy
copy:
  %i = phi i64 [ 0, %found ], [ %i.next, %copy ]
  %from = add i64 %first, %i
  %value.at = getelementptr inbounds double, ptr @{symbol}.{lanes}.rows, i64 %from
  %value = load double, ptr %value.at, align 8
  %scaled = mul i64 %i, {lanes}
  %to = add i64 %scaled, %k
  %out.at = getelementptr inbounds double, ptr %out0, i64 %to
  store double %value, ptr %out.at, align 8
  %i.next = add i64 %i, 1
  %i.more = icmp slt i64 %i.next, {width}
  br i1 %i.more, label %copy, label %copied
copied:
  %k.next = add i64 %k, 1
  %k.more = icmp slt i64 %k.next, {lanes}
  br i1 %k.more, label %lane, label %finish
finish:
  ret void
}}
"""


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
