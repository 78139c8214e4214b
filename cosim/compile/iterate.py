"""A routine called again and again in machine code, without the interpreter: ticks of a rig."""

from __future__ import annotations

import ctypes

import numpy as np

from cosim.compile import emit, mathlib
from cosim.compile.jit import Library
from cosim.compile.routine import Routine, with_callees


class Iteration:
    """x, row, stop = step(k, p, x) for k = first, first + 1, …, until `stop` is not 0.

    Runs without holding the interpreter's lock. step: a Routine of (k (), p (np,), x (nx,)) that returns
    (x (nx,), row (nr,), stop ()).
    """

    def __init__(self, step: Routine) -> None:
        self.step = step
        self.row_size = step.output_sizes[1]
        parts = [emit.declarations({1}), mathlib.sincos(1), *(r.definition(1) for r in with_callees(step))]
        parts.append(_loop(step.symbol, self.row_size))
        self.library = Library("\n".join(parts), [f"{step.symbol}.loop"], {})
        pointers = [ctypes.c_void_p] * 3
        self._run = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, *pointers)(
            self.library[f"{step.symbol}.loop"]
        )

    def __call__(self, first: int, count: int, p: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, bool]:
        """`count` steps from number `first`; x is changed in place. (rows of the steps taken, stopped)."""
        rows = np.empty((count, self.row_size))
        taken = self._run(first, count, p.ctypes.data, x.ctypes.data, rows.ctypes.data)
        return rows[: abs(taken)], taken < 0


def _loop(symbol: str, row: int) -> str:
    """IR of `i64 @symbol.loop(first, count, p, x, rows)`: steps taken, negative when the last one stopped it."""
    return f"""
define i64 @{symbol}.loop(i64 %first, i64 %count, ptr %p, ptr %x, ptr %rows) nounwind {{
entry:
  %number = alloca double, align 8
  %stop = alloca double, align 8
  br label %head
head:
  %k = phi i64 [ 0, %entry ], [ %k.next, %again ]
  %more = icmp slt i64 %k, %count
  br i1 %more, label %body, label %finish
body:
  %n = add i64 %first, %k
  %n.real = sitofp i64 %n to double
  store double %n.real, ptr %number, align 8
  %offset = mul i64 %k, {row}
  %row = getelementptr inbounds double, ptr %rows, i64 %offset
  call void @{symbol}.1(ptr %number, ptr %p, ptr %x, ptr %x, ptr %row, ptr %stop)
  %k.next = add i64 %k, 1
  %stop.value = load double, ptr %stop, align 8
  %stopped = fcmp une double %stop.value, {mathlib.constant(0.0)}
  br i1 %stopped, label %halt, label %again
again:
  br label %head
halt:
  %taken = sub i64 0, %k.next
  ret i64 %taken
finish:
  ret i64 %count
}}
"""
