"""LLVM IR of one tick: its time, and the calls of every task that is due. Loops differ in what follows a task."""

from __future__ import annotations

from cosim.core.compile import mathlib
from cosim.simulation.loop.loop_text import LoopText
from cosim.simulation.loop.tick_ring import LoopTask, NativeCall, PythonCall, RoutineCall, TickProgram


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
