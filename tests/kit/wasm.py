"""Modules of WebAssembly that `cosim export code` makes, run by wasmtime."""

from __future__ import annotations

import ctypes
import ctypes.util
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import wasmtime

from cosim.apps.deploy.tick_code import FUNCTIONS, TickCode
from cosim.apps.deploy.wasm_rig import WasmModule, module_of
from cosim.core.compile.compilation import compiled_here
from cosim.core.compile.operations import OF_TWO
from cosim.core.compile.stack_array import stack_need
from cosim.core.compile.targets import targets

_LIBM = ctypes.CDLL(ctypes.util.find_library("m"))


def module(code: TickCode, further: Sequence[str] = ()) -> WasmModule:
    """further: functions beside FUNCTIONS."""
    functions = [f"{code.name}_{name}" for name in (*FUNCTIONS, *further)]
    return module_of(compiled_here(code.ir, targets()["wasm"]), functions, stack_need(code.ir))


class WasmRig:
    """A rig in a module: its memory (n,), where the next run begins."""

    def __init__(self, code: TickCode, built: bytes) -> None:
        self.code, self.store = code, wasmtime.Store()
        compiled = wasmtime.Module(self.store.engine, built)
        imports = [wasmtime.Func(self.store, each.type, _of_libm(each.name)) for each in compiled.imports]
        self.exports: Any = wasmtime.Instance(self.store, compiled, imports).exports(self.store)
        self._memory, self._at = self.exports["memory"], self.exports["__heap_base"].value(self.store)
        self._reach(self._at + 8 * code.size)
        self.call("reset")

    def call(self, name: str, *arguments: int) -> Any:
        return self.exports[f"{self.code.name}_{name}"](self.store, self._at, *arguments)

    def ticks(self, first: int, count: int) -> int:
        return self.call("ticks", first, count)

    def read(self, count: int, at: int = 0) -> np.ndarray:
        """(count,) doubles of the memory from the place `at` on."""
        start = self._at + 8 * at
        self._reach(start + 8 * count)
        return np.frombuffer(bytes(self._memory.read(self.store, start, start + 8 * count)))

    def write(self, values: np.ndarray, at: int = 0) -> None:
        self._reach(self._at + 8 * (at + values.size))
        self._memory.write(self.store, values.astype(float).tobytes(), self._at + 8 * at)

    def result(self, name: str, count: int) -> np.ndarray:
        """(count,) doubles that a function of the memory returns."""
        self._reach(self._at + 8 * (self.code.size + count))
        self.call(name, self._at + 8 * self.code.size)
        return self.read(count, self.code.size)

    def lane_signals(self, lanes: int, count: int) -> np.ndarray:
        """(count, lanes) signals of runs side by side."""
        free = lanes * self.code.size
        self._reach(self._at + 8 * (free + lanes * count))
        self.call("lanes_signals", self._at + 8 * free)
        return self.read(lanes * count, free).reshape(count, lanes)

    def _reach(self, end: int) -> None:
        while self._memory.data_len(self.store) < end:
            self._memory.grow(self.store, 1)


def _of_libm(name: str) -> Callable[..., float]:
    function = _LIBM[name]
    function.restype, function.argtypes = ctypes.c_double, [ctypes.c_double] * (2 if name in OF_TWO else 1)
    return function
