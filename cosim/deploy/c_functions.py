"""Routines as functions that C calls, and their object code."""

from __future__ import annotations

from collections.abc import Sequence

from cosim.compile import emit, mathlib
from cosim.compile.compilation import Compilation
from cosim.compile.modules import modules
from cosim.compile.object_code import CodeTarget
from cosim.compile.routine import with_callees
from cosim.compile.trace import RoutineBase


def definitions(routines: Sequence[RoutineBase]) -> str:
    """LLVM IR of the routines and of all that they call, each once."""
    needed = {item.symbol: item for routine in routines for item in with_callees(routine)}
    return "\n".join([emit.declarations({1}), mathlib.sincos(1), *(item.definition(1) for item in needed.values())])


def function(name: str, routine: RoutineBase, inputs: Sequence[str], outputs: Sequence[str]) -> str:
    """IR of `void @name(inputs, numbers, outputs)`, all pointers; numbers: those that are open."""
    hidden = ("numbers",) if routine.open_numbers is not None else ()
    head, given = (
        ", ".join(f"ptr %{each}" for each in names)
        for names in ((*inputs, "numbers", *outputs), (*inputs, *hidden, *outputs))
    )
    call = f"  call void @{routine.symbol}.1({given})"
    return "\n".join([f"define void @{name}({head}) nounwind {{", call, "  ret void", "}"]) + "\n"


def objects_of(code: str, target: CodeTarget) -> list[bytes]:
    """Object code of LLVM IR; none of it calls more than the C library and its mathematics. Raises CompileError."""
    return Compilation(modules(code), target).result()
