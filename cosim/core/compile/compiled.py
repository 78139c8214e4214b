"""Compiled functions as Python callables: numpy arrays of one state or of a batch in, numpy arrays out."""

from __future__ import annotations

import ctypes
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from cosim.core.compile import array_entry, python_call
from cosim.core.compile.array_entry import ArrayPort
from cosim.core.compile.jit import Library, vector_lanes
from cosim.core.compile.native_method import builtin
from cosim.core.compile.routine import Routine, definitions
from cosim.core.compile.trace import RoutineBase
from cosim.core.errors import CompileError
from cosim.core.ops import is_symbolic
from cosim.core.types import Numeric

INTERPRET_VARIABLE = "COSIM_INTERPRET"

Output = np.ndarray | Sequence[np.ndarray] | None  # array(s) to fill


def interpreting() -> bool:
    """Whether the environment variable COSIM_INTERPRET selects the Python reference instead of machine code."""
    return os.environ.get(INTERPRET_VARIABLE, "") not in ("", "0")


class _Function(ABC):
    """The common part of the interpreted and the compiled form: checks of arguments and outputs."""

    fn: Callable[..., Numeric]  # the same function in Python

    def __init__(self, name: str, inputs: Sequence[ArrayPort], outputs: Sequence[ArrayPort]) -> None:
        self.name, self.inputs, self.outputs = name, tuple(inputs), tuple(outputs)

    @abstractmethod
    def _evaluate(self, arrays: list[np.ndarray], targets: list[np.ndarray], k: int | None) -> None:
        """Fill the targets from the arrays; k rows of each, or one state (None)."""

    def __call__(self, *arguments: ArrayLike, out: Output = None, **named: ArrayLike) -> Numeric:
        """One state: arrays of the ports' shapes. A batch: arrays with a leading dimension k (single arrays are
        repeated). Returns a new array (a tuple for several outputs), or `out` after filling it.
        `out` may be an input array, but must not overlap one otherwise.

        Raises TypeError or ValueError that names the argument.
        """
        if any(map(is_symbolic, arguments)):  # in the trace of another function
            return self.fn(*arguments)
        if len(arguments) == len(self.inputs) + 1 and out is None:
            arguments, out = arguments[:-1], cast(Output, arguments[-1])
        names = [p.name for p in self.inputs[len(arguments) :]]
        if named and sorted(named) == sorted(names):
            arguments = (*arguments, *(named[name] for name in names))
        elif named or len(arguments) != len(self.inputs):
            wanted = ", ".join(p.name for p in self.inputs)
            got = ", ".join([str(len(arguments)), *named])
            raise TypeError(f"{self.name}({wanted}) takes {len(self.inputs)} arrays, got {got}")
        arrays = [self._array(a, p) for a, p in zip(arguments, self.inputs, strict=True)]
        rows = {len(a) for a, p in zip(arrays, self.inputs, strict=True) if a.ndim > len(p.shape)}
        if len(rows) > 1:
            raise ValueError(f"{self.name}: batches of different lengths {sorted(rows)}")
        k = rows.pop() if rows else None
        lead = () if k is None else (k,)
        arrays = [_rows_of(a, lead + p.shape) for a, p in zip(arrays, self.inputs, strict=True)]
        targets = self._targets(out, lead)
        if k != 0:
            self._evaluate(arrays, targets, k)
        if out is not None:
            return out
        return targets[0] if len(targets) == 1 else tuple(targets)

    def _array(self, value: ArrayLike, port: ArrayPort) -> np.ndarray:
        try:
            array = np.asarray(value, dtype=bool if port.boolean else float)
        except (TypeError, ValueError, OverflowError) as error:
            raise TypeError(f"{self.name}: {port.name} is not an array of numbers: {error}") from None
        n = len(port.shape)
        if array.shape[array.ndim - n :] != port.shape or array.ndim not in (n, n + 1):
            raise ValueError(
                f"{self.name}: {port.name} has shape {array.shape}; it must be {port.shape},"
                f" or (k, {', '.join(map(str, port.shape))}) for a batch of k"
            )
        return array

    def _targets(self, out: Output, lead: tuple[int, ...]) -> list[np.ndarray]:
        shapes = [lead + p.shape for p in self.outputs]
        if out is None:
            return [np.empty(s) for s in shapes]
        targets: list[object] = [out] if len(shapes) == 1 else list(out) if isinstance(out, (tuple, list)) else []
        if len(targets) != len(shapes):
            raise ValueError(f"{self.name}: out must be a tuple of {len(shapes)} arrays")
        checked: list[np.ndarray] = []
        for target, shape in zip(targets, shapes, strict=True):
            if not isinstance(target, np.ndarray) or not _is_fit(target, shape):
                raise ValueError(f"{self.name}: out must be a writeable, contiguous float64 array of shape {shape}")
            checked.append(target)
        return checked


