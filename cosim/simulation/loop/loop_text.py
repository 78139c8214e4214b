"""Writers of LLVM IR for the loops over ticks: their lines, and one tick of them.

Lines are numbered values, elements of arrays, shared words, calls. A tick is its time, and the calls of every task that
is due; loops differ in what follows a task. `TickFunction` is a tick without ring and clock, for programs without them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from cosim.core.compile import mathlib
from cosim.core.compile.mathlib import real
from cosim.core.compile.trace import RoutineBase
from cosim.simulation.loop.tick_ring import (
    LoopStatus,
    NativeCall,
    PythonCall,
    RoutineCall,
    SharedWord,
    TickProgram,
)


class Periodic(Protocol):
    """Due every `ticks` ticks, from tick `phase` on."""

    @property
    def ticks(self) -> int: ...

    @property
    def phase(self) -> int: ...


class LoopText:
    """Collects the lines of one function. Its arrays hold one double, or a vector with one double per SIMD lane, in
    each element; shared words are one whole number for all lanes."""

    def __init__(self, lanes: int = 1) -> None:
        self.lanes, self.t = lanes, real(lanes)
        self.lines: list[str] = []
        self.temporaries = 0

    def __call__(self, *lines: str) -> None:
        self.lines += lines

    def value(self, text: str) -> str:
        self.temporaries += 1
        self(f"  %v{self.temporaries} = {text}")
        return f"%v{self.temporaries}"

    @property
    def ir(self) -> str:
        """All lines."""
        return "\n".join(self.lines) + "\n"

    @property
    def bit(self) -> str:
        """The type of a condition."""
        return "i1" if self.lanes == 1 else f"<{self.lanes} x i1>"

    def leave_when(self, condition: str, status: LoopStatus, after: str) -> None:
        """End the loop when the condition holds, else continue at the label `after`."""
        self(f"  br i1 {self.value(condition)}, label %leave.{after}, label %{after}", f"leave.{after}:")
        self.before_leaving()
        self.store(str(int(status)), SharedWord.STATUS, "release")
        self("  ret void", f"{after}:")

    def before_leaving(self) -> None:
        """What is to be done before the loop ends; nothing by default."""
        return None

    def at(self, base: str, index: int | str, kind: str = "") -> str:
        return f"getelementptr inbounds {kind or self.t}, ptr {base}, i64 {index}"

    def place(self, base: str, index: int | str, kind: str = "") -> str:
        return self.value(self.at(base, index, kind))

    def load(self, word: SharedWord, order: str = "") -> str:
        return f"load {'atomic ' * bool(order)}i64, ptr {self.place('%words', int(word), 'i64')} {order}, align 8"

    def store(self, value: str, word: SharedWord, order: str = "") -> None:
        place = self.place("%words", int(word), "i64")
        self(f"  store {'atomic ' * bool(order)}i64 {value}, ptr {place} {order}, align 8")

    def read(self, base: str, index: int | str) -> str:
        """An element."""
        return self.value(f"load {self.t}, ptr {self.place(base, index)}, align 8")

    def write(self, value: str, base: str, index: int | str) -> None:
        self(f"  store {self.t} {value}, ptr {self.place(base, index)}, align 8")

    def for_all(self, value: str) -> str:
        """A double, repeated for all that run side by side."""
        if self.lanes == 1:
            return value
        first = self.value(f"insertelement {self.t} poison, double {value}, i32 0")
        return self.value(f"shufflevector {self.t} {first}, {self.t} poison, <{self.lanes} x i32> zeroinitializer")

    def write_time(self, step: float, place: int, number: str = "%number") -> None:
        """The time of a tick, into the memory; step [s]."""
        real_number = self.value(f"sitofp i64 {number} to double")
        t = self.value(f"fmul double {real_number}, {mathlib.constant(step)}")
        self.write(self.for_all(t), "%memory", place)

    def is_due(self, task: Periodic, number: str = "%number") -> str:
        """Whether a task is due in a tick."""
        return self.value(f"icmp eq i64 {self.value(f'srem i64 {number}, {task.ticks}')}, {task.phase}")

    def regions(self, base: str, wheres: Iterable[slice]) -> list[str]:
        """Pointers to regions of an array."""
        return [self.place(base, where.start) for where in wheres]

    def invoke(self, routine: RoutineBase, pointers: Iterable[str]) -> None:
        """Call a routine on its arguments and results."""
        self(f"  call void @{routine.symbol}.{self.lanes}({', '.join(f'ptr {pointer}' for pointer in pointers)})")

    def call(self, call: RoutineCall, base: str) -> None:
        """Call a routine on regions of the array `base`."""
        self.invoke(call.routine, self.regions(base, (*call.inputs, *call.outputs)))

    def copy(self, source: str, target: str, count: int) -> None:
        """Copy so many elements."""
        size = 8 * self.lanes * count
        self(f"  call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, i64 {size}, i1 false)")


class TickText(LoopText):
    """Writes tick %number of the array %memory."""

    def __init__(self, ticks: TickProgram, lanes: int = 1) -> None:
        super().__init__(lanes)
        self.ticks = ticks

    def begin(self) -> None:
        """Store the time of the tick in the memory, and the early part of its row in the array %row."""
        self.write_time(self.ticks.step, self.ticks.time)
        self.copy("%memory", "%row", self.ticks.early)

    def complete_row(self) -> None:
        """Store the rest of the row."""
        early, row = self.ticks.early, self.ticks.row
        self.copy(self.place("%memory", early), self.place("%row", early), row - early)

    def tasks(self) -> None:
        """Make the calls of every task that is due."""
        for i, task in enumerate(self.ticks.tasks):
            self(f"  br label %task.{i}.check", f"task.{i}.check:")
            self(f"  br i1 {self.is_due(task)}, label %task.{i}, label %task.{i}.done", f"task.{i}:")
            for call in task.calls:
                self.make(call, i)
            self.end_task(i)
            if i == self.ticks.judge:
                fault = self.read("%memory", self.ticks.fault)
                self(f"  %faulty = fcmp une {self.t} {fault}, {mathlib.constant(0.0, self.lanes)}")
                self.after_judge()
        self("  br label %tasks.done", "tasks.done:")

    def make(self, call: RoutineCall | PythonCall | NativeCall, task: int) -> None:
        """Make a call of a task."""
        assert isinstance(call, RoutineCall)  # only the engine makes others
        self.call(call, "%memory")

    def end_task(self, task: int) -> None:
        """Continue behind a task, whether it was due or not."""
        self(f"  br label %task.{task}.done", f"task.{task}.done:")

    def after_judge(self) -> None:
        """What follows the task that finds faults; %faulty has them."""
        raise NotImplementedError


class TickFunction(TickText):
    """Writes a function that makes one tick."""

    def text(self, name: str) -> str:
        """IR of `i32 @name(memory, i64 number)`: 1 after a fault, which ends the tick; else 0."""
        self(f"define i32 @{name}(ptr %memory, i64 %number) nounwind {{", "entry:")
        self.write_time(self.ticks.step, self.ticks.time)
        self.tasks()
        self("  ret i32 0", "}")
        return self.ir

    def after_judge(self) -> None:
        self("  br i1 %faulty, label %ended, label %sound", "ended:", "  ret i32 1", "sound:")
