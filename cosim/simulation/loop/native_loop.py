"""The compiled loop: runs the ticks of a program without the Python interpreter.

A tick is a list of tasks in running order; a task is a list of calls whose arguments are regions of the memory. The
loop runs ticks as fast as possible or paced by a clock. For each tick it stores a row and, with a clock, time stamps in
a ring, which Python reads without a lock.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from cosim.core.compile import mathlib
from cosim.core.compile.jit import Library
from cosim.core.compile.routine import Routine, definitions
from cosim.core.types import Numeric
from cosim.simulation.loop.clocks import NO_TRIGGER
from cosim.simulation.loop.loop_text import LoopText, TickText
from cosim.simulation.loop.pacing import CHECK_CLOCK, PACE, SCHEDULE_NEXT, check_clock, schedule_next
from cosim.simulation.loop.tick_ring import (
    STATUS_OF_RESULT,
    LoopStatus,
    NativeCall,
    PacingMemory,
    PythonCall,
    RoutineCall,
    SharedWord,
    TickProgram,
    TickRing,
)


def policy_call(fn: Callable[..., Numeric], names: tuple[tuple[str, ...], tuple[str, ...]]) -> RoutineCall:
    """`schedule_next` or `check_clock` on the memory of a `PacingMemory`."""
    inputs, outputs = (tuple(PACE.place(name) for name in side) for side in names)
    routine = Routine(fn, [region.shape for region in inputs], fn.__name__)
    return RoutineCall(routine, tuple(region.where for region in inputs), tuple(region.where for region in outputs))


_SHARED = ("words", "memory", "python", "native", "rows")
_ARGUMENTS = (*_SHARED, "stamps", "deadlines", "policy", "now", "cpu", "wait", "context")
# number of a PythonCall -> 0, or 1 if it failed
PYTHON = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)


class NativeLoop:
    """The ticks of a program in compiled code."""

    def __init__(self, program: TickProgram) -> None:
        self.__setstate__((program, _code(program)))

    def __getstate__(self) -> tuple[TickProgram, str]:
        """The program without its calls, and the LLVM IR, which is linked where it is needed."""
        tasks = tuple(replace(task, calls=()) for task in self.program.tasks)
        return replace(self.program, tasks=tasks), self.code

    def __setstate__(self, state: tuple[TickProgram, str]) -> None:
        self.program, self.code = state
        self.library = Library(self.code, ["ticks.fast", "ticks.paced"], {})

    @cached_property
    def _entries(self) -> list[Callable[..., None]]:
        """Free running and paced."""
        entry = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(_ARGUMENTS))
        return [entry(self.library[f"ticks.{kind}"]) for kind in ("fast", "paced")]

    def link(self) -> None:
        """Wait until the code is compiled."""
        self.library.link()

    def run(
        self,
        memory: np.ndarray,
        ring: TickRing,
        pacing: PacingMemory | None = None,
        python: Callable[[int], int] | None = None,
        native: np.ndarray | None = None,
    ) -> None:
        """Run the ticks that the shared words request: paced, or as fast as possible without `pacing`. python: makes
        the call of Python with this number, 0, or 1 if it failed, which ends the ticks with a fault; the loop runs
        without the interpreter's lock. native (k, 2) integers: the functions of `NativeCall`."""
        callback = ctypes.cast(PYTHON(python), ctypes.c_void_p) if python is not None else None
        table = None if native is None else native.ctypes.data
        shared = [ring.words.ctypes.data, memory.ctypes.data, callback, table, ring.rows.ctypes.data]
        free_running, in_real_time = self._entries
        if pacing is None:
            free_running(*shared, *[None] * (len(_ARGUMENTS) - len(shared)))
            return
        paced = [array.ctypes.data for array in (ring.stamps, pacing.deadlines, pacing.memory)]
        in_real_time(*shared, *paced, *pacing.clock.functions)


