"""A routine: a pure function on arrays of known shapes that has, or will have, machine code."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np

from cosim import ops
from cosim.compile import emit
from cosim.compile.lower import Graph, lower
from cosim.compile.trace import RoutineLike, Shape, Trace, is_recorded, origin, record_call, trace
from cosim.types import Numeric


class Routine:
    """A traced function. Called with numbers it is the Python function; called with symbols during the trace of
    another function it becomes one call in the code of that function."""

    def __init__(
        self, fn: Callable[..., Numeric], shapes: Sequence[Shape], name: str, uniform: Sequence[int] = ()
    ) -> None:
        """`fn` takes one array per shape and returns an array or a tuple of arrays.

        uniform: inputs that in a batch are one array of doubles for all SIMD lanes.
        Raises CompileError if it cannot be traced.
        """
        self.fn, self.name, self.shapes = fn, _identifier(name), tuple(shapes)
        self.uniform = tuple(uniform)
        self._trace: Trace = trace(fn, shapes, self.name)
        self.output_shapes = tuple(self._trace.output_shapes)

    @property
    def output_sizes(self) -> tuple[int, ...]:
        return tuple(int(np.prod(s, dtype=int)) for s in self.output_shapes)

    @cached_property
    def graph(self) -> Graph:
        return lower(self._trace, emit.supported, origin(self.fn))

    @property
    def callees(self) -> list[RoutineLike]:
        return [call.routine for call in self._trace.calls]

    @property
    def operations(self) -> int:
        """Arithmetic operations of one evaluation, calls included."""
        return self.graph.operations + sum(callee.operations for callee in self.callees)

    @cached_property
    def _nameless(self) -> str:
        """The code for one lane, under the symbol `_`."""
        return emit.function("_", self.graph, self._trace.calls, 1, len(self.shapes), self.uniform)

    @property
    def symbol(self) -> str:
        """The name in LLVM, with a hash of the code."""
        return self._symbol

    @cached_property
    def _symbol(self) -> str:
        return f"{self.name}_{hashlib.sha256(self._nameless.encode()).hexdigest()[:12]}"

    def definition(self, lanes: int) -> str:
        if lanes == 1:
            return self._nameless.replace("@_.", f"@{self.symbol}.")
        return emit.function(self.symbol, self.graph, self._trace.calls, lanes, len(self.shapes), self.uniform)

    def __call__(self, *arguments: Numeric) -> Numeric:
        if not is_recorded(arguments):
            return self.fn(*arguments)
        return _plain(record_call(self, arguments))


def call_when(condition: Numeric, fn: Numeric, arguments: Sequence[Numeric], otherwise: Sequence[Numeric]) -> Numeric:
    """fn(*arguments) where the condition holds, else `otherwise` (one array per output of fn).

    On symbols fn is a Routine, and its code is skipped if the condition does not hold; in a batch it runs for all
    lanes if the condition holds in any, so the condition must be the same for every row.
    """
    if is_recorded((condition,)):
        return _plain(record_call(fn, arguments, condition, otherwise))
    if ops.is_symbolic(condition):  # inlined: both are expressions, one is selected
        results = fn(*arguments)
        results = results if isinstance(results, tuple) else (results,)
        return _plain([ops.where(condition, a, b) for a, b in zip(results, otherwise, strict=True)])
    return fn(*arguments) if condition else _plain(list(otherwise))


def _plain(results: list[Numeric]) -> Numeric:
    return results[0] if len(results) == 1 else tuple(results)


def _identifier(name: str) -> str:
    """The name with characters that LLVM does not allow replaced."""
    return re.sub(r"^(?=\d)|[^A-Za-z0-9_]", "_", name)


def with_callees(routine: RoutineLike) -> list[RoutineLike]:
    """The routine and all routines it calls, each once, callees first."""
    found: dict[str, RoutineLike] = {}

    def visit(item: RoutineLike) -> None:
        if item.symbol not in found:
            for callee in item.callees:
                visit(callee)
            found.setdefault(item.symbol, item)

    visit(routine)
    return list(found.values())
