"""The compiled loop over ticks, forwards with a tape and backwards along it: exact derivatives of many ticks.

Forwards, each tick leaves on the tape what its calls overwrite and the tapes of their routines. Backwards, a call first
gets its memory back from the tape, then its adjoint takes the derivatives with respect to its outputs to its inputs.
One run in each SIMD lane; a fault does not end it, but is kept in the memory.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cosim.core.compile import mathlib
from cosim.core.compile.jit import Library
from cosim.core.compile.routine import Routine, definitions
from cosim.core.compile.trace import RoutineBase
from cosim.core.types import Array
from cosim.simulation.loop.loop_text import LoopText


@dataclass(frozen=True)
class ReverseCall:
    """A call of a tick on regions of the memory.

    forward: its routine with tape, whose vectors have the lengths `tape`; adjoint: see `Differentiation.adjoint`, None
    where no derivative passes through the call.
    """

    forward: RoutineBase
    inputs: tuple[slice, ...]
    outputs: tuple[slice, ...]
    tape: tuple[int, ...] = ()
    adjoint: Routine | None = None
    wrt: tuple[int, ...] = ()
    seeded: tuple[int, ...] = ()

    @property
    def routines(self) -> list[RoutineBase]:
        return [self.forward] if self.adjoint is None else [self.forward, self.adjoint]

    @property
    def overwritten(self) -> int:
        return sum(where.stop - where.start for where in self.outputs)


@dataclass(frozen=True)
class ReverseTask:
    """Calls that are made every `ticks` ticks, from tick `phase` on."""

    calls: tuple[ReverseCall, ...]
    ticks: int = 1
    phase: int = 0


@dataclass(frozen=True)
class ReverseProgram:
    """The ticks of a rig, and the accumulation of its metrics.

    The memory holds a tick, then a row, the accumulators, and whether there was a fault; see `TickProgram` for the
    other fields.
    """

    tasks: tuple[ReverseTask, ...]
    metrics: ReverseCall
    step: float  # s
    time: int
    fault: int
    judge: int
    early: int
    row: slice
    accumulators: slice
    faulty: int

    @property
    def size(self) -> int:
        """Of the memory."""
        return self.faulty + 1

    @property
    def calls(self) -> list[ReverseCall]:
        return [*(call for task in self.tasks for call in task.calls), self.metrics]

    @cached_property
    def places(self) -> list[int]:
        """Where each call begins on the tape of a tick, and its end; the row begins it."""
        sizes = [self.early, *(call.overwritten + sum(call.tape) for call in self.calls)]
        return np.cumsum(sizes).tolist()

    @property
    def tape(self) -> int:
        """Elements per tick."""
        return self.places[-1]

    @property
    def scratch(self) -> int:
        """Elements for the derivatives that a call returns."""
        return max(sum(call.inputs[k].stop - call.inputs[k].start for k in call.wrt) for call in self.calls)


class ReverseLoop:
    """The ticks of a program in compiled code, for so many SIMD lanes. Runs without the interpreter's lock."""

    def __init__(self, program: ReverseProgram, lanes: int) -> None:
        self.program, self.lanes = program, lanes
        routines = [routine for call in program.calls for routine in call.routines]
        writers = _ForwardWriter(program, lanes), _BackwardWriter(program, lanes)
        parts = definitions({lanes: routines}), _sum_text(lanes), *(writer.text() for writer in writers)
        names = [_ForwardWriter.name, _BackwardWriter.name]
        self._library = Library("\n".join(parts), names, {})
        arguments = [ctypes.c_void_p] * 4 + [ctypes.c_int64] * 3
        kind = ctypes.CFUNCTYPE(None, *arguments)
        self._forward, self._backward = (kind(self._library[name]) for name in names)

    def forward(self, memory: Array, tape: Array, first: int, count: int) -> None:
        """Run so many ticks from the number `first` on; memory (size, lanes), tape (count, program.tape, lanes), or
        (1, …) to keep none of it."""
        stride = 0 if len(tape) == 1 else self.program.tape
        self._forward(memory.ctypes.data, None, None, tape.ctypes.data, stride, first, count)

    def backward(self, memory: Array, adjoint: Array, tape: Array, first: int, count: int) -> None:
        """Take the memory and the derivatives with respect to it (size, lanes) from the end of these ticks to their
        beginning."""
        arrays = memory, adjoint, np.empty((max(self.program.scratch, 1), self.lanes)), tape
        self._backward(*(array.ctypes.data for array in arrays), self.program.tape, first, count)


