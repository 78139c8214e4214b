"""The ticks and the signals of a rig as code for other machines: `cosim_tick` and `cosim_observe`.

`rig.h` declares both for C. The tick is that of the compiled loop without its ring and its clock.
"""

from __future__ import annotations

from cosim.compile import mathlib
from cosim.compile.routine import Routine
from cosim.fmu_export.functions import definitions, function
from cosim.tick.tick_model import TickModel
from cosim.timing.loop_text import LoopText
from cosim.timing.tick_ring import RoutineCall, TickProgram


def observe_routine(model: TickModel) -> Routine:
    """(the flat BumplessStart, row) -> all signals."""
    start = model.layout.place("bumpless_start")
    return Routine(model.signals.observe, [start.shape, (model.row.size,)], "observe")


def rig_code(model: TickModel, observe: Routine) -> str:
    """The LLVM IR of both functions; observe: `observe_routine`."""
    program = model.compiled_program
    text = definitions([*program.routines, observe])
    return f"{text}\n{_tick(program)}{function('cosim_observe', observe, ('start', 'row'), ('signals',))}"


def _tick(program: TickProgram) -> str:
    """`i64 @cosim_tick(memory, number)`: the calls of every task that is due; ends with 1 after a fault."""
    text = LoopText()
    text("define i64 @cosim_tick(ptr %memory, i64 %number) nounwind {", "entry:")
    t = text.value(f"fmul double {text.value('sitofp i64 %number to double')}, {mathlib.constant(program.step)}")
    text(f"  store double {t}, ptr {text.place('%memory', program.time)}, align 8")
    for i, task in enumerate(program.tasks):
        due = text.value(f"icmp eq i64 {text.value(f'srem i64 %number, {task.ticks}')}, {task.phase}")
        text(f"  br i1 {due}, label %task.{i}, label %task.{i}.done", f"task.{i}:")
        for call in task.calls:
            assert isinstance(call, RoutineCall)
            text.call(call, "%memory")
        text(f"  br label %task.{i}.done", f"task.{i}.done:")
        if i == program.judge:
            text(f"  %fault = load double, ptr {text.place('%memory', program.fault)}, align 8")
            text(f"  %faulty = fcmp une double %fault, {mathlib.constant(0.0)}")
            text("  br i1 %faulty, label %ended, label %sound", "ended:", "  ret i64 1", "sound:")
    text("  ret i64 0", "}")
    return "\n".join(text.lines) + "\n"