def _code(program: TickProgram) -> str:
    """The LLVM IR of the loop."""
    policies = policy_call(schedule_next, SCHEDULE_NEXT), policy_call(check_clock, CHECK_CLOCK)
    routines = [*program.routines, *(call.routine for call in policies)]
    loops = [_LoopWriter(program, paced, *policies).text() for paced in (False, True)]
    return "\n".join([definitions({1: routines}), _change(), *loops])


def _change() -> str:
    """The IR of the function that stores the values of a change in their places."""
    text = LoopText()
    text("define internal void @ticks.change(ptr %words, ptr %memory) noinline nounwind {", "entry:")
    text(f"  %address = {text.load(SharedWord.CHANGE_TABLE)}", f"  %rows = {text.load(SharedWord.CHANGE_ROWS)}")
    text("  %table = inttoptr i64 %address to ptr", "  br label %head")
    text("head:", "  %row = phi i64 [ 0, %entry ], [ %next, %store ]", "  %done = icmp sge i64 %row, %rows")
    text("  br i1 %done, label %end, label %store", "store:")
    text(f"  %at = {text.at('%table', text.value('mul i64 %row, 2'), 'i64')}", "  %place = load i64, ptr %at, align 8")
    text.write(text.read("%at", 1), "%memory", "%place")
    text("  %next = add i64 %row, 1", "  br label %head", "end:", "  ret void", "}")
    return "\n".join(text.lines)


