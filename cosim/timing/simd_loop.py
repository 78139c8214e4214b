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
from cosim.timing.tick_ring import LoopStatus, RoutineCall, SharedWord, TickProgram


@dataclass(frozen=True)
class SimdProgram:
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
        routines = program.ticks.routines
        routines += [item for item in (program.metrics, program.samples, program.signals) if item is not None]
        needed = {item.symbol: item for routine in routines for item in with_callees(routine)}
        parts = [emit.declarations({lanes}), mathlib.sincos(lanes)]
        parts += [item.definition(lanes) for item in needed.values()]
        parts += simd_functions(program, lanes)
        self.library = Library("\n".join(parts), ["ticks.lanes", "signals.lanes"], {})
        pointers = [ctypes.c_void_p] * len(_ARRAYS)
        self._run = ctypes.CFUNCTYPE(None, *pointers, ctypes.c_int64)(self.library["ticks.lanes"])
        self._signals = ctypes.CFUNCTYPE(None, *pointers[:3])(self.library["signals.lanes"])

    def run(self, runs: SimdMemory, ticks: int) -> LoopStatus:
        """Run so many further ticks, or up to the first in which a lane has a fault: FINISHED or FAULT. Runs without
        the interpreter's lock."""
        runs.words[SharedWord.COUNT] = ticks
        self._run(*(getattr(runs, name).ctypes.data for name in _ARRAYS), runs.every)
        return runs.status

    def signals(self, runs: SimdMemory) -> np.ndarray:
        """All signals of the last tick (n, lanes)."""
        found = np.empty((*self.program.signals.output_sizes, self.lanes))
        self._signals(*(array.ctypes.data for array in (runs.memory, runs.row, found)))
        return found


def simd_functions(program: SimdProgram, lanes: int) -> list[str]:
    """IR of `ticks.lanes` and `signals.lanes`."""
    return [_SimdLoopWriter(program, lanes).text(), _SimdLoopWriter(program, lanes).signals()]


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
                assert isinstance(call, RoutineCall)  # there is no Python in SIMD lanes
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
        if self.program.metrics is not None:
            self._observe(self.program.metrics, "%accumulators", "%accumulators")
        if self.program.samples is not None:
            due = self.value(f"icmp eq i64 {self.value('srem i64 %number, %every')}, 0")
            self(f"  br i1 {due}, label %sample, label %sampled", "sample:")
            count = self.value("sdiv i64 %number, %every")
            (width,) = self.program.samples.output_sizes
            self._observe(self.program.samples, self.place("%samples", self.value(f"mul i64 {count}, {width}")))
            self("  br label %sampled", "sampled:")

    def _observe(self, routine: Routine, result: str, *before: str) -> None:
        """Call a routine of (…, start, row) with the open numbers that it needs."""
        pointers = [*before, self.place("%memory", self.program.start.start), "%row"]
        if routine.open_numbers is not None:
            pointers.append(self.place("%memory", self.program.numbers.start))
        typed = ", ".join(f"ptr {pointer}" for pointer in (*pointers, result))
        self(f"  call void @{routine.symbol}.{self.lanes}({typed})")

    def signals(self) -> str:
        """IR of `void @signals.lanes(memory, row, signals)`."""
        self("define void @signals.lanes(ptr %memory, ptr %row, ptr %signals) nounwind {")
        self._observe(self.program.signals, "%signals")
        self("  ret void", "}")
        return "\n".join(self.lines) + "\n"
