"""Ticks of many runs whose rows are reduced where they come about: to metrics, samples, and the last signals."""

from __future__ import annotations

from dataclasses import dataclass

from cosim.compile import mathlib
from cosim.compile.routine import Routine
from cosim.timing.loop_text import LoopText
from cosim.timing.tick_ring import RoutineCall, TickProgram


@dataclass(frozen=True)
class RolloutProgram:
    """The ticks of a rig, and what the loop computes of the row of each of them.

    metrics: accumulators (nm,), start, row (nr,) -> accumulators (nm,), every tick; samples: start, row -> (ns,), every
    so many ticks; None where there are none. signals: start, row -> all signals, of the last tick. start, numbers: the
    regions of the memory that are their argument and their open numbers.
    """

    ticks: TickProgram
    size: int  # of the memory
    start: slice
    numbers: slice
    metrics: Routine | None
    samples: Routine | None
    signals: Routine

    @property
    def sampled(self) -> int:
        """Signals of a sample."""
        return 0 if self.samples is None else self.samples.output_sizes[0]

    @property
    def accumulated(self) -> int:
        return 0 if self.metrics is None else self.metrics.output_sizes[0]

    @property
    def routines(self) -> list[Routine]:
        """That the ticks call, and those of the rows."""
        return [*self.ticks.routines, *(item for item in (self.metrics, self.samples, self.signals) if item)]


class RolloutText(LoopText):
    """Writes what a tick of such a loop consists of, for tick %number of the arrays %memory and %row."""

    def __init__(self, program: RolloutProgram, lanes: int = 1) -> None:
        super().__init__(lanes)
        self.program, self.ticks = program, program.ticks

    def begin(self) -> None:
        """Store the time of the tick in the memory, and the early part of its row."""
        number = self.value("sitofp i64 %number to double")
        t = self.value(f"fmul double {number}, {mathlib.constant(self.ticks.step)}")
        self(f"  store {self.t} {self._for_all(t)}, ptr {self.place('%memory', self.ticks.time)}, align 8")
        self.copy("%memory", "%row", self.ticks.early)

    def _for_all(self, value: str) -> str:
        """A double, repeated in every lane."""
        if self.lanes == 1:
            return value
        first = self.value(f"insertelement {self.t} poison, double {value}, i32 0")
        return self.value(f"shufflevector {self.t} {first}, {self.t} poison, <{self.lanes} x i32> zeroinitializer")

    def tasks(self) -> None:
        """Make the calls of every task that is due."""
        for i, task in enumerate(self.ticks.tasks):
            due = self.value(f"icmp eq i64 {self.value(f'srem i64 %number, {task.ticks}')}, {task.phase}")
            self(f"  br i1 {due}, label %task.{i}, label %task.{i}.done", f"task.{i}:")
            for call in task.calls:
                assert isinstance(call, RoutineCall)  # rollouts have no Python in their ticks
                self.call(call, "%memory")
            self(f"  br label %task.{i}.done", f"task.{i}.done:")
            if i == self.ticks.judge:
                fault = self.value(f"load {self.t}, ptr {self.place('%memory', self.ticks.fault)}, align 8")
                self(f"  %faulty = fcmp une {self.t} {fault}, {mathlib.constant(0.0, self.lanes)}")
                self.after_judge()
        self("  br label %tasks.done", "tasks.done:")

    def after_judge(self) -> None:
        """What follows the task that finds faults; %faulty has them."""
        raise NotImplementedError

    def reduce(self) -> None:
        """Complete the row, update the metrics, and take a sample where one is due."""
        early, row = self.ticks.early, self.ticks.row
        self.copy(self.place("%memory", early), self.place("%row", early), row - early)
        if self.program.metrics is not None:
            self.observe(self.program.metrics, "%accumulators", "%accumulators")
        if self.program.samples is not None:
            due = self.value(f"icmp eq i64 {self.value('srem i64 %number, %every')}, 0")
            self(f"  br i1 {due}, label %sample, label %sampled", "sample:")
            self.sample(self.program.samples, self.value("sdiv i64 %number, %every"))
            self("  br label %sampled", "sampled:")

    def sample(self, routine: Routine, count: str) -> None:
        """Take sample number `count`."""
        raise NotImplementedError

    def observe(self, routine: Routine, result: str, *before: str) -> None:
        """Call a routine of (…, start, row) with the open numbers that it needs."""
        pointers = [*before, self.place("%memory", self.program.start.start), "%row"]
        if routine.open_numbers is not None:
            pointers.append(self.place("%memory", self.program.numbers.start))
        typed = ", ".join(f"ptr {pointer}" for pointer in (*pointers, result))
        self(f"  call void @{routine.symbol}.{self.lanes}({typed})")