def _rows_of(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The array in this shape, in one piece; a single one is repeated."""
    return np.asarray(array if array.shape == shape else np.broadcast_to(array, shape), order="C")


def _is_fit(out: np.ndarray, shape: tuple[int, ...]) -> bool:
    """Whether compiled code can write to this array."""
    return out.shape == shape and out.dtype == np.float64 and out.flags.c_contiguous and out.flags.writeable


class Interpreted(_Function):
    """The Python function itself, row by row: the reference."""

    def __init__(
        self, fn: Callable[..., Numeric], name: str, inputs: Sequence[ArrayPort], outputs: Sequence[ArrayPort]
    ) -> None:
        super().__init__(name, inputs, outputs)
        self.fn = fn
        self.native = self

    def _evaluate(self, arrays: list[np.ndarray], targets: list[np.ndarray], k: int | None) -> None:
        for row in [()] if k is None else np.ndindex(k):
            with np.errstate(all="ignore"):  # machine code gives no warnings
                results = self.fn(*(a[row] for a in arrays))
            results = results if isinstance(results, tuple) else (results,)
            for target, result in zip(targets, results, strict=True):
                target[row] = result


class BatchFunction(_Function):
    """Machine code for batches, as plain data that can be sent to another process of this machine: its code is compiled
    and linked at the first call, in whichever process that is."""

    def __init__(
        self, name: str, inputs: Sequence[ArrayPort], outputs: Sequence[ArrayPort], code: str, symbol: str
    ) -> None:
        """code: LLVM IR that defines the entry `symbol`."""
        super().__init__(name, inputs, outputs)
        self.code, self.symbol = code, symbol

    @staticmethod
    def of(routine: RoutineBase, inputs: Sequence[ArrayPort]) -> BatchFunction:
        """A routine in SIMD lanes."""
        symbol, lanes, outputs = routine.symbol, vector_lanes(), _output_ports(routine)
        code = _code(routine, lanes, [array_entry.batch(symbol, inputs, outputs, lanes)])
        return BatchFunction(routine.name, inputs, outputs, code, f"{symbol}.batch")

    def __reduce__(self) -> tuple[Any, ...]:
        return BatchFunction, (self.name, self.inputs, self.outputs, self.code, self.symbol)

    @cached_property
    def _library(self) -> Library:
        return Library(self.code, [self.symbol], python_call.symbol_addresses())

    def begin(self) -> None:
        """Compile long code in other processes until the first call."""
        self._library  # noqa: B018

    @property
    def address(self) -> int:
        return self._library[self.symbol]

    @cached_property
    def entry(self) -> Callable[..., None]:
        """Takes the addresses of all arrays, and the length of the batch."""
        pointers = [ctypes.c_void_p] * (len(self.inputs) + len(self.outputs))
        return ctypes.CFUNCTYPE(None, *pointers, ctypes.c_int64)(self.address)

    def _evaluate(self, arrays: list[np.ndarray], targets: list[np.ndarray], k: int | None) -> None:
        self.entry(*(array.ctypes.data for array in (*arrays, *targets)), 1 if k is None else k)


class Compiled(_Function):
    """Machine code. `native` is the same function as a CPython builtin with the shortest call path: float64 arrays of
    exact shape, and lists of numbers for one state, are checked and processed without Python code."""

    def __init__(self, routine: RoutineBase, inputs: Sequence[ArrayPort]) -> None:
        outputs = _output_ports(routine)
        super().__init__(routine.name, inputs, outputs)
        self.fn, self.routine, symbol = routine.fn, routine, routine.symbol
        self._pointers = [ctypes.c_void_p] * (len(inputs) + len(outputs))
        texts = [array_entry.single(symbol, inputs, outputs), python_call.python_call(symbol, inputs, outputs)]
        exports = [f"{symbol}.{name}" for name in ("one", "call", "many")]
        self.library = Library(_code(routine, 1, texts), exports, python_call.symbol_addresses())
        self._one = ctypes.CFUNCTYPE(None, *self._pointers)(self.library[f"{symbol}.one"])
        self._lock, self._many = threading.Lock(), None
        self.call_address = self.library[f"{symbol}.call"]
        # its `__self__`, this object, keeps the code alive
        self.native = builtin(self.name, self.call_address, self) if python_call.layout_is_known() else self

    @cached_property
    def for_batches(self) -> BatchFunction:
        """The same function for batches only."""
        return BatchFunction.of(self.routine, self.inputs)

    @property
    def _batch(self) -> Callable[..., None]:
        """The entry for batches, compiled at the first batch; afterwards `native` calls it too."""
        with self._lock:
            if self._many is None:
                self._many = self.for_batches.entry
                address = self.for_batches.address
                ctypes.c_void_p.from_address(self.library[f"{self.routine.symbol}.many"]).value = address
            return self._many

    def _evaluate(self, arrays: list[np.ndarray], targets: list[np.ndarray], k: int | None) -> None:
        pointers = [a.ctypes.data for a in (*arrays, *targets)]
        if k is None:
            self._one(*pointers)
        else:
            self._batch(*pointers, k)


def _output_ports(routine: RoutineBase) -> list[ArrayPort]:
    return [ArrayPort(f"out{i}", s) for i, s in enumerate(routine.output_shapes)]


def _code(routine: RoutineBase, lanes: int, entries: list[str]) -> str:
    """IR of the routine for this number of SIMD lanes, with the texts of its entries."""
    return "\n".join([definitions({lanes: [routine]}, python_call.declarations()), *entries])


def compile(
    fn: Callable[..., Numeric] | RoutineBase,
    inputs: Sequence[ArrayPort],
    name: str = "",
    outputs: Sequence[ArrayPort] | None = None,
    interpret: bool | None = None,
) -> Compiled | Interpreted:
    """A callable on numpy arrays from a pure function.

    fn: takes one array per port and returns an array or a tuple of arrays, or a ready `Routine`.
    interpret: run the Python function instead of machine code (default: by the environment); `outputs` gives the
    shapes of its results, by default they are traced.
    Raises CompileError when the function cannot be traced or uses an operation without machine code.
    """
    made = _interpreted_or_routine(fn, inputs, name, outputs, interpret)
    return made if isinstance(made, Interpreted) else Compiled(made, inputs)


def compile_for_batches(
    fn: Callable[..., Numeric] | RoutineBase,
    inputs: Sequence[ArrayPort],
    name: str = "",
    outputs: Sequence[ArrayPort] | None = None,
    interpret: bool | None = None,
) -> BatchFunction | Interpreted:
    """The same as `compile`, for a function that is called with batches: there is no other code for one state."""
    made = _interpreted_or_routine(fn, inputs, name, outputs, interpret)
    return made if isinstance(made, Interpreted) else BatchFunction.of(made, inputs)


def _interpreted_or_routine(
    fn: Callable[..., Numeric] | RoutineBase,
    inputs: Sequence[ArrayPort],
    name: str,
    outputs: Sequence[ArrayPort] | None,
    interpret: bool | None,
) -> Interpreted | RoutineBase:
    name = name or getattr(fn, "name", None) or getattr(fn, "__name__", "function")
    if interpret if interpret is not None else interpreting():
        outputs = _output_ports(_routine(fn, inputs, name)) if outputs is None else outputs
        return Interpreted(getattr(fn, "fn", fn), name, inputs, outputs)
    routine = _routine(fn, inputs, name)
    declared = tuple(p.shape for p in outputs) if outputs is not None else routine.output_shapes
    if declared != routine.output_shapes:
        raise CompileError(f"'{name}' returns arrays of shapes {routine.output_shapes}, declared are {declared}")
    return routine


def _routine(fn: Callable[..., Numeric] | RoutineBase, inputs: Sequence[ArrayPort], name: str) -> RoutineBase:
    return fn if isinstance(fn, RoutineBase) else Routine(fn, [p.shape for p in inputs], name)
