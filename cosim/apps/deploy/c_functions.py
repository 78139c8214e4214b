"""Routines as functions that C calls, and their object code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from cosim.core.compile import routine
from cosim.core.compile.compilation import Compilation, modules
from cosim.core.compile.object_code import CodeTarget
from cosim.core.compile.trace import RoutineBase

NONE: Mapping[int, Sequence[RoutineBase]] = MappingProxyType({})


def definitions(routines: Sequence[RoutineBase], in_lanes: Mapping[int, Sequence[RoutineBase]] = NONE) -> str:
    """LLVM IR of the routines and of all that they call, each once; in_lanes: others by a number of SIMD lanes."""
    return routine.definitions({1: routines, **in_lanes})


def function(name: str, called: RoutineBase, inputs: Sequence[str], outputs: Sequence[str]) -> str:
    """IR of `void @name(inputs, numbers, outputs)`, all pointers; numbers: those that are open."""
    hidden = ("numbers",) if called.symbolic_parameters is not None else ()
    head, given = (
        ", ".join(f"ptr %{each}" for each in names)
        for names in ((*inputs, "numbers", *outputs), (*inputs, *hidden, *outputs))
    )
    call = f"  call void @{called.symbol}.1({given})"
    return "\n".join([f"define void @{name}({head}) nounwind {{", call, "  ret void", "}"]) + "\n"


def objects_of(code: str, target: CodeTarget) -> list[bytes]:
    """Object code of LLVM IR; none of it calls more than the C library and its mathematics. Raises CompileError."""
    return Compilation(modules(code), target).result()
