"""A tick of the compiled loop as a function of its own, without ring and clock, for programs without them."""

from __future__ import annotations

from cosim.compile import mathlib
from cosim.timing.loop_text import LoopText
from cosim.timing.tick_ring import RoutineCall, TickProgram


def tick_function(name: str, program: TickProgram) -> str:
    """IR of `i32 @name(memory, i64 number)`: the calls of every task that is due; ends with 1 after a fault."""
    text = LoopText()
    text(f"define i32 @{name}(ptr %memory, i64 %number) nounwind {{", "entry:")
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
            text("  br i1 %faulty, label %ended, label %sound", "ended:", "  ret i32 1", "sound:")
    text("  ret i32 0", "}")
    return "\n".join(text.lines) + "\n"
