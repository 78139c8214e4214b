"""Several runs of a rig side by side, in the SIMD lanes of a target, as functions that C calls.

    void NAME_lanes_reset(double *memory)       all lanes at the start of a run
    int32_t NAME_lanes_ticks(double *memory, int64_t first, int32_t count)
                                                how many ticks are complete in all lanes, fewer than `count` if the
                                                guard stopped a lane in the next one: others have completed that
    void NAME_lanes_signals(const double *memory, double *signals)

Element k of lane j is at `lanes · k + j`, of the memory and of the signals. Each lane has the memory of one run, and
its `fault` states whether the guard stopped it.
"""

from __future__ import annotations

from dataclasses import dataclass

from cosim.core.compile.routine import Routine
from cosim.simulation.loop.loop_text import LoopText
from cosim.simulation.loop.rollout_program import RolloutProgram
from cosim.simulation.loop.simd_loop import simd_functions
from cosim.simulation.loop.tick_ring import LoopStatus, SharedWord
from cosim.simulation.tick.tick_model import TickModel

LANE_FUNCTIONS = ("lanes_reset", "lanes_ticks", "lanes_signals")


@dataclass(frozen=True)
class LaneCode:
    """Writes the functions, without the routines that they call. name: with which they begin; observe: see
    `tick_code.observe_routine`."""

    name: str
    model: TickModel
    observe: Routine
    lanes: int

    @property
    def routines(self) -> list[Routine]:
        """That are called, in lanes."""
        return [*self.model.compiled_program.routines, self.observe]

    def text(self) -> str:
        place = self.model.layout.place
        start, numbers = place("bumpless_start").where, place("numbers").where
        loop = RolloutProgram(
            self.model.compiled_program, self.model.layout.size, start, numbers, None, None, self.observe
        )
        functions = [text.replace("define ", "define internal ", 1) for text in simd_functions(loop, self.lanes)]
        return "\n".join([*functions, self._ticks(), self._signals(), self._reset()])

    def _ticks(self) -> str:
        """The loop counts in shared words, and keeps in `judged` the memory after the guard has found a fault."""
        text, size = LoopText(), self.model.layout.size
        text(f"define i32 @{self.name}_lanes_ticks(ptr %memory, i64 %first, i32 %count) nounwind {{", "entry:")
        text(f"  %words = alloca [{len(SharedWord)} x i64], align 64")
        text(f"  %judged = alloca [{self.lanes * size} x double], align 64")
        text.store("%first", SharedWord.NUMBER)
        text.store(text.value("sext i32 %count to i64"), SharedWord.COUNT)
        row = text.place("%memory", self.lanes * size)
        pointers = ("%words", "%memory", "%judged", "null", row, "null")  # there are no metrics and samples
        text(f"  call void @ticks.lanes({', '.join(f'ptr {pointer}' for pointer in pointers)}, i64 1)")
        number, status = (text.value(text.load(word)) for word in (SharedWord.NUMBER, SharedWord.STATUS))
        text(f"  %taken = sub i64 {number}, %first", "  %taken.short = trunc i64 %taken to i32")
        # the loop counts a tick with a fault too
        text(f"  %faulty = icmp eq i64 {status}, {int(LoopStatus.FAULT)}", "  %stopped = zext i1 %faulty to i32")
        text("  %complete = sub i32 %taken.short, %stopped", "  ret i32 %complete", "}")
        return "\n".join(text.lines)

    def _signals(self) -> str:
        text = LoopText()
        text(f"define void @{self.name}_lanes_signals(ptr %memory, ptr %signals) nounwind {{", "entry:")
        row = text.place("%memory", self.lanes * self.model.layout.size)
        text(f"  call void @signals.lanes(ptr %memory, ptr {row}, ptr %signals)", "  ret void", "}")
        return "\n".join(text.lines)

    def _reset(self) -> str:
        """Each element of the memory at the start, once for each lane."""
        text = LoopText()
        text(f"define void @{self.name}_lanes_reset(ptr %memory) nounwind {{", "entry:", "  br label %next")
        text("next:", "  %k = phi i64 [ 0, %entry ], [ %k.next, %next ]")
        value = text.value(f"load double, ptr {text.place(f'@{self.name}.initial', '%k')}, align 8")
        first = text.value(f"mul i64 %k, {self.lanes}")
        for lane in range(self.lanes):
            place = text.place("%memory", text.value(f"add i64 {first}, {lane}"))
            text(f"  store double {value}, ptr {place}, align 8")
        size = self.model.layout.size + self.model.row.size
        text("  %k.next = add i64 %k, 1", f"  %more = icmp slt i64 %k.next, {size}")
        text("  br i1 %more, label %next, label %end", "end:", "  ret void", "}")
        return "\n".join(text.lines) + "\n"
