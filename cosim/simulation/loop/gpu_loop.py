"""The compiled loop of one run of many on a GPU: a thread takes its run out of interleaved arrays, runs ticks up to a
given one or to a fault, and puts the run back.

Element i of run k of `runs` is at [i · runs + k], so that neighbouring threads access neighbouring words. While its
ticks run, a run is in memory of its thread. The arithmetic is the same as in the loop of one rig.
"""

from __future__ import annotations

from functools import cached_property

from cosim.core.compile import mathlib
from cosim.core.compile.freestanding import freestanding
from cosim.core.compile.ptx import Kernel, ptx
from cosim.core.compile.routine import Routine, definitions
from cosim.core.compile.stack_array import stack_need
from cosim.simulation.loop.loop_text import LoopText
from cosim.simulation.loop.rollout_program import RolloutProgram, RolloutText

# with the name `copy.strided`
STRIDED_COPY = """
define internal void @copy.strided(ptr noalias %source, i64 %source.step, ptr noalias %target, i64 %target.step,
    i64 %count) nounwind {
entry:
  br label %head
head:
  %k = phi i64 [ 0, %entry ], [ %k.next, %element ]
  %more = icmp slt i64 %k, %count
  br i1 %more, label %element, label %end
element:
  %from = mul i64 %k, %source.step
  %to = mul i64 %k, %target.step
  %at = getelementptr inbounds double, ptr %source, i64 %from
  %x = load double, ptr %at, align 8
  %there = getelementptr inbounds double, ptr %target, i64 %to
  store double %x, ptr %there, align 8
  %k.next = add i64 %k, 1
  br label %head
end:
  ret void
}
"""


class InterleavedText(LoopText):
    """Writes functions of run %run of %runs."""

    def own(self, name: str, size: int) -> None:
        """An array of the run alone."""
        self(f"  %{name} = alloca [{max(size, 1)} x double], align 64")

    def take(self, interleaved: str, own: str, count: int) -> None:
        self._copy(self.place(interleaved, "%run"), "%runs", own, "1", count)

    def put(self, own: str, interleaved: str, count: int) -> None:
        self._copy(own, "1", self.place(interleaved, "%run"), "%runs", count)

    def element(self, interleaved: str, index: int) -> str:
        """Where element `index` of the run is."""
        return self.place(self.place(interleaved, self.value(f"mul i64 {index}, %runs")), "%run")

    def _copy(self, source: str, source_step: str, target: str, target_step: str, count: int) -> None:
        arguments = f"ptr {source}, i64 {source_step}, ptr {target}, i64 {target_step}, i64 {count}"
        self(f"  call void @copy.strided({arguments})")


# memory (size, runs), accumulators (nm, runs), samples taken by these ticks (places, ns, runs), all signals of the last
# tick (n, runs), ticks that ran (runs,) int64
ARRAYS = ("memories", "accumulated", "kept", "last", "ran")
# runs side by side; the first tick; the tick before which to return; ticks per sample
NUMBERS = ("runs", "first", "until", "every")
KERNEL = Kernel("rollouts", ARRAYS, NUMBERS)


class GpuLoop:
    """The ticks of a program as a kernel. A run that has a fault stays as it is."""

    def __init__(self, program: RolloutProgram) -> None:
        self.program = program

    @cached_property
    def code(self) -> str:
        """LLVM IR of the body of KERNEL."""
        routines = definitions({1: self.program.routines})
        return freestanding("\n".join([routines, STRIDED_COPY, _GpuLoopWriter(self.program).text()]))

    @cached_property
    def local(self) -> int:
        """Bytes of the arrays of a thread; values that leave registers come on top."""
        return stack_need(self.code)

    @cached_property
    def ptx(self) -> str:
        """KERNEL for every GPU that is not too old. Raises CompileError for ticks that no GPU can run."""
        return ptx(self.code, [KERNEL])


class _GpuLoopWriter(RolloutText, InterleavedText):
    """Writes the IR of the body of KERNEL, in running order."""

    def text(self) -> str:
        program, (signals,) = self.program, self.program.signals.output_sizes
        self(KERNEL.head, "entry:")
        self.own("memory", program.size)
        self.own("accumulators", program.accumulated)
        self.own("samples", program.sampled)
        self.own("signals", signals)
        self.own("row", self.ticks.row)
        fault = self.value(f"load double, ptr {self.element('%memories', self.ticks.fault)}, align 8")
        self(f"  %stopped = fcmp une double {fault}, {mathlib.constant(0.0)}")
        self("  br i1 %stopped, label %end, label %take", "take:")
        self.take("%memories", "%memory", program.size)
        self.take("%accumulated", "%accumulators", program.accumulated)
        # samples are counted from the first of these ticks on
        self("  %every.less = sub i64 %every, 1", "  %first.up = add i64 %first, %every.less")
        self("  %samples.before = sdiv i64 %first.up, %every")
        self("  br label %head", "head:", "  %number = phi i64 [ %first, %take ], [ %number.next, %again ]")
        self("  %more = icmp slt i64 %number, %until", "  br i1 %more, label %tick, label %leave", "tick:")
        self.begin()
        self.tasks()
        self.reduce()
        self("  %number.next = add i64 %number, 1", "  br label %again", "again:")
        self("  br i1 %faulty, label %leave, label %head", "leave:")
        self("  %ticks = phi i64 [ %number, %head ], [ %number.next, %again ]")
        self.observe(program.signals, "%signals")
        self.put("%memory", "%memories", program.size)
        self.put("%accumulators", "%accumulated", program.accumulated)
        self.put("%signals", "%last", signals)
        self(f"  store i64 %ticks, ptr {self.place('%ran', '%run', 'i64')}, align 8")
        self("  br label %end", "end:", "  ret void", "}")
        return self.ir

    def after_judge(self) -> None:
        """A run with a fault ends here: its memory stays as it is now."""
        self("  br i1 %faulty, label %tasks.done, label %sound, !prof !0", "sound:")

    def sample(self, routine: Routine, count: str) -> None:
        (width,) = routine.output_sizes
        self.observe(routine, "%samples")
        place = self.value(f"mul i64 {self.value(f'sub i64 {count}, %samples.before')}, {width}")
        self.put("%samples", self.place("%kept", self.value(f"mul i64 {place}, %runs")), width)
