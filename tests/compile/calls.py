"""Calls of machine code of this room's tests."""

import ctypes

import numpy as np

from cosim.core.compile import ArrayPort, emit, mathlib
from cosim.core.compile.jit import Library
from cosim.core.compile.routine import with_callees
from cosim.core.compile.trace import RoutineBase


def ports(**shapes: tuple[int, ...]) -> list[ArrayPort]:
    return [ArrayPort(name, shape) for name, shape in shapes.items()]


def entry(routine: RoutineBase, count: int, lanes: int = 1) -> str:
    """The code of a routine with `count` pointers, as the function `entry`."""
    pointers = ", ".join(f"ptr %p{k}" for k in range(count))
    code = [emit.declarations({1, lanes}), mathlib.sincos(lanes), *(r.definition(lanes) for r in with_callees(routine))]
    call = f"  call void @{routine.symbol}.{lanes}({pointers})\n  ret void\n"
    return "\n".join([*code, f"define void @entry({pointers}) {{\n{call}}}\n"])


def run(routine: RoutineBase, lanes: int, *arrays: np.ndarray) -> None:
    """The machine code of a routine on the memory of the arrays: inputs, then outputs."""
    library = Library(entry(routine, len(arrays), lanes), ["entry"], {})
    ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(arrays))(library["entry"])(*(a.ctypes.data for a in arrays))
