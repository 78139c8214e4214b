"""Object code for the processor of this machine, linked into this process."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable, Sequence
from typing import Any

from cosim.compile.object_code import llvm, target_machine

_numbers = itertools.count()


def linked(objects: Sequence[bytes], name: str, result: Any = None) -> Callable[..., Any]:
    """The function `name` of the objects, which may call the C library; arguments are addresses and whole numbers."""
    builder = llvm().JITLibraryBuilder().add_current_process()
    for code in objects:
        builder.add_object_img(code)
    jit = llvm().create_lljit_compiler(target_machine())
    tracker = builder.export_symbol(name).link(jit, f"linked{next(_numbers)}")
    address = tracker[name]

    def call(*arguments: int) -> Any:
        # keeps the code as long as the function
        return ctypes.CFUNCTYPE(result, *[ctypes.c_int64] * len(arguments))(address)(*arguments) if tracker else None

    return call
