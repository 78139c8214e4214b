"""Arrays that end where a page begins that must not be touched: machine code that goes beyond one ends the process, and
what it writes before one is found."""

from __future__ import annotations

import ctypes
import mmap
from typing import Any

import numpy as np

PAGE, MARK = mmap.PAGESIZE, 0xA5
_mprotect = ctypes.CDLL(None, use_errno=True).mprotect
_mprotect.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int


class GuardedNumpy:
    """In place of the module `numpy` in a module that makes memory for machine code."""

    def __init__(self) -> None:
        self._before: list[np.ndarray] = []  # bytes before each array

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    def zeros(self, *arguments: Any) -> np.ndarray:
        return self.guarded(np.zeros(*arguments))

    def array(self, *arguments: Any) -> np.ndarray:
        return self.guarded(np.array(*arguments))

    def ascontiguousarray(self, *arguments: Any) -> np.ndarray:
        return self.guarded(np.ascontiguousarray(*arguments))

    def frombuffer(self, *arguments: Any) -> np.ndarray:
        found = np.frombuffer(*arguments).view(_Source)
        found.memory = self
        return found

    def guarded(self, array: np.ndarray) -> np.ndarray:
        """A copy between two pages that must not be touched, at the end of its own."""
        size = array.nbytes
        pages = max(-(-size // PAGE), 1)
        area = mmap.mmap(-1, (pages + 2) * PAGE)
        address = ctypes.addressof(ctypes.c_char.from_buffer(area))
        for page in (0, pages + 1):
            assert _mprotect(address + page * PAGE, PAGE, 0) == 0
        start = (pages + 1) * PAGE - size
        before = np.frombuffer(area, np.uint8, start - PAGE, PAGE)
        before[:] = MARK
        self._before.append(before)
        copy = np.frombuffer(area, array.dtype, array.size, start).reshape(array.shape)
        copy[...] = array
        return copy

    @property
    def intact(self) -> bool:
        """Whether nothing was written before an array."""
        return all((before == MARK).all() for before in self._before)


class _Source(np.ndarray):
    """What `frombuffer` gives: its copies are guarded."""

    memory: GuardedNumpy

    def copy(self, order: Any = "C") -> np.ndarray:
        return self.memory.guarded(np.asarray(self))
