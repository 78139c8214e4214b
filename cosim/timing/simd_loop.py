"""The compiled loop over several rigs together, one in each SIMD lane: the same ticks on one memory of vectors.

A lane with a fault ends its run: its memory is restored to what it was after the task that found the fault, as in the
loop of one rig, and the loop returns. The caller saves that lane, puts another run in its place, and calls again.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field

import numpy as np

from cosim.compile import emit, mathlib
from cosim.compile.jit import Library
from cosim.compile.routine import Routine, with_callees
from cosim.timing.loop_text import LoopText
from cosim.timing.tick_ring import LoopStatus, SharedWord, TickProgram


@dataclass(frozen=True)
class SimdProgram:
    """The ticks of a rig, and what the loop computes of the row of each of them.

    metrics: accumulators (nm,), start, row (nr,) -> accumulators (nm,), every tick; samples: start, row (nr,) ->
    (ns,), every so many ticks; None where there are none. start: the region of the memory that is their argument.
    """

    ticks: TickProgram
    size: int  # of the memory
    start: slice
    metrics: Routine | None
    samples: Routine | None


@dataclass
class SimdMemory:
    """The runs of all lanes: memory (size, lanes), accumulators (nm, lanes), row of the last tick (nr, lanes), the
    samples so far (places, ns, lanes), and the shared words."""

    memory: np.ndarray
    accumulators: np.ndarray
    row: np.ndarray
    samples: np.ndarray
    every: int = 1
    words: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.judged = np.empty_like(self.memory)  # after the task that found a fault
        self.words = np.zeros(len(SharedWord), dtype=np.int64)

    @property
    def number(self) -> int:
        """Of the next tick."""
        return int(self.words[SharedWord.NUMBER])

    @property
    def status(self) -> LoopStatus:
        return LoopStatus(int(self.words[SharedWord.STATUS]))


_ARRAYS = ("words", "memory", "judged", "accumulators", "row", "samples")


class SimdLoop:
    """The ticks of a program in compiled code, for so many lanes."""

    def __init__(self, program: SimdProgram, lanes: int) -> None:
        self.program, self.lanes = program, lanes
        routines = [call.routine for task in program.ticks.tasks for call in task.calls]
        routines += [routine for routine in (program.metrics, program.samples) if routine is not None]
        needed = {item.symbol: item for routine in routines for item in with_callees(routine)}
        parts = [emit.declarations({lanes}), mathlib.sincos(lanes)]
        parts += [item.definition(lanes) for item in needed.values()]
        self.library = Library("\n".join([*parts, _SimdLoopWriter(program, lanes).text()]), ["ticks.lanes"], {})
        self._run = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(_ARRAYS), ctypes.c_int64)(
            self.library["ticks.lanes"]
        )

    def run(self, runs: SimdMemory, ticks: int) -> LoopStatus:
        """Run so many further ticks, or up to the first in which a lane has a fault: FINISHED or FAULT. Runs without
        the interpreter's lock."""
        runs.words[SharedWord.COUNT] = ticks
        self._run(*(getattr(runs, name).ctypes.data for name in _ARRAYS), runs.every)
        return runs.status


