"""Writers of LLVM IR for the loops over ticks: their lines, and one tick of them.

Lines are numbered values, elements of arrays, shared words, calls. A tick is its time, and the calls of every task that
is due; loops differ in what follows a task. `TickFunction` is a tick without ring and clock, for programs without them.
"""

from __future__ import annotations

from cosim.core.compile import mathlib
from cosim.core.compile.mathlib import real
from cosim.simulation.loop.tick_ring import (
    LoopStatus,
    LoopTask,
    NativeCall,
    PythonCall,
    RoutineCall,
    SharedWord,
    TickProgram,
)


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

    def call(self, call: RoutineCall, base: str) -> None:
        """Call a routine on regions of the array `base`."""
        places = [f"ptr {self.place(base, place.start)}" for place in (*call.inputs, *call.outputs)]
        self(f"  call void @{call.routine.symbol}.{self.lanes}({', '.join(places)})")

    def copy(self, source: str, target: str, count: int) -> None:
        """Copy so many elements."""
        size = 8 * self.lanes * count
        self(f"  call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, i64 {size}, i1 false)")


class TickText(LoopText):
    """Writes tick %number of the array %memory."""

    def __init__(self, ticks: TickProgram, lanes: int = 1) -> None:
        super().__init__(lanes)
        self.ticks = ticks

    def store_time(self) -> None:
        """The time of the tick, into the memory."""
        number = self.value("sitofp i64 %number to double")
        t = self.value(f"fmul double {number}, {mathlib.constant(self.ticks.step)}")
        self(f"  store {self.t} {self._for_all(t)}, ptr {self.place('%memory', self.ticks.time)}, align 8")

    def _for_all(self, value: str) -> str:
        """A double, repeated for all that run side by side."""
        if self.lanes == 1:
            return value
        first = self.value(f"insertelement {self.t} poison, double {value}, i32 0")
        return self.value(f"shufflevector {self.t} {first}, {self.t} poison, <{self.lanes} x i32> zeroinitializer")

    def is_due(self, task: LoopTask) -> str:
        return self.value(f"icmp eq i64 {self.value(f'srem i64 %number, {task.ticks}')}, {task.phase}")

    def tasks(self) -> None:
        """Make the calls of every task that is due."""
        for i, task in enumerate(self.ticks.tasks):
            self(f"  br label %task.{i}.check", f"task.{i}.check:")
            self(f"  br i1 {self.is_due(task)}, label %task.{i}, label %task.{i}.done", f"task.{i}:")
            for call in task.calls:
                self.make(call, i)
            self.end_task(i)
            if i == self.ticks.judge:
                fault = self.value(f"load {self.t}, ptr {self.place('%memory', self.ticks.fault)}, align 8")
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
        self.store_time()
        self.tasks()
        self("  ret i32 0", "}")
        return "\n".join(self.lines) + "\n"

    def after_judge(self) -> None:
        self("  br i1 %faulty, label %ended, label %sound", "ended:", "  ret i32 1", "sound:")
