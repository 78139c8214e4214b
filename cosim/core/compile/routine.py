"""A routine: a pure function on arrays of known shapes that has, or will have, machine code."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Self

from cosim.core import ops
from cosim.core.compile import emit, mathlib
from cosim.core.compile.like_items import with_loops
from cosim.core.compile.lower import Graph, fuse, lower
from cosim.core.compile.trace import (
    RecordedCall,
    RoutineBase,
    Shape,
    Trace,
    is_recorded,
    origin,
    record_call,
    single_or_tuple,
    trace,
)
from cosim.core.types import Numeric


class Routine(RoutineBase):
    """A traced function."""

    def __init__(
        self, fn: Callable[..., Numeric], shapes: Sequence[Shape], name: str, uniform: Sequence[int] = ()
    ) -> None:
        """`fn` takes one array per shape and returns an array or a tuple of arrays.

        uniform: inputs that in a batch are one array of doubles for all SIMD lanes.
        Raises CompileError if it cannot be traced.
        """
        name = _identifier(name)
        self._set(fn, trace(fn, shapes, name), shapes, uniform)

    @classmethod
    def of_trace(cls, trace: Trace, fn: Callable[..., Numeric]) -> Self:
        """The routine of a trace derived from the trace of `fn`, with vectors as arguments."""
        made = cls.__new__(cls)
        made._set(fn, trace, [(column.numel(),) for column in trace.inputs])
        return made

    def _set(
        self, fn: Callable[..., Numeric], trace: Trace, shapes: Sequence[Shape], uniform: Sequence[int] = ()
    ) -> None:
        self.fn, self.name, self.shapes, self.uniform = fn, trace.name, tuple(shapes), tuple(uniform)
        self.trace = trace
        self.output_shapes = tuple(trace.output_shapes)
        self.symbolic_parameters = trace.symbolic_parameters

    @cached_property
    def graph(self) -> Graph:
        graph = self.unfused
        fuse(graph)
        return graph

    @property
    def unfused(self) -> Graph:
        """A new graph with products and sums apart."""
        return lower(self.trace, emit.supported, origin(self.fn))

    @cached_property
    def _code(self) -> tuple[Graph, Sequence[RecordedCall]]:
        """The graph with its calls, and loops over like items where it is long."""
        return with_loops(self.graph, self.trace.calls)

    @property
    def callees(self) -> list[RoutineBase]:
        return [call.routine for call in self._code[1]]

    @property
    def operations(self) -> int:
        """Arithmetic operations of one evaluation, calls included."""
        return self.graph.operations + sum(call.routine.operations for call in self.trace.calls)

    @property
    def _content(self) -> str:
        """The graph, which costs less than its code for one lane; code for batches needs no other."""
        graph, callees = self.graph, [callee.symbol for callee in self.callees]
        return repr((graph.nodes, graph.outputs, graph.arguments, callees, self.shapes, self.uniform))

    def _text(self, symbol: str, lanes: int) -> str:
        graph, calls = self._code
        return emit.function(symbol, graph, calls, lanes, len(self.trace.inputs), self.uniform)


def call_when(
    condition: Numeric,
    fn: RoutineBase | Callable[..., Numeric],
    arguments: Sequence[Numeric],
    otherwise: Sequence[Numeric],
) -> Numeric:
    """fn(*arguments) where the condition holds, else `otherwise` (one array per output of fn).

    On symbols fn is a Routine, and its code is skipped if the condition does not hold. In a batch it runs for all SIMD
    lanes if the condition holds in any, and each row takes its results only where its own condition holds.
    """
    if is_recorded((condition,)):
        assert isinstance(fn, RoutineBase)
        return single_or_tuple(record_call(fn, arguments, condition, otherwise))
    if ops.is_symbolic(condition):  # inlined: both are expressions, one is selected
        results = fn(*arguments)
        results = results if isinstance(results, tuple) else (results,)
        return single_or_tuple([ops.where(condition, a, b) for a, b in zip(results, otherwise, strict=True)])
    return fn(*arguments) if condition else single_or_tuple(list(otherwise))


def _identifier(name: str) -> str:
    """The name with characters that LLVM does not allow replaced."""
    return re.sub(r"^(?=\d)|[^A-Za-z0-9_]", "_", name)


def definitions(wanted: Mapping[int, Iterable[RoutineBase]], *declared: str) -> str:
    """LLVM IR of routines and of all that they call, each once, by the number of SIMD lanes; declared: IR before it."""
    # scalar code has the sines for TOGETHER lanes
    sines = [mathlib.sincos(lanes) for lanes in wanted if not (1 in wanted and lanes == mathlib.TOGETHER)]
    needed = {
        f"{item.symbol}.{lanes}": item.definition(lanes)
        for lanes, routines in wanted.items()
        for routine in routines
        for item in with_callees(routine)
    }
    return "\n".join([emit.declarations(set(wanted)), *declared, *sines, *needed.values()])


def with_callees(routine: RoutineBase) -> list[RoutineBase]:
    """The routine and all routines it calls, each once, callees first."""
    found: dict[str, RoutineBase] = {}

    def visit(item: RoutineBase) -> None:
        if item.symbol not in found:
            for callee in item.callees:
                visit(callee)
            found.setdefault(item.symbol, item)

    visit(routine)
    return list(found.values())