class _LoopWriter(TickText):
    """Writes the IR of `void @ticks.fast(…)` or `@ticks.paced(…)`, in running order."""

    def __init__(self, program: TickProgram, paced: bool, schedule_next: RoutineCall, check_clock: RoutineCall) -> None:
        super().__init__(program)
        self.paced, self.schedule_next, self.check_clock = paced, schedule_next, check_clock
        self.ends: list[str] = []  # times of the tasks

    def text(self) -> str:
        kind = "paced" if self.paced else "fast"
        self(f"define void @ticks.{kind}({', '.join(f'ptr %{name}' for name in _ARGUMENTS)}) nounwind {{", "entry:")
        self(f"  %count = {self.load(SharedWord.COUNT)}", f"  %places = {self.load(SharedWord.PLACES)}")
        self(f"  %first = {self.load(SharedWord.NUMBER)}", f"  %start.given = {self.load(SharedWord.START)}")
        self(f"  %triggered.word = {self.load(SharedWord.TRIGGERED)}", "  %triggered = icmp ne i64 %triggered.word, 0")
        self(f"  %begun = {'call i64 %now()' if self.paced else 'add i64 0, 0'}", "  br label %head")
        self("head:", "  %done = phi i64 [ 0, %entry ], [ %done.next, %again ]")
        self("  %due = phi i64 [ %start.given, %entry ], [ %due.next, %again ]")
        self("  %before = phi i64 [ %begun, %entry ], [ %end, %again ]")
        self(f"  %woke.before = phi i64 [ 0, %entry ], [ {'%woke' if self.paced else '0'}, %again ]")
        self("  %start = phi i64 [ %start.given, %entry ], [ %start.now, %again ]")
        self.leave_when("icmp sge i64 %done, %count", LoopStatus.FINISHED, "go")
        self._wait()
        self("  %number = add i64 %first, %done")
        self._change()
        self._begin()
        self.tasks()
        ends = self._merged_ends()
        self._publish(ends)
        self.leave_when("icmp ne i1 %faulty, 0", LoopStatus.FAULT, "ok")
        self._schedule_next(ends)
        self("  br label %again", "again:", "  %done.next = add i64 %done, 1", "  br label %head", "}")
        return self.ir

    def _wait(self) -> None:
        """Wait until the tick may begin; a triggered tick is due when its trigger comes."""
        if self.paced:
            self("  %woke = call i64 %wait(i64 %due, ptr %context)")
        self(f"  %stop = {self.load(SharedWord.STOP, 'acquire')}")
        self.leave_when("icmp ne i64 %stop, 0", LoopStatus.STOPPED, "tick")
        if not self.paced:
            self("  %start.now = add i64 %start, 0")
            return
        self.leave_when(f"icmp eq i64 %woke, {NO_TRIGGER}", LoopStatus.NO_TRIGGER, "awake")
        since_start = self.value(f"fptosi double {self.load_policy('due')} to i64")
        self(f"  %start.trigger = sub i64 %woke, {since_start}")
        self("  %start.now = select i1 %triggered, i64 %start.trigger, i64 %start")
        self("  %due.now = select i1 %triggered, i64 %woke, i64 %due")
        for name, time in (("due", "%due.now"), ("previous", "%before"), ("woke", "%woke")):
            self.store_policy(name, self.value(f"sub i64 {time}, %start.now"))
        self.call(self.check_clock, "%policy")
        self._end_on("clock", (LoopStatus.WENT_BACK, LoopStatus.JUMPED))

    def _change(self) -> None:
        """Make a change of the memory that was given since the last tick."""
        self(
            f"  %given = {self.load(SharedWord.CHANGES, 'acquire')}", f"  %made = {self.load(SharedWord.CHANGES_MADE)}"
        )
        self("  %unchanged = icmp eq i64 %given, %made", "  br i1 %unchanged, label %changed, label %change", "change:")
        self("  call void @ticks.change(ptr %words, ptr %memory)")
        self.store("%number", SharedWord.CHANGED_AT)
        self.store("%given", SharedWord.CHANGES_MADE, "release")
        self("  br label %changed", "changed:")

    def _begin(self) -> None:
        """As in `TickText`; the row is in the ring."""
        self.write_time(self.ticks.step, self.ticks.time)
        self(f"  %taken = {self.load(SharedWord.TAKEN)}", f"  %read = {self.load(SharedWord.READ, 'acquire')}")
        self("  %unread = sub i64 %taken, %read", "  %room = icmp slt i64 %unread, %places")
        self("  %ring = srem i64 %taken, %places", "  %place = select i1 %room, i64 %ring, i64 %places")
        self(f"  %row = {self.at('%rows', self.value(f'mul i64 %place, {self.ticks.row}'))}")
        self.copy("%memory", "%row", self.ticks.early)

    def make(self, call: RoutineCall | PythonCall | NativeCall, task: int) -> None:
        if isinstance(call, PythonCall):
            failed = f"icmp ne i64 {self.value(f'call i64 %python(i64 {call.number})')}, 0"
            self.leave_when(failed, LoopStatus.FAULT, f"python.{call.number}")
        elif isinstance(call, NativeCall):
            self._native_task(call.number, task)
        else:
            super().make(call, task)

    def end_task(self, task: int) -> None:
        """A task that did not run has the end time of the task before it."""
        before = self.ends[-1] if self.ends else "%woke" if self.paced else "0"
        self(f"  br label %task.{task}.ended", f"task.{task}.ended:")
        now = self.value("call i64 %now()") if self.paced else "0"
        super().end_task(task)
        self.ends.append(self.value(f"phi i64 [ {now}, %task.{task}.ended ], [ {before}, %task.{task}.check ]"))

    def after_judge(self) -> None:
        self("  br i1 %faulty, label %ended, label %sound", "sound:")

    def _merged_ends(self) -> list[str]:
        """The end time of each task; after a fault, the judge's for tasks after it."""
        judge = self.ticks.judge
        self("  br label %ended", "ended:")
        cut = f"[ {self.ends[judge]}, %task.{judge}.done ]"
        return [
            self.value(f"phi i64 {cut}, [ {end}, %tasks.done ]") if i > judge else end
            for i, end in enumerate(self.ends)
        ]

    def _native_task(self, number: int, task: int) -> None:
        due, until = "0", "0"
        if self.paced:
            deadline = self.value(f"load i64, ptr {self.place('%deadlines', task, 'i64')}, align 8")
            due, until = "%due.now", self.value(f"add i64 %due.now, {deadline}")
        result = self._native_call(number, due, until)
        self.leave_when(f"icmp ne i64 {result}, 0", LoopStatus.FAULT, f"native.{number}")

    def _native_call(self, number: int, due: str, until: str) -> str:
        function, context = (
            self.value(f"load i64, ptr {self.place('%native', 2 * number + k, 'i64')}, align 8") for k in (0, 1)
        )
        target, memory = self.value(f"inttoptr i64 {function} to ptr"), self.value("ptrtoint ptr %memory to i64")
        return self.value(f"call i64 {target}(i64 {context}, i64 {memory}, i64 {due}, i64 {until})")

    def before_leaving(self) -> None:
        for call in self.ticks.at_end:
            self._native_call(call.number, "0", "0")

    def _publish(self, ends: list[str]) -> None:
        """Store the rest of the row and the stamps, then publish them in the words."""
        self.complete_row()
        if self.paced:
            stamps = self.place("%stamps", self.value(f"mul i64 %place, {3 + len(ends)}"), "i64")
            self("  %cpu.now = call i64 %cpu()")
            for i, stamp in enumerate(("%due.now", "%woke", *ends, "%cpu.now")):
                self(f"  store i64 {stamp}, ptr {self.place(stamps, i, 'i64')}, align 8")
        self("  %put = zext i1 %room to i64", "  %not.put = sub i64 1, %put")
        self(f"  %lost = {self.load(SharedWord.LOST)}", "  %lost.now = add i64 %lost, %not.put")
        self("  %number.next = add i64 %number, 1", "  %taken.now = add i64 %taken, %put")
        self.store("%lost.now", SharedWord.LOST)
        self.store("%number.next", SharedWord.NUMBER)
        self.store("%taken.now", SharedWord.TAKEN, "release")

    def _schedule_next(self, ends: list[str]) -> None:
        """Compute when the next tick is due, or end the loop after too many late ticks."""
        if not self.paced:
            self("  %end = add i64 0, 0", "  %due.next = add i64 0, 0")
            return
        self(f"  %end = add i64 {ends[-1]}, 0")
        late = "false"
        for i, (task, end) in enumerate(zip(self.ticks.tasks, ends, strict=True)):
            deadline = self.value(f"load i64, ptr {self.place('%deadlines', i, 'i64')}, align 8")
            over = self.value(f"icmp sgt i64 {self.value(f'sub i64 {end}, %due.now')}, {deadline}")
            late = self.value(f"or i1 {late}, {self.value(f'and i1 {self.is_due(task)}, {over}')}")
        self("  %follows = icmp sgt i64 %done, 0", "  %between = and i1 %follows, %triggered")
        self(
            "  %interval = sub i64 %woke, %woke.before",
            "  %interval.counted = select i1 %between, i64 %interval, i64 0",
        )
        self.store_policy("interval", "%interval.counted")
        self.store_policy("late", self.value(f"zext i1 {late} to i64"))
        self.store_policy("k", "%done")
        self.store_policy("ended", self.value("sub i64 %end, %start.now"))
        self.call(self.schedule_next, "%policy")
        self._end_on("late", (LoopStatus.LATE,))
        since_start = self.value(f"fptosi double {self.load_policy('due')} to i64")
        self(f"  %due.next = add i64 %start.now, {since_start}")

    def _end_on(self, where: str, statuses: Sequence[LoopStatus]) -> None:
        """End the loop when the result of a policy is one of these."""
        result = self.load_policy("result")
        for status in statuses:
            found = mathlib.constant(float(STATUS_OF_RESULT.index(status)))
            self.leave_when(f"fcmp oeq double {result}, {found}", status, f"{where}.{int(status)}")

    def store_policy(self, name: str, whole: str) -> None:
        """Store a whole number in the memory of the policy."""
        self.write(self.value(f"sitofp i64 {whole} to double"), "%policy", PACE.place(name).where.start)

    def load_policy(self, name: str) -> str:
        return self.read("%policy", PACE.place(name).where.start)
