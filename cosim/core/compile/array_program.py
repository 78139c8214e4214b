"""Programs over arrays: loops, conditions, sums of rows and calls of routines on parts of arrays, written once.

A program is a Python function of a machine and spans of arrays. On numbers the machine is `PythonArrays`, which does
each step with numpy; for machine code it is `CodeArrays`, which writes the step as IR, loops as loops. So the length of
the code does not grow with the sizes of the arrays, and there is one source for both.

A loop, a condition and a repetition are written as `for` statements:

    for i in machine.loop(n): ...           i = 0 … n − 1
    for _ in machine.when(flag): ...        once where flag is not 0, else not at all
    for _ in machine.repeat(flag, n): ...   while flag is not 0, at most so often

In a batch a block of `when` and `repeat` runs for all SIMD lanes while any of them needs it. What outlives such a block
is therefore changed with `choose`, which takes the flag of each lane, or by a routine that takes it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from cosim.core import ops
from cosim.core.compile.loops import Buffer, LoopWriter
from cosim.core.compile.mathlib import TOGETHER, constant, real, suffix
from cosim.core.compile.trace import RoutineBase, Shape, origin
from cosim.core.errors import CompileError
from cosim.core.types import Numeric

UNROLLED = 3  # elements up to which a span is written out


@dataclass(frozen=True)
class Index:
    """A whole number Σ factor · loop variable + constant of the code that is written."""

    terms: tuple[tuple[str, int], ...]
    constant: int = 0

    def __add__(self, other: Place) -> Index:
        if isinstance(other, int):
            return replace(self, constant=self.constant + other)
        factors = dict(self.terms)
        for name, factor in other.terms:
            factors[name] = factors.get(name, 0) + factor
        return Index(tuple(factors.items()), self.constant + other.constant)

    __radd__ = __add__

    def __mul__(self, factor: int) -> Index:
        return Index(tuple((name, factor * had) for name, had in self.terms), factor * self.constant)

    __rmul__ = __mul__


Place = int | Index


@dataclass(frozen=True)
class Span:
    """`length` successive elements of an array from the element `first` on. base: the array, or its pointer in code."""

    base: Any
    length: int
    first: Place = 0

    def at(self, first: Place, length: int = 1) -> Span:
        """The part of `length` elements from `first` on, counted from the beginning of this span."""
        return replace(self, first=self.first + first, length=length)


class ArrayMachine(ABC):
    """What does the steps of a program, or writes them. A span of one element is a scalar."""

    @abstractmethod
    def space(self, length: int) -> Span:
        """A new array, whose content is not defined."""

    @abstractmethod
    def loop(self, stop: Place, start: Place = 0) -> Iterator[Any]:
        """The whole numbers from start to stop − 1."""

    @abstractmethod
    def when(self, flag: Span) -> Iterator[None]:
        """Once where the flag is not 0 (NaN is not)."""

    @abstractmethod
    def repeat(self, flag: Span, max_count: int) -> Iterator[None]:
        """While the flag is not 0, at most `max_count` times."""

    @abstractmethod
    def call(self, routine: RoutineBase, arguments: Sequence[Span], results: Sequence[Span]) -> None:
        """results = routine(arguments); a result may lie on an argument."""

    @abstractmethod
    def fill(self, target: Span, value: float) -> None:
        """Every element = value."""

    @abstractmethod
    def copy(self, target: Span, source: Span) -> None:
        """target = source, which lie apart."""

    @abstractmethod
    def choose(self, flag: Span, target: Span, source: Span) -> None:
        """target = source where the flag is not 0."""

    @abstractmethod
    def add(self, target: Span, terms: Sequence[tuple[Span, Span]], minus: bool = False) -> None:
        """target += Σ factor · source of the terms (factor, source), or −= with minus; no source lies on it."""

    @abstractmethod
    def dot(self, target: Span, a: Span, b: Span) -> None:
        """target = Σ a b, a scalar."""


class PythonArrays(ArrayMachine):
    """Does the steps on numpy arrays."""

    def space(self, length: int) -> Span:
        return Span(np.zeros(length), length)

    def loop(self, stop: Place, start: Place = 0) -> Iterator[Any]:
        return iter(range(start, stop))  # type: ignore[arg-type]  # numbers here

    def when(self, flag: Span) -> Iterator[None]:
        if _elements(flag)[0] != 0.0:
            yield

    def repeat(self, flag: Span, max_count: int) -> Iterator[None]:
        for _ in range(max_count):
            if _elements(flag)[0] == 0.0:
                return
            yield

    def call(self, routine: RoutineBase, arguments: Sequence[Span], results: Sequence[Span]) -> None:
        shaped = zip(arguments, routine.shapes, strict=True)
        found = routine.fn(*(_elements(span).copy().reshape(shape)[()] for span, shape in shaped))
        for span, value in zip(results, found if isinstance(found, tuple) else (found,), strict=True):
            _elements(span)[:] = np.ravel(value)

    def fill(self, target: Span, value: float) -> None:
        _elements(target)[:] = value

    def copy(self, target: Span, source: Span) -> None:
        _elements(target)[:] = _elements(source)

    def choose(self, flag: Span, target: Span, source: Span) -> None:
        if _elements(flag)[0] != 0.0:
            self.copy(target, source)

    def add(self, target: Span, terms: Sequence[tuple[Span, Span]], minus: bool = False) -> None:
        total = _elements(target)
        for factor, source in terms:
            total += (-1.0 if minus else 1.0) * _elements(factor)[0] * _elements(source)

    def dot(self, target: Span, a: Span, b: Span) -> None:
        _elements(target)[:] = _elements(a) @ _elements(b)


def _elements(span: Span) -> np.ndarray:
    return span.base[span.first : span.first + span.length]


class CodeArrays(ArrayMachine):
    """Writes the steps as IR. In the code of one state successive elements go together in SIMD lanes."""

    def __init__(self, symbol: str, lanes: int, inputs: int, outputs: int) -> None:
        self.writer = LoopWriter(symbol, lanes, 0, inputs, outputs)
        self.lanes, self.called = lanes, dict[str, RoutineBase]()
        self.bit = "i1" if lanes == 1 else f"<{lanes} x i1>"
        self._spaces: list[Buffer] = []
        self._blocks = 0

    def text(self) -> str:
        return self.writer.text(self._spaces)

    def space(self, length: int) -> Span:
        name = f"space{len(self._spaces)}"
        Buffer.workspace(name, 1, length, self._spaces)
        return Span(f"%{name}", length)

    # --- control ---

    def loop(self, stop: Place, start: Place = 0) -> Iterator[Any]:
        first, beyond = self._whole(start), self._whole(stop)
        for name in self._while(first, lambda name: self.writer.add(f"icmp slt i64 {name}, {beyond}"), 1):
            yield Index(((name, 1),))

    def when(self, flag: Span) -> Iterator[None]:
        n = self._block()
        self.writer.lines.append(f"  br i1 {self._any(flag)}, label %when{n}, label %after{n}")
        self.writer.label(f"when{n}")
        yield
        self.writer.lines.append(f"  br label %after{n}")
        self.writer.label(f"after{n}")

    def repeat(self, flag: Span, max_count: int) -> Iterator[None]:
        def goes_on(name: str) -> str:
            left = self.writer.add(f"icmp slt i64 {name}, {max_count}")
            return self.writer.add(f"and i1 {left}, {self._any(flag)}")

        for _ in self._while("0", goes_on, 1):
            yield

    def _while(self, first: str, goes_on: Callable[[str], str], step: int) -> Iterator[str]:
        """A loop over a variable that begins at `first`, while a condition of it holds that is written at its head."""
        w, n = self.writer, self._block()
        before = w.block
        w.lines.append(f"  br label %head{n}")
        w.label(f"head{n}")
        at = len(w.lines)
        w.lines.append("")  # the variable; the block from which the loop comes back is known at its end
        holds = goes_on(f"%i{n}")
        w.lines.append(f"  br i1 {holds}, label %body{n}, label %after{n}")
        w.label(f"body{n}")
        yield f"%i{n}"
        w.lines.append(f"  %i{n}.next = add i64 %i{n}, {step}")
        w.lines[at] = f"  %i{n} = phi i64 [ {first}, %{before} ], [ %i{n}.next, %{w.block} ]"
        w.lines.append(f"  br label %head{n}")
        w.label(f"after{n}")

    def _block(self) -> int:
        self._blocks += 1
        return self._blocks

    def _any(self, flag: Span) -> str:
        bits = self._holds(flag)
        if self.lanes == 1:
            return bits
        return self.writer.add(f"call i1 @llvm.vector.reduce.or.v{self.lanes}i1({self.bit} {bits})")

    def _holds(self, flag: Span) -> str:
        value = self.writer.load(self._pointer(flag), 0)
        return self.writer.add(f"fcmp une {self.writer.t} {value}, {constant(0.0, self.lanes)}")

    # --- steps ---

    def call(self, routine: RoutineBase, arguments: Sequence[Span], results: Sequence[Span]) -> None:
        sizes = [*map(prod, routine.shapes), *routine.output_sizes]
        assert [span.length for span in (*arguments, *results)] == sizes, (routine.name, sizes)
        self.called[routine.symbol] = routine
        typed = ", ".join(f"ptr {self._pointer(span)}" for span in (*arguments, *results))
        self.writer.lines.append(f"  call void @{routine.symbol}.{self.lanes}({typed})")

    def fill(self, target: Span, value: float) -> None:
        pointer = self._pointer(target)
        if value == 0.0 and target.length > UNROLLED:
            size = 8 * self.lanes * target.length
            self.writer.lines.append(f"  call void @llvm.memset.p0.i64(ptr {pointer}, i8 0, i64 {size}, i1 false)")
            return
        for t, lanes, index in self._parts(target.length):
            self._store(t, constant(value, lanes), pointer, index)

    def copy(self, target: Span, source: Span) -> None:
        assert target.length == source.length
        size, pointers = 8 * self.lanes * target.length, (self._pointer(target), self._pointer(source))
        typed = ", ".join(f"ptr {pointer}" for pointer in pointers)
        self.writer.lines.append(f"  call void @llvm.memcpy.p0.p0.i64({typed}, i64 {size}, i1 false)")

    def choose(self, flag: Span, target: Span, source: Span) -> None:
        assert target.length == source.length
        bits, (to, of) = self._holds(flag), (self._pointer(target), self._pointer(source))
        for t, _, index in self._parts(target.length):
            new, old = self._load(t, of, index), self._load(t, to, index)
            self._store(t, self.writer.add(f"select {self.bit} {bits}, {t} {new}, {t} {old}"), to, index)

    def add(self, target: Span, terms: Sequence[tuple[Span, Span]], minus: bool = False) -> None:
        pointer, given = self._pointer(target), []
        for factor, source in terms:
            assert source.length == target.length and factor.length == 1
            value = self.writer.load(self._pointer(factor), 0)
            given.append((self.writer.add(f"fneg {self.writer.t} {value}") if minus else value, self._pointer(source)))
        wide = [self._spread(value) for value, _ in given] if self._goes_together(target.length) else []
        for t, lanes, index in self._parts(target.length):
            total = self._load(t, pointer, index)
            for k, (value, source) in enumerate(given):
                factor = value if lanes == self.lanes else wide[k]
                typed = f"{t} {factor}, {t} {self._load(t, source, index)}, {t} {total}"
                total = self.writer.add(f"call {t} @llvm.fmuladd.{suffix(lanes)}({typed})")
            self._store(t, total, pointer, index)

    def dot(self, target: Span, a: Span, b: Span) -> None:
        """As TOGETHER sums, which are one vector in the code of one state: the bits do not depend on the lanes."""
        w, (left, right) = self.writer, (self._pointer(a), self._pointer(b))
        sums = self._pointer(self._sums)
        self.fill(self._sums, 0.0)

        def count_in(first: str, count: int) -> None:
            t, lanes, parts = (
                (real(TOGETHER), TOGETHER, 1) if self.lanes == 1 and count == TOGETHER else (w.t, self.lanes, count)
            )
            for k in range(parts):
                index = w.add(f"add i64 {first}, {k}")
                x, y, z = (self._load(t, base, at) for base, at in ((left, index), (right, index), (sums, str(k))))
                total = w.add(f"call {t} @llvm.fmuladd.{suffix(lanes)}({t} {x}, {t} {y}, {t} {z})")
                self._store(t, total, sums, str(k))

        whole = a.length // TOGETHER * TOGETHER
        for first in self._while("0", lambda name: w.add(f"icmp slt i64 {name}, {whole}"), TOGETHER):
            count_in(first, TOGETHER)
        count_in(str(whole), a.length - whole)
        values = [self._load(w.t, sums, str(k)) for k in range(TOGETHER)]
        while len(values) > 1:
            values = [w.add(f"fadd {w.t} {x}, {y}") for x, y in zip(values[::2], values[1::2], strict=True)]
        self._store(w.t, values[0], self._pointer(target), "0")

    # --- elements ---

    @cached_property
    def _sums(self) -> Span:
        return self.space(TOGETHER)

    def _goes_together(self, length: int) -> bool:
        return self.lanes == 1 and length >= TOGETHER

    def _parts(self, length: int) -> Iterator[tuple[str, int, str]]:
        """(type, its lanes, index of its first element) of each load and store of a span."""
        single = real(self.lanes)
        if length <= UNROLLED:
            yield from ((single, self.lanes, str(index)) for index in range(length))
            return
        together = length // TOGETHER * TOGETHER if self._goes_together(length) else 0
        if together:
            for name in self._while("0", lambda name: self.writer.add(f"icmp slt i64 {name}, {together}"), TOGETHER):
                yield real(TOGETHER), TOGETHER, name
        if together < length:
            for name in self._while(str(together), lambda name: self.writer.add(f"icmp slt i64 {name}, {length}"), 1):
                yield single, self.lanes, name

    def _spread(self, value: str) -> str:
        """A double in TOGETHER lanes."""
        t = real(TOGETHER)
        first = self.writer.add(f"insertelement {t} poison, double {value}, i32 0")
        return self.writer.add(f"shufflevector {t} {first}, {t} poison, <{TOGETHER} x i32> zeroinitializer")

    def _load(self, t: str, pointer: str, index: str) -> str:
        return self.writer.add(f"load {t}, ptr {self.writer.address(pointer, index)}, align 8")

    def _store(self, t: str, value: str, pointer: str, index: str) -> None:
        self.writer.lines.append(f"  store {t} {value}, ptr {self.writer.address(pointer, index)}, align 8")

    def _pointer(self, span: Span) -> str:
        return span.base if span.first == 0 else self.writer.address(span.base, self._whole(span.first))

    def _whole(self, place: Place) -> str:
        """The value of an index."""
        if isinstance(place, int):
            return str(place)
        values = [name if factor == 1 else self.writer.add(f"mul i64 {name}, {factor}") for name, factor in place.terms]
        if place.constant or not values:
            values.append(str(place.constant))
        total, *others = values
        for value in others:
            total = self.writer.add(f"add i64 {total}, {value}")
        return total


Program = Callable[[ArrayMachine, Sequence[Span], Sequence[Span]], None]


class ArrayProgram(RoutineBase):
    """A program over arrays as a routine: program(machine, inputs, outputs) fills the outputs from the inputs.

    Inputs must not be changed. Outputs may be read and changed; on entry they are not defined.
    """

    def __init__(self, program: Program, shapes: Sequence[Shape], output_shapes: Sequence[Shape], name: str) -> None:
        self.program, self.name = program, name
        self.shapes, self.output_shapes = tuple(shapes), tuple(output_shapes)

    @cached_property
    def _nameless(self) -> CodeArrays:
        """The code for one lane, under the symbol `_`."""
        return self._written("_", 1)

    @property
    def callees(self) -> Sequence[RoutineBase]:
        return list(self._nameless.called.values())

    @property
    def operations(self) -> int:
        """Arithmetic operations of the routines that it calls, each once."""
        return sum(routine.operations for routine in self.callees)

    def fn(self, *arguments: Numeric) -> Numeric:
        """On numbers. Raises CompileError on symbols, for which a loop has no expression."""
        if any(map(ops.is_symbolic, arguments)):
            what = f"'{self.name}' is a loop and has no expression, so no derivative can be taken through it"
            raise CompileError(what, origin(self.program))
        given = [np.array(argument, dtype=float).ravel() for argument in arguments]
        made = [np.zeros(size) for size in self.output_sizes]
        with np.errstate(all="ignore"):  # as machine code does
            self.program(PythonArrays(), *([Span(array, array.size) for array in arrays] for arrays in (given, made)))
        results = [array.reshape(shape)[()] for array, shape in zip(made, self.output_shapes, strict=True)]
        return results[0] if len(results) == 1 else tuple(results)

    def _text(self, symbol: str, lanes: int) -> str:
        return (self._nameless if (symbol, lanes) == ("_", 1) else self._written(symbol, lanes)).text()

    def _written(self, symbol: str, lanes: int) -> CodeArrays:
        """Outputs have their own memory until the end, because they may share theirs with inputs."""
        machine = CodeArrays(f"{symbol}.{lanes}", lanes, len(self.shapes), len(self.output_shapes))
        inputs = [Span(f"%in{k}", prod(shape)) for k, shape in enumerate(self.shapes)]
        results = [machine.space(size) for size in self.output_sizes]
        self.program(machine, inputs, results)
        for k, result in enumerate(results):
            machine.copy(Span(f"%out{k}", result.length), result)
        return machine
