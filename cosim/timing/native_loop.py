"""Routines called again and again on one memory, in machine code, without the interpreter: the ticks of a rig.

A tick is a list of tasks in running order, a task a list of calls whose arguments are places in the memory. The loop
takes ticks as fast as it can, or on time by a clock; then it leaves the times of each tick beside its row. Rows go into
a ring that Python may read meanwhile: the loop holds no lock, and each of the words that both sides share is written
by one of them alone.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import numpy as np

from cosim.compile import emit, mathlib
from cosim.compile.jit import Library
from cosim.compile.routine import Routine, with_callees
from cosim.timing.clocks import NO_PULSE, Clock
from cosim.timing.pacing import FOLLOW, PACE, WAKE, follow, wake


class SharedWord(IntEnum):
    """The words that both sides share. Python writes those up to READ, the loop the others."""

    COUNT = 0  # ticks to take
    START = 1  # ns, when the first of them is due
    PULSED = 2  # not 0: a tick is due when its wait ends
    PLACES = 3  # ticks that the ring holds
    STOP = 4  # not 0 ends the loop before its next tick
    READ = 5  # ticks that were read from the ring
    NUMBER = 6  # of the next tick; the loop moves it on
    TAKEN = 7  # ticks that were put into the ring
    DROPPED = 8  # ticks that found no place
    STATUS = 9  # a Status


class LoopStatus(IntEnum):
    RUNNING, FINISHED, FAULT, STOPPED, LATE, WENT_BACK, JUMPED, NO_PULSE = range(8)


# what `pacing.follow` and `pacing.wake` find -> how the loop ends
ENDINGS = (LoopStatus.RUNNING, LoopStatus.LATE, LoopStatus.WENT_BACK, LoopStatus.JUMPED)


@dataclass(frozen=True)
class RoutineCall:
    """A routine and the places of its arguments in the memory: inputs, then outputs."""

    routine: Any
    inputs: tuple[slice, ...]
    outputs: tuple[slice, ...]


@dataclass(frozen=True)
class LoopTask:
    """Calls that are made every `ticks` ticks, from tick `phase` on."""

    calls: tuple[RoutineCall, ...]
    ticks: int = 1
    phase: int = 0


@dataclass(frozen=True)
class TickProgram:
    """The ticks of a rig: its tasks in running order, and where the memory holds what the loop itself needs.

    A row is the beginning of the memory: `early` of it as it is when the tick begins, the rest when it ends. The tick
    ends after task number `judge` if that left something else than 0 at `fault`.
    """

    tasks: tuple[LoopTask, ...]
    step: float  # s
    time: int  # place of t = number · step
    fault: int
    judge: int
    early: int
    row: int


@dataclass
class TickRing:
    """What ticks leave: rows (k, nr), stamps (k, 3 + tasks) where there is a clock, and the words.

    Stamps of a tick [ns]: when it was due, when it began, the end of each task (where it does not run, of the one
    before), processor time of the thread.
    """

    program: TickProgram
    places: int
    stamped: bool = False
    words: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        # one place more than counts, for what finds none
        self.rows = np.zeros((self.places + 1, self.program.row))
        self.stamps = np.zeros((self.places + 1, 3 + len(self.program.tasks) if self.stamped else 0), dtype=np.int64)
        self.words = np.zeros(len(SharedWord), dtype=np.int64)
        self.words[SharedWord.PLACES] = self.places

    def read(self, most: int) -> tuple[np.ndarray, np.ndarray]:
        """(rows, stamps) of ticks that were taken and not read yet, `most` at most."""
        first, taken = int(self.words[SharedWord.READ]), int(self.words[SharedWord.TAKEN])
        at = np.arange(first, min(taken, first + most)) % self.places
        found = self.rows[at], self.stamps[at]
        self.words[SharedWord.READ] = first + len(at)
        return found

    @property
    def status(self) -> LoopStatus:
        return LoopStatus(int(self.words[SharedWord.STATUS]))

    @property
    def waiting(self) -> int:
        """Ticks taken and not read yet."""
        return int(self.words[SharedWord.TAKEN] - self.words[SharedWord.READ])


@dataclass
class PaceMemory:
    """How ticks are held to time: a clock, the settings of the policy (`pacing.settings`), deadlines (tasks,) [ns after
    due]; and the memory of the policy since START."""

    clock: Clock
    settings: np.ndarray
    deadlines: np.ndarray

    def __post_init__(self) -> None:
        self.memory = np.zeros(PACE.size)
        self.memory[PACE.place("settings").where] = self.settings

    @property
    def lost_ns(self) -> int:
        """Time given up before the last tick was due."""
        return int(self.memory[PACE.place("lost").where][0])


def policy(fn: Any, words: tuple[tuple[str, ...], tuple[str, ...]]) -> RoutineCall:
    """`pacing.follow` or `pacing.wake` on the memory of a pace."""
    inputs, outputs = (tuple(PACE.place(word) for word in side) for side in words)
    routine = Routine(fn, [place.shape for place in inputs], fn.__name__)
    return RoutineCall(routine, tuple(place.where for place in inputs), tuple(place.where for place in outputs))


_ARGUMENTS = ("words", "memory", "rows", "stamps", "deadlines", "pace", "now", "cpu", "wait", "context")


class NativeLoop:
    """The ticks of a program in machine code."""

    def __init__(self, program: TickProgram) -> None:
        self.program = program
        policies = policy(follow, FOLLOW), policy(wake, WAKE)
        calls = [*(call for task in program.tasks for call in task.calls), *policies]
        needed = {item.symbol: item for call in calls for item in with_callees(call.routine)}
        parts = [emit.declarations({1}), mathlib.sincos(1), *(item.definition(1) for item in needed.values())]
        parts += [_LoopWriter(program, paced, *policies).text() for paced in (False, True)]
        self.library = Library("\n".join(parts), ["ticks.fast", "ticks.paced"], {})
        self._fast, self._paced = (
            ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(_ARGUMENTS))(self.library[f"ticks.{kind}"])
            for kind in ("fast", "paced")
        )

    def run(self, memory: np.ndarray, rings: TickRing, pace: PaceMemory | None = None) -> None:
        """Take the ticks that the rings' words ask for; without a pace as fast as they can be taken."""
        shared = [array.ctypes.data for array in (rings.words, memory, rings.rows)]
        if pace is None:
            self._fast(*shared, *[None] * (len(_ARGUMENTS) - len(shared)))
            return
        own = [array.ctypes.data for array in (rings.stamps, pace.deadlines, pace.memory)]
        self._paced(*shared, *own, *pace.clock.functions)