def _sum_text(lanes: int) -> str:
    """`void @sum.<lanes>(ptr target, ptr source, i64 count)`: target += source, count ≥ 1."""
    t = mathlib.real(lanes)
    return f"""
define internal void @sum.{lanes}(ptr %target, ptr noalias %source, i64 %count) nounwind {{
entry:
  br label %element
element:
  %k = phi i64 [ 0, %entry ], [ %k.next, %element ]
  %to = getelementptr inbounds {t}, ptr %target, i64 %k
  %of = getelementptr inbounds {t}, ptr %source, i64 %k
  %a = load {t}, ptr %to, align 8
  %b = load {t}, ptr %of, align 8
  %c = fadd {t} %a, %b
  store {t} %c, ptr %to, align 8
  %k.next = add i64 %k, 1
  %more = icmp slt i64 %k.next, %count
  br i1 %more, label %element, label %finish
finish:
  ret void
}}
"""


class _TickWriter(LoopText):
    """Writes the IR of `void @name(ptr memory, ptr adjoint, ptr scratch, ptr tape, i64 stride, i64 first, i64 count)`,
    stride: elements of the tape from tick to tick."""

    name = ""

    def __init__(self, program: ReverseProgram, lanes: int) -> None:
        super().__init__(lanes)
        self.program = program

    def tick(self) -> None:
        """The body of the loop: tick %number with its part of the tape %record."""
        raise NotImplementedError

    def index(self) -> str:
        """Which of the ticks comes after %done others."""
        raise NotImplementedError

    def text(self) -> str:
        pointers = ", ".join(f"ptr noalias %{name}" for name in ("memory", "adjoint", "scratch", "tape"))
        self(
            f"define void @{self.name}({pointers}, i64 %stride, i64 %first, i64 %count) nounwind {{",
            "entry:",
            "  br label %head",
        )
        self("head:", "  %done = phi i64 [ 0, %entry ], [ %done.next, %again ]")
        self("  %more = icmp slt i64 %done, %count", "  br i1 %more, label %tick, label %end", "tick:")
        index = self.index()
        self(f"  %number = add i64 %first, {index}")
        self(f"  %record = {self.at('%tape', self.value(f'mul i64 {index}, %stride'))}")
        self.write_time(self.program.step, self.program.time)
        self.tick()
        self("  br label %again", "again:", "  %done.next = add i64 %done, 1", "  br label %head", "end:", "  ret void")
        self("}")
        return self.ir

    def when_due(self, number: int, task: ReverseTask) -> None:
        """Begin a block for the calls of a task; `task_end` ends it."""
        self(f"  br i1 {self.is_due(task)}, label %task.{number}, label %task.{number}.done", f"task.{number}:")

    def task_end(self, number: int) -> None:
        self(f"  br label %task.{number}.done", f"task.{number}.done:")

    def save(self, where: slice, target: str, at: int) -> None:
        """Copy a region of the memory to element `at` of an array."""
        if where.stop > where.start:
            self.copy(self.place("%memory", where.start), self.place(target, at), where.stop - where.start)

    def restore(self, where: slice, source: str, at: int) -> None:
        """Copy it from there."""
        if where.stop > where.start:
            self.copy(self.place(source, at), self.place("%memory", where.start), where.stop - where.start)

    def vectors(self, base: str, first: int, sizes: Sequence[int]) -> list[str]:
        """Pointers to vectors that follow each other."""
        return [self.place(base, first + sum(sizes[:k])) for k in range(len(sizes))]


