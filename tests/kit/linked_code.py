"""Object code for the processor of this machine, linked into this process."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

from cosim.core.compile import jit


def linked(objects: Sequence[bytes], name: str, result: Any = None) -> Callable[..., Any]:
    """The function `name` of the objects, which may call the C library; arguments are addresses and whole numbers."""
    addresses = jit.linked(objects, [name])

    def call(*arguments: int) -> Any:
        # a reference to the code, which it keeps
        return ctypes.CFUNCTYPE(result, *[ctypes.c_int64] * len(arguments))(addresses[name])(*arguments)

    return call
