"""Object code for the processor of this machine, linked into this process."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable, Sequence
from typing import Any

from cosim.compile.object_code import llvm, target_machine

_numbers = itertools.count()


class NativeCode:
    """The functions of an object, which may call the C library; it has to live as long as they are called."""

    def __init__(self, content: bytes, names: Sequence[str]) -> None:
        builder = llvm().JITLibraryBuilder().add_current_process()
        builder.add_object_img(content)
        for name in names:
            builder.export_symbol(name)
        self._tracker = builder.link(llvm().create_lljit_compiler(target_machine()), f"object{next(_numbers)}")

    def function(self, name: str, result: Any, *arguments: Any) -> Callable[..., Any]:
        """result, arguments: types of ctypes."""
        return ctypes.CFUNCTYPE(result, *arguments)(self._tracker[name])
