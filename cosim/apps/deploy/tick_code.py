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
from cosim.apps.deploy.lane_code import LaneCode
from cosim.apps.deploy.stages import StageCode, stage_code, unarmed
from cosim.core.compile import mathlib
from cosim.core.compile.freestanding import freestanding
from cosim.core.compile.routine import Routine
from cosim.core.types import Numeric
from cosim.simulation.loop.loop_text import LoopText, TickFunction
from cosim.simulation.loop.tick_ring import TickProgram
from cosim.simulation.tick.tick_model import TickModel

FUNCTIONS = ("reset", "ticks", "signals", "poses")


@dataclass(frozen=True)
class TickCode:
    """name: with which the functions begin; ir: LLVM IR of them all; size: of the memory, in doubles; bodies: how many
    poses there are."""

    name: str
    model: TickModel
    ir: str
    size: int
    bodies: int


def tick_code(model: TickModel, name: str, blend: float | None = None, lanes: int = 1) -> TickCode:
    """name: an identifier in C; model: of a rig that `exportable.check_rig` accepts; blend [s]: of the stages of a
    tick, see `stage_code`; None for code without them; lanes: of the functions of `lane_code`, 1 for code without
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
    return "\n".join(text.lines) + "\n"


def _reset(name: str, memory: np.ndarray) -> str:
    values = ", ".join(f"double {mathlib.constant(value)}" for value in memory.tolist())
    text = LoopText()
    text(f"@{name}.initial = internal constant [{len(memory)} x double] [{values}], align 64")
    text(f"define void @{name}_reset(ptr %memory) nounwind {{")
    text.copy(f"@{name}.initial", "%memory", len(memory))
    text("  ret void", "}")
    return "\n".join(text.lines) + "\n"


def _on_memory(model: TickModel, name: str, routine: Routine, inputs: Sequence[int]) -> str:
    """IR of `void @name(memory, result)`; inputs: places of the arguments in the memory."""
    hidden = [] if routine.symbolic_parameters is None else [model.layout.place("numbers").where.start]
    text = LoopText()
    text(f"define void @{name}(ptr %memory, ptr %result) nounwind {{")
    places = [text.place("%memory", place) for place in (*inputs, *hidden)]
    text(f"  call void @{routine.symbol}.1({', '.join(f'ptr {place}' for place in (*places, '%result'))})")
    text("  ret void", "}")
    return "\n".join(text.lines) + "\n"