class _ForwardWriter(_TickWriter):
    name = "ticks.forward"

    def index(self) -> str:
        return "%done"

    def tick(self) -> None:
        p = self.program
        self.save(slice(0, p.early), "%memory", p.row.start)
        self.save(slice(0, p.early), "%record", 0)
        places = iter(p.places)
        for number, task in enumerate(p.tasks):
            self.when_due(number, task)
            for call in task.calls:
                self._call(call, next(places))
            self.task_end(number)
            if number == p.judge:
                self._keep_fault()
        self.save(slice(p.early, p.row.stop - p.row.start), "%memory", p.row.start + p.early)
        self._call(p.metrics, next(places))

    def _call(self, call: ReverseCall, place: int) -> None:
        for where in call.outputs:
            self.save(where, "%record", place)
            place += where.stop - where.start
        arguments = self.regions("%memory", (*call.inputs, *call.outputs))
        self.invoke(call.forward, [*arguments, *self.vectors("%record", place, call.tape)])

    def _keep_fault(self) -> None:
        fault, faulty = (self.place("%memory", place) for place in (self.program.fault, self.program.faulty))
        now, before = (self.value(f"load {self.t}, ptr {place}, align 8") for place in (fault, faulty))
        none = self.value(f"fcmp oeq {self.t} {now}, {mathlib.constant(0.0, self.lanes)}")
        kept = self.value(f"select {self.bit} {none}, {self.t} {before}, {self.t} {mathlib.constant(1.0, self.lanes)}")
        self(f"  store {self.t} {kept}, ptr {faulty}, align 8")


class _BackwardWriter(_TickWriter):
    name = "ticks.backward"

    def index(self) -> str:
        return self.value(f"sub i64 {self.value('sub i64 %count, 1')}, %done")

    def tick(self) -> None:
        p, last = self.program, self.program.row.stop - self.program.row.start
        early, late = slice(0, p.early), slice(p.early, last)
        self.restore(slice(p.row.start, p.row.start + p.early), "%record", 0)
        self.save(late, "%memory", p.row.start + p.early)
        places = list(p.places[:-1])
        self._call(p.metrics, places.pop())
        self._release_row(late)
        for number, task in reversed(list(enumerate(p.tasks))):
            self.when_due(number, task)
            for call in reversed(task.calls):
                self._call(call, places.pop())
            self.task_end(number)
        self._release_row(early)

    def _release_row(self, part: slice) -> None:
        """The row is a copy of the memory: pass its derivatives on."""
        row = self.place("%adjoint", self.program.row.start + part.start)
        self._add(self.place("%adjoint", part.start), row, part.stop - part.start)
        self._clear(row, part.stop - part.start)

    def _call(self, call: ReverseCall, place: int) -> None:
        for where in call.outputs:
            self.restore(where, "%record", place)
            place += where.stop - where.start
        found = [] if call.adjoint is None else self._derivatives(call, call.adjoint, place)
        for where in call.outputs:
            self._clear(self.place("%adjoint", where.start), where.stop - where.start)
        for k, source in zip(call.wrt, found, strict=True):
            where = call.inputs[k]
            self._add(self.place("%adjoint", where.start), source, where.stop - where.start)

    def _derivatives(self, call: ReverseCall, adjoint: Routine, place: int) -> list[str]:
        """Pointers to the derivatives with respect to the inputs `wrt`; place: of the tape of the routine."""
        found = self.vectors("%scratch", 0, [call.inputs[k].stop - call.inputs[k].start for k in call.wrt])
        given = [*self.regions("%memory", call.inputs), *self.vectors("%record", place, call.tape)]
        seeds = self.regions("%adjoint", [call.outputs[k] for k in call.seeded])
        self.invoke(adjoint, [*given, *seeds, *found])
        return found

    def _add(self, target: str, source: str, count: int) -> None:
        if count:
            self(f"  call void @sum.{self.lanes}(ptr {target}, ptr {source}, i64 {count})")

    def _clear(self, place: str, count: int) -> None:
        if count:
            self(f"  call void @llvm.memset.p0.i64(ptr {place}, i8 0, i64 {8 * self.lanes * count}, i1 false)")