class _SimdLoopWriter(LoopText):
    """Writes the IR of `void @ticks.lanes(…)`, in running order."""

    def __init__(self, program: SimdProgram, lanes: int) -> None:
        super().__init__(lanes)
        self.program, self.ticks = program, program.ticks
        self.bit = "i1" if lanes == 1 else f"<{lanes} x i1>"

    def text(self) -> str:
        pointers = ", ".join(f"ptr noalias %{name}" for name in _ARRAYS)
        self(f"define void @ticks.lanes({pointers}, i64 %every) nounwind {{", "entry:")
        self(
            f"  %count = {self.load(SharedWord.COUNT)}",
            f"  %first = {self.load(SharedWord.NUMBER)}",
            "  br label %head",
        )
        self("head:", "  %done = phi i64 [ 0, %entry ], [ %done.next, %again ]")
        self.leave_when("icmp sge i64 %done, %count", LoopStatus.FINISHED, "tick")
        self("  %number = add i64 %first, %done")
        self._begin()
        self._tasks()
        self._restore_judged()
        early, row = self.ticks.early, self.ticks.row
        self.copy(self.place("%memory", early), self.place("%row", early), row - early)
        self._reduce()
        self("  %number.next = add i64 %number, 1")
        self.store("%number.next", SharedWord.NUMBER)
        self.leave_when("icmp ne i1 %any.faulty, 0", LoopStatus.FAULT, "again")
        self("  %done.next = add i64 %done, 1", "  br label %head", "}")
        return "\n".join(self.lines) + "\n"

    def _begin(self) -> None:
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

    def _tasks(self) -> None:
        """Make the calls of every task that is due; after the judge, keep the memory if a lane has a fault."""
        for i, task in enumerate(self.ticks.tasks):
            due = self.value(f"icmp eq i64 {self.value(f'srem i64 %number, {task.ticks}')}, {task.phase}")
            self(f"  br i1 {due}, label %task.{i}, label %task.{i}.done", f"task.{i}:")
            for call in task.calls:
                self.call(call, "%memory")
            self(f"  br label %task.{i}.done", f"task.{i}.done:")
            if i == self.ticks.judge:
                fault = self.value(f"load {self.t}, ptr {self.place('%memory', self.ticks.fault)}, align 8")
                self(f"  %faulty = fcmp une {self.t} {fault}, {mathlib.constant(0.0, self.lanes)}")
                any_lane = f"call i1 @llvm.vector.reduce.or.v{self.lanes}i1({self.bit} %faulty)"
                self(f"  %any.faulty = {'or i1 %faulty, false' if self.lanes == 1 else any_lane}")
                self("  br i1 %any.faulty, label %keep, label %sound, !prof !0", "keep:")
                self(f"  call void @llvm.memcpy.p0.p0.i64(ptr %judged, ptr %memory, i64 {self._bytes}, i1 false)")
                self("  br label %sound", "sound:")

        self("  br label %tasks.done", "tasks.done:")

    @property
    def _bytes(self) -> int:
        return 8 * self.lanes * self.program.size

    def _restore_judged(self) -> None:
        """Undo what the tasks after the judge did to lanes with a fault."""
        self("  br i1 %any.faulty, label %restore, label %restored, !prof !0", "restore:")
        self("  %i = phi i64 [ 0, %tasks.done ], [ %i.next, %restore ]")
        places = self.place("%judged", "%i"), self.place("%memory", "%i")
        judged, after = (self.value(f"load {self.t}, ptr {place}, align 8") for place in places)
        value = self.value(f"select {self.bit} %faulty, {self.t} {judged}, {self.t} {after}")
        self(f"  store {self.t} {value}, ptr {places[1]}, align 8", "  %i.next = add i64 %i, 1")
        self(f"  %i.more = icmp slt i64 %i.next, {self.program.size}")
        self("  br i1 %i.more, label %restore, label %restored", "restored:")

    def _reduce(self) -> None:
        """Update the metrics, and take a sample where one is due."""
        start = self.place("%memory", self.program.start.start)
        if self.program.metrics is not None:
            symbol = f"{self.program.metrics.symbol}.{self.lanes}"
            self(f"  call void @{symbol}(ptr %accumulators, ptr {start}, ptr %row, ptr %accumulators)")
        if self.program.samples is not None:
            due = self.value(f"icmp eq i64 {self.value('srem i64 %number, %every')}, 0")
            self(f"  br i1 {due}, label %sample, label %sampled", "sample:")
            count = self.value("sdiv i64 %number, %every")
            (width,) = self.program.samples.output_sizes
            place = self.place("%samples", self.value(f"mul i64 {count}, {width}"))
            self(f"  call void @{self.program.samples.symbol}.{self.lanes}(ptr {start}, ptr %row, ptr {place})")
            self("  br label %sampled", "sampled:")
