"""The ticks of a rig as functions that C calls, for any target.

    void NAME_reset(double *memory)             the memory at the start of a run
    int32_t NAME_ticks(double *memory, int64_t first, int32_t count)
                                                run ticks from number `first` on; how many are complete, fewer than
                                                `count` if the guard stopped the next one
    void NAME_signals(const double *memory, double *signals)
                                                all signals of the last tick
    void NAME_poses(const double *memory, double *poses)
                                                (bodies, 3, 4): axes and origins of the moving bodies in the base frame

The memory has `TickModel.layout`, then the row of the last tick, and what the stages of a tick keep.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cosim.apps.deploy.c_functions import NONE, definitions
from cosim.apps.deploy.stages import StageCode, stage_code, unarmed
from cosim.core.compile import mathlib
from cosim.core.compile.freestanding import freestanding
from cosim.core.compile.routine import Routine
from cosim.core.types import Numeric
from cosim.simulation.loop.loop_text import LoopText, TickFunction
from cosim.simulation.loop.rollout_program import RolloutProgram
from cosim.simulation.loop.simd_loop import simd_functions
from cosim.simulation.loop.tick_ring import LoopStatus, SharedWord, TickProgram
from cosim.simulation.tick.tick_model import TickModel

FUNCTIONS = ("reset", "ticks", "signals", "poses")
LANE_FUNCTIONS = ("lanes_reset", "lanes_ticks", "lanes_signals")


@dataclass(frozen=True)
class TickCode:
    """The ticks of a rig as functions for C. name: with which the functions begin; ir: LLVM IR of them all; size: of
    the memory, in doubles; bodies: how many poses there are."""

    name: str
    model: TickModel
    ir: str
    size: int
    bodies: int


def tick_code(model: TickModel, name: str, blend: float | None = None, lanes: int = 1) -> TickCode:
    """name: an identifier in C; model: of a rig that `exportable.check_rig` accepts; blend [s]: of the stages of a
    tick, see `stage_code`; None for code without them; lanes: of the functions of `LaneCode`, 1 for code without
    them. Only stages take joints with real motors, of which the memory is not armed."""
    observe, poses = observe_routine(model), poses_routine(model)
    program, row = model.compiled_program, model.layout.size
    (elements,) = poses.output_sizes
    start = model.layout.place("bumpless_start").where.start
    plant = model.row.place("plant").where.start
    memory, real = model.memory(), bool(model.plant.real)
    stages = StageCode() if blend is None else stage_code(model, name, blend, row)
    routines = [] if real else program.routines
    beyond = model.signals.first_row, np.zeros(stages.size)
    side_by_side = LaneCode(name, model, observe, lanes) if lanes > 1 else None
    texts = [
        definitions(
            [*routines, *stages.routines, observe, poses], {lanes: side_by_side.routines} if side_by_side else NONE
        ),
        *([] if real else [_tick(name, program), _ticks(name, program, row)]),
        stages.text,
        _reset(name, np.concatenate([unarmed(model, memory) if real else memory, *beyond])),
        side_by_side.text() if side_by_side else "",
        _on_memory(model, f"{name}_signals", observe, [start, row]),
        _on_memory(model, f"{name}_poses", poses, [row + program.time, row + plant]),
    ]
    return TickCode(name, model, freestanding("\n".join(texts)), row + program.row + stages.size, elements // 12)


def observe_routine(model: TickModel) -> Routine:
    """(the flat BumplessStart, row) -> all signals."""
    start = model.layout.place("bumpless_start")
    return Routine(model.signals.observe, [start.shape, (model.row.size,)], "observe")


def poses_routine(model: TickModel) -> Routine:
    """(t, state of the plant) -> poses (n, 3, 4) of the moving bodies, and of the stations of elastic links."""
    plant = model.plant
    equations = plant.model.drawn.equations

    def poses(t: Numeric, x: Numeric) -> Numeric:
        q = plant.motion(t, plant.layout.unpack(x))[0]
        return equations.body_poses(q, t) if equations.timed else equations.body_poses(q)

    return Routine(poses, [(), (plant.layout.size,)], "poses")


def _tick(name: str, program: TickProgram) -> str:
    return TickFunction(program).text(f"{name}.tick").replace("define ", "define internal ", 1)


def _ticks(name: str, program: TickProgram, at: int) -> str:
    """The row is kept as in the compiled loop: its early part as at the beginning of the tick, the rest as at its end;
    at: where in the memory."""
    text = LoopText()
    text(f"define i32 @{name}_ticks(ptr %memory, i64 %first, i32 %count) nounwind {{", "entry:")
    early, time = program.early, program.time
    row, rest, row_rest, now, row_time = (text.place("%memory", k) for k in (at, early, at + early, time, at + time))
    text("  br label %next", "next:", "  %done = phi i32 [ 0, %entry ], [ %done.next, %sound ]")
    text("  %more = icmp slt i32 %done, %count", "  br i1 %more, label %tick, label %end")
    text("tick:", "  %done.wide = sext i32 %done to i64", "  %number = add i64 %first, %done.wide")
    text.copy("%memory", row, early)
    text(f"  %fault = call i32 @{name}.tick(ptr %memory, i64 %number)")
    text.copy(rest, row_rest, program.row - early)
    text(f"  store double {text.value(f'load double, ptr {now}, align 8')}, ptr {row_time}, align 8")
    text("  %faulty = icmp ne i32 %fault, 0", "  br i1 %faulty, label %end, label %sound")
    text("sound:", "  %done.next = add i32 %done, 1", "  br label %next", "end:", "  ret i32 %done", "}")
    return text.ir


def _reset(name: str, memory: np.ndarray) -> str:
    values = ", ".join(f"double {mathlib.constant(value)}" for value in memory.tolist())
    text = LoopText()
    text(f"@{name}.initial = internal constant [{len(memory)} x double] [{values}], align 64")
    text(f"define void @{name}_reset(ptr %memory) nounwind {{")
    text.copy(f"@{name}.initial", "%memory", len(memory))
    text("  ret void", "}")
    return text.ir


def _on_memory(model: TickModel, name: str, routine: Routine, inputs: Sequence[int]) -> str:
    """IR of `void @name(memory, result)`; inputs: places of the arguments in the memory."""
    hidden = [] if routine.symbolic_parameters is None else [model.layout.place("numbers").where.start]
    text = LoopText()
    text(f"define void @{name}(ptr %memory, ptr %result) nounwind {{")
    places = [text.place("%memory", place) for place in (*inputs, *hidden)]
    text.invoke(routine, [*places, "%result"])
    text("  ret void", "}")
    return text.ir


@dataclass(frozen=True)
class LaneCode:
    """Several runs side by side in the SIMD lanes of a target: writes the functions, without the routines they call.

        void NAME_lanes_reset(double *memory)       all lanes at the start of a run
        int32_t NAME_lanes_ticks(double *memory, int64_t first, int32_t count)
                                                    how many ticks are complete in all lanes, fewer than `count` if
                                                    the guard stopped a lane in the next one: others have completed it
        void NAME_lanes_signals(const double *memory, double *signals)

    Element k of lane j is at `lanes · k + j`, of the memory and of the signals. Each lane has the memory of one run,
    and its `fault` states whether the guard stopped it. name: with which the functions begin; observe: see
    `observe_routine`.
    """

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
        value = text.read(f"@{self.name}.initial", "%k")
        first = text.value(f"mul i64 %k, {self.lanes}")
        for lane in range(self.lanes):
            text.write(value, "%memory", text.value(f"add i64 {first}, {lane}"))
        size = self.model.layout.size + self.model.row.size
        text("  %k.next = add i64 %k, 1", f"  %more = icmp slt i64 %k.next, {size}")
        text("  br i1 %more, label %next, label %end", "end:", "  ret void", "}")
        return text.ir
