"""The compiled loop over several rigs together, one in each SIMD lane: the same ticks on one memory of vectors.

A lane with a fault ends its run: its memory is restored to what it was after the task that found the fault, as in the
loop of one rig, and the loop returns. The caller saves that lane, puts another run in its place, and calls again.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field

import numpy as np

from cosim.core.compile.jit import Library
from cosim.core.compile.routine import Routine, definitions
from cosim.simulation.loop.rollout_program import RolloutProgram, RolloutText
from cosim.simulation.loop.tick_ring import LoopStatus, SharedWord


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

    def __init__(self, program: RolloutProgram, lanes: int) -> None:
        self.program, self.lanes = program, lanes
        parts = definitions({lanes: program.routines}), *simd_functions(program, lanes)
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


def simd_functions(program: RolloutProgram, lanes: int) -> list[str]:
    """IR of `ticks.lanes` and `signals.lanes`."""
    return [_SimdLoopWriter(program, lanes).text(), _SimdLoopWriter(program, lanes).signals()]


class _SimdLoopWriter(RolloutText):
    """Writes the IR of `void @ticks.lanes(…)`, in running order."""

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
        self.begin()
        self.tasks()
        self._restore_judged()
        self.reduce()
        self("  %number.next = add i64 %number, 1")
        self.store("%number.next", SharedWord.NUMBER)
        self.leave_when("icmp ne i1 %any.faulty, 0", LoopStatus.FAULT, "again")
        self("  %done.next = add i64 %done, 1", "  br label %head", "}")
        return self.ir

    def after_judge(self) -> None:
        """Keep the memory if a lane has a fault."""
        any_lane = f"call i1 @llvm.vector.reduce.or.v{self.lanes}i1({self.bit} %faulty)"
        self(f"  %any.faulty = {'or i1 %faulty, false' if self.lanes == 1 else any_lane}")
        self("  br i1 %any.faulty, label %keep, label %sound, !prof !0", "keep:")
        self.copy("%memory", "%judged", self.program.size)
        self("  br label %sound", "sound:")

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

    def sample(self, routine: Routine, count: str) -> None:
        (width,) = routine.output_sizes
        self.observe(routine, self.place("%samples", self.value(f"mul i64 {count}, {width}")))

    def signals(self) -> str:
        """IR of `void @signals.lanes(memory, row, signals)`."""
        self("define void @signals.lanes(ptr %memory, ptr %row, ptr %signals) nounwind {")
        self.observe(self.program.signals, "%signals")
        self("  ret void", "}")
        return self.ir
