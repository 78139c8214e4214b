"""Object code for the processor of this machine, linked into this process."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

from cosim.core.compile.jit import linked


class NativeCode:
    """The functions of an object, which may call the C library; it has to live as long as they are called."""

    def __init__(self, content: bytes, names: Sequence[str]) -> None:
        self._addresses = linked([content], names)

    def function(self, name: str, result: Any, *arguments: Any) -> Callable[..., Any]:
        """result, arguments: types of ctypes."""
        return ctypes.CFUNCTYPE(result, *arguments)(self._addresses[name])