class _LoopWriter:
    """Writes the IR of `void @ticks.fast(…)` or `@ticks.paced(…)`, in the order in which a tick goes."""

    def __init__(self, program: TickProgram, paced: bool, follow: RoutineCall, wake: RoutineCall) -> None:
        self.program, self.paced, self.follow, self.wake = program, paced, follow, wake
        self.lines: list[str] = []
        self.fresh = 0

    def text(self) -> str:
        kind = "paced" if self.paced else "fast"
        self(f"define void @ticks.{kind}({', '.join(f'ptr %{name}' for name in _ARGUMENTS)}) nounwind {{", "entry:")
        self(f"  %count = {self.load(SharedWord.COUNT)}", f"  %places = {self.load(SharedWord.PLACES)}")
        self(f"  %first = {self.load(SharedWord.NUMBER)}", f"  %start.given = {self.load(SharedWord.START)}")
        self(f"  %pulsed.word = {self.load(SharedWord.PULSED)}", "  %pulsed = icmp ne i64 %pulsed.word, 0")
        self(f"  %begun = {'call i64 %now()' if self.paced else 'add i64 0, 0'}", "  br label %head")
        self("head:", "  %done = phi i64 [ 0, %entry ], [ %done.next, %again ]")
        self("  %due = phi i64 [ %start.given, %entry ], [ %due.next, %again ]")
        self("  %before = phi i64 [ %begun, %entry ], [ %end, %again ]")
        self(f"  %woken = phi i64 [ 0, %entry ], [ {'%woke' if self.paced else '0'}, %again ]")
        self("  %start = phi i64 [ %start.given, %entry ], [ %start.now, %again ]")
        self.leave_when("icmp sge i64 %done, %count", LoopStatus.FINISHED, "go")
        self._wait()
        self("  %number = add i64 %first, %done")
        self._begin()
        ends = self._tasks()
        self._publish(ends)
        self.leave_when(f"fcmp une double %fault, {mathlib.constant(0.0)}", LoopStatus.FAULT, "fine")
        self._follow(ends)
        self("  br label %again", "again:", "  %done.next = add i64 %done, 1", "  br label %head", "}")
        return "\n".join(self.lines) + "\n"

    def _wait(self) -> None:
        """Until the tick may begin; a pulse is what it is due by."""
        if self.paced:
            self("  %woke = call i64 %wait(i64 %due, ptr %context)")
        self(f"  %stop = {self.load(SharedWord.STOP, 'acquire')}")
        self.leave_when("icmp ne i64 %stop, 0", LoopStatus.STOPPED, "tick")
        if not self.paced:
            self("  %start.now = add i64 %start, 0")
            return
        self.leave_when(f"icmp eq i64 %woke, {NO_PULSE}", LoopStatus.NO_PULSE, "awake")
        way = self.value(f"fptosi double {self.noted('due')} to i64")
        self(f"  %start.pulse = sub i64 %woke, {way}")
        self("  %start.now = select i1 %pulsed, i64 %start.pulse, i64 %start")
        self("  %due.now = select i1 %pulsed, i64 %woke, i64 %due")
        for word, time in (("due", "%due.now"), ("before", "%before"), ("woke", "%woke")):
            self.note(word, self.value(f"sub i64 {time}, %start.now"))
        self.call(self.wake, "%pace")
        self._endings("clock", (LoopStatus.WENT_BACK, LoopStatus.JUMPED))

    def _begin(self) -> None:
        """The time of the tick, its place in the rings, and the early part of its row."""
        t = self.value(
            f"fmul double {self.value('sitofp i64 %number to double')}, {mathlib.constant(self.program.step)}"
        )
        self(f"  store double {t}, ptr {self.place('%memory', self.program.time)}, align 8")
        self(f"  %taken = {self.load(SharedWord.TAKEN)}", f"  %read = {self.load(SharedWord.READ, 'acquire')}")
        self("  %unread = sub i64 %taken, %read", "  %room = icmp slt i64 %unread, %places")
        self("  %ring = srem i64 %taken, %places", "  %place = select i1 %room, i64 %ring, i64 %places")
        self(f"  %row = {self.at('%rows', self.value(f'mul i64 %place, {self.program.row}'))}")
        self.copy("%memory", "%row", self.program.early)

    def _tasks(self) -> list[str]:
        """Make the calls of every task that is due; the time at the end of each, of one that does not run that of the
        one before: in a tick that a fault cuts short, of the fault."""
        ends, judge, end = [], self.program.judge, "%woke" if self.paced else "0"
        for i, task in enumerate(self.program.tasks):
            self(f"  br label %task.{i}.asked", f"task.{i}.asked:")
            due = self.value(f"icmp eq i64 {self.value(f'srem i64 %number, {task.ticks}')}, {task.phase}")
            self(f"  br i1 {due}, label %task.{i}, label %task.{i}.done", f"task.{i}:")
            for call in task.calls:
                self.call(call, "%memory")
            now = self.value("call i64 %now()") if self.paced else "0"
            self(f"  br label %task.{i}.done", f"task.{i}.done:")
            end = self.value(f"phi i64 [ {now}, %task.{i} ], [ {end}, %task.{i}.asked ]")
            ends.append(end)
            if i == judge:
                self(f"  %fault = load double, ptr {self.place('%memory', self.program.fault)}, align 8")
                self(f"  %faulty = fcmp une double %fault, {mathlib.constant(0.0)}")
                self("  br i1 %faulty, label %ended, label %sound", "sound:")
        self("  br label %whole", "whole:", "  br label %ended", "ended:")
        cut = f"[ {ends[judge]}, %task.{judge}.done ]"
        return [self.value(f"phi i64 {cut}, [ {end}, %whole ]") if i > judge else end for i, end in enumerate(ends)]

    def _publish(self, ends: list[str]) -> None:
        """The rest of the row, the stamps, and the word that they are there."""
        early, row = self.program.early, self.program.row
        self.copy(self.place("%memory", early), self.place("%row", early), row - early)
        if self.paced:
            stamps = self.place("%stamps", self.value(f"mul i64 %place, {3 + len(ends)}"), "i64")
            self("  %cpu.now = call i64 %cpu()")
            for i, stamp in enumerate(("%due.now", "%woke", *ends, "%cpu.now")):
                self(f"  store i64 {stamp}, ptr {self.place(stamps, i, 'i64')}, align 8")
        self("  %put = zext i1 %room to i64", "  %not.put = sub i64 1, %put")
        self(f"  %dropped = {self.load(SharedWord.DROPPED)}", "  %dropped.now = add i64 %dropped, %not.put")
        self("  %number.next = add i64 %number, 1", "  %taken.now = add i64 %taken, %put")
        self.store("%dropped.now", SharedWord.DROPPED)
        self.store("%number.next", SharedWord.NUMBER)
        self.store("%taken.now", SharedWord.TAKEN, "release")

    def _follow(self, ends: list[str]) -> None:
        """When the next tick is due, unless too many were late."""
        if not self.paced:
            self("  %end = add i64 0, 0", "  %due.next = add i64 0, 0")
            return
        self(f"  %end = add i64 {ends[-1]}, 0")
        late = "false"
        for i, (task, end) in enumerate(zip(self.program.tasks, ends, strict=True)):
            deadline = self.value(f"load i64, ptr {self.place('%deadlines', i, 'i64')}, align 8")
            over = self.value(f"icmp sgt i64 {self.value(f'sub i64 {end}, %due.now')}, {deadline}")
            due = self.value(f"icmp eq i64 {self.value(f'srem i64 %number, {task.ticks}')}, {task.phase}")
            late = self.value(f"or i1 {late}, {self.value(f'and i1 {due}, {over}')}")
        self("  %follows = icmp sgt i64 %done, 0", "  %between = and i1 %follows, %pulsed")
        self("  %interval = sub i64 %woke, %woken", "  %gap = select i1 %between, i64 %interval, i64 0")
        self.note("gap", "%gap")
        self.note("late", self.value(f"zext i1 {late} to i64"))
        self.note("k", "%done")
        self.note("ended", self.value("sub i64 %end, %start.now"))
        self.call(self.follow, "%pace")
        self._endings("late", (LoopStatus.LATE,))
        way = self.value(f"fptosi double {self.noted('due')} to i64")
        self(f"  %due.next = add i64 %start.now, {way}")

    def _endings(self, where: str, endings: Sequence[LoopStatus]) -> None:
        """Leave the loop when the verdict of a policy is one of these."""
        verdict = self.noted("verdict")
        for status in endings:
            found = mathlib.constant(float(ENDINGS.index(status)))
            self.leave_when(f"fcmp oeq double {verdict}, {found}", status, f"{where}.{int(status)}")

    # --- words of the code ---

    def __call__(self, *lines: str) -> None:
        self.lines += lines

    def value(self, text: str) -> str:
        self.fresh += 1
        self(f"  %v{self.fresh} = {text}")
        return f"%v{self.fresh}"

    def leave_when(self, condition: str, status: LoopStatus, after: str) -> None:
        """Leave the loop when the condition holds, else go on at the label `after`."""
        self(f"  br i1 {self.value(condition)}, label %leave.{after}, label %{after}", f"leave.{after}:")
        self.store(str(int(status)), SharedWord.STATUS, "release")
        self("  ret void", f"{after}:")

    @staticmethod
    def at(base: str, index: int | str, kind: str = "double") -> str:
        return f"getelementptr inbounds {kind}, ptr {base}, i64 {index}"

    def place(self, base: str, index: int | str, kind: str = "double") -> str:
        return self.value(self.at(base, index, kind))

    def load(self, word: SharedWord, order: str = "") -> str:
        return f"load {'atomic ' * bool(order)}i64, ptr {self.place('%words', int(word), 'i64')} {order}, align 8"

    def store(self, value: str, word: SharedWord, order: str = "") -> None:
        place = self.place("%words", int(word), "i64")
        self(f"  store {'atomic ' * bool(order)}i64 {value}, ptr {place} {order}, align 8")

    def note(self, word: str, whole: str) -> None:
        """A whole number as a word of the pace's memory."""
        real = self.value(f"sitofp i64 {whole} to double")
        self(f"  store double {real}, ptr {self.place('%pace', PACE.place(word).where.start)}, align 8")

    def noted(self, word: str) -> str:
        return self.value(f"load double, ptr {self.place('%pace', PACE.place(word).where.start)}, align 8")

    def call(self, call: RoutineCall, base: str) -> None:
        places = [f"ptr {self.place(base, place.start)}" for place in (*call.inputs, *call.outputs)]
        self(f"  call void @{call.routine.symbol}.1({', '.join(places)})")

    def copy(self, source: str, target: str, count: int) -> None:
        self(f"  call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, i64 {8 * count}, i1 false)")
