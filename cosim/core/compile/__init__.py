"""Pure Python functions to machine code: trace, lower, emit LLVM IR, compile in process, cache on disk."""

from cosim.core.compile.array_entry import ArrayPort
from cosim.core.compile.compiled import BatchFunction, Compiled, Interpreted, compile, compile_for_batches, interpreting
from cosim.core.compile.routine import Routine
from cosim.core.compile.while_loop import repeat

__all__ = [
    "ArrayPort",
    "BatchFunction",
    "Compiled",
    "Interpreted",
    "Routine",
    "compile",
    "compile_for_batches",
    "interpreting",
    "repeat",
]
