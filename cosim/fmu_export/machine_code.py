"""The ticks and the signals of a rig as object code that other machines link: `cosim_tick` and `cosim_observe`.

`unit.h` declares both for C. The tick is that of the compiled loop without its ring and its clock.
"""

from __future__ import annotations

from cosim.compile import emit, mathlib
from cosim.compile.compilation import Compilation
from cosim.compile.modules import modules
from cosim.compile.object_code import CodeTarget
from cosim.compile.routine import Routine, with_callees
from cosim.tick.tick_model import TickModel
from cosim.timing.loop_text import LoopText
from cosim.timing.tick_ring import RoutineCall, TickProgram


def observe_routine(model: TickModel) -> Routine:
    """(the flat BumplessStart, row) -> all signals."""
    start = model.layout.place("bumpless_start")
    return Routine(model.signals.observe, [start.shape, (model.row.size,)], "observe")


def objects_of(model: TickModel, observe: Routine, target: CodeTarget) -> list[bytes]:
    """Object code; none of it calls more than the C library and its mathematics. observe: `observe_routine`. Raises
    CompileError."""
    return Compilation(modules(code_of(model, observe)), target).result()


def code_of(model: TickModel, observe: Routine) -> str:
    """The LLVM IR of both functions."""
    program = model.compiled_program
    needed = {item.symbol: item for routine in (*program.routines, observe) for item in with_callees(routine)}
    parts = [emit.declarations({1}), mathlib.sincos(1), *(item.definition(1) for item in needed.values())]
    return "\n".join([*parts, _tick(program), _observe(observe)])


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


def _observe(observe: Routine) -> str:
    arguments = "ptr %start, ptr %row, ptr %signals"
    head = f"define void @cosim_observe({arguments}) nounwind {{"
    return "\n".join([head, f"  call void @{observe.symbol}.1({arguments})", "  ret void", "}"]) + "\n"
