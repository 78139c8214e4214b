"""Two ways to take the ticks of a rig: as fast as possible in the caller's thread, or on time in one of its own."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from contextlib import ExitStack
from typing import Any, Protocol

import numpy as np

from cosim.errors import InputError, RunError
from cosim.execution.engine import Engine
from cosim.timing import privileges
from cosim.timing.clock_sources import open_clock, source
from cosim.timing.clocks import Clock
from cosim.timing.daemon_executor import DaemonExecutor
from cosim.timing.deadlines import DeadlineRecord, TaskTime
from cosim.timing.native_loop import LoopStatus, PaceMemory, SharedWord, TickRing
from cosim.timing.pacing import Pacing, settings

FIRST_BLOCK = 32  # ticks; blocks as fast as possible grow until one takes BLOCK_TIME [s]
BLOCK_TIME = 0.02
RING_TIME = 8.0  # s that a ring holds of a run on time
LEAST_PLACES = 1 << 12
POLL = {"compiled": 0.02, "Python": 0.25}  # s between looks at the ring; of a loop in Python each look takes time
PATIENCE = 2.0  # s; a tick that was told to stop and takes longer hangs
LEAD_NS = 5_000_000  # from the order to start to the first tick: the loop's thread is up by then

Keep = Callable[[np.ndarray, np.ndarray], object]  # takes rows (k, nr) and stamps of finished ticks


class ExecutionMode(Protocol):
    """How ticks are taken, between two orders of the scheduler."""

    rights: tuple[privileges.Privilege, ...]

    def open(self, engine: Engine, stack: ExitStack) -> None:
        """Get what it takes; `stack` gives it back."""
        ...

    def arm(self) -> None:
        """Raises InputError when ticks must not begin without a right that is missing."""
        ...

    @property
    def soon(self) -> int:
        """A deadline [ns] for what is done between two runs, on the clock of the drivers."""
        ...

    def go(self, ticks: int) -> None:
        """So many ticks begin, or go on."""
        ...

    def more(self, left: int, keep: Keep) -> LoopStatus:
        """Wait for some of the ticks that are left; RUNNING, or how they ended."""
        ...

    def hold(self, keep: Keep) -> LoopStatus:
        """End the ticks after the one at hand."""
        ...

    def explain(self, status: LoopStatus) -> str:
        """Why its pace ended the ticks; empty when it did not."""
        ...


class FreeRunning:
    """A block of ticks in the caller's thread, each time it asks."""

    rights: tuple[privileges.Privilege, ...] = ()

    def open(self, engine: Engine, stack: ExitStack) -> None:
        self._engine = engine

    def arm(self) -> None:
        """It needs nothing."""

    @property
    def soon(self) -> int:
        return self._engine.number * self._engine.simulation.step_ns

    def go(self, ticks: int) -> None:
        self._block = FIRST_BLOCK

    def more(self, left: int, keep: Keep) -> LoopStatus:
        begun = time.perf_counter()
        status = run_block(self._engine, self._block, left, keep)
        if time.perf_counter() - begun < BLOCK_TIME:
            self._block *= 2
        return status

    def hold(self, keep: Keep) -> LoopStatus:
        return LoopStatus.STOPPED

    def explain(self, status: LoopStatus) -> str:
        return ""


def run_block(engine: Engine, most: int, left: int, keep: Keep) -> LoopStatus:
    """Take so many ticks, or those that are left, without a clock."""
    count = min(most, left)
    rings = TickRing(engine.program, count)
    try:
        engine.run_ticks(rings, count)
    finally:
        keep(*rings.read(count))  # also what there was before an interrupt
    return LoopStatus.RUNNING if rings.status is LoopStatus.FINISHED and count < left else rings.status


class Paced:
    """Ticks by a clock, in a thread of their own; the caller reads what the ring holds."""

    def __init__(self, pacing: Pacing, tasks: Sequence[TaskTime], place: Any, clock: Clock | None) -> None:
        """tasks: with their deadlines; place: of `schedule.realtime` in the rig, for errors; clock: instead of the
        pacing's."""
        self.pacing, self.tasks, self._place, self._given = pacing, tuple(tasks), place, clock
        self.rights: tuple[privileges.Privilege, ...] = ()
        self.lost_ns = self.dropped = 0
        self.taking: Future[None] = Future()
        self.taking.set_result(None)
        self._going = False
        self._zero_ns: int | None = None  # on the clock, when tick 0 would have been due
        self._between_ns = 0  # time between two runs, which is none of the rig's
        self._stamps: list[tuple[np.ndarray, np.ndarray]] = []  # numbers and stamps

    def open(self, engine: Engine, stack: ExitStack) -> None:
        """Raises InputError when the clock cannot be had."""
        self._engine, self._stack = engine, stack
        try:
            self._clock = self._given or open_clock(self.pacing, stack)
        except RunError as error:
            raise InputError(f"{error.what}; see to it or take another pulse", self._place) from error
        self._worker = DaemonExecutor("ticks")
        stack.callback(lambda: self._worker.close(self._patience))

    def arm(self) -> None:
        if not self.taking.done():
            raise RunError("the last run has not ended: what it waits for goes on; close it and make a new scheduler")
        if not self.rights:
            if self._engine.kind == "Python":
                self._stack.enter_context(privileges.quiet_interpreter())
            self.rights = self._worker.submit(self._take_rights).result()
        if self.pacing.strict:
            privileges.refuse_missing(self.rights, self._place)

    def _take_rights(self) -> tuple[privileges.Privilege, ...]:
        """In the thread of the loop, which also gives them back."""
        undo, worker = ExitStack(), self._worker
        self._stack.callback(lambda: wait([worker.submit(undo.close)], self._patience))
        return undo.enter_context(privileges.acquire(self.pacing))

    @property
    def _patience(self) -> float:
        """For the thread of the loop [s]; one that hangs was waited for already."""
        return 0.0 if self._engine.force_stopped and not self.taking.done() else PATIENCE

    @property
    def soon(self) -> int:
        return self._clock.now() + LEAD_NS

    def go(self, ticks: int) -> None:
        engine, pacing, step_ns = self._engine, self.pacing, self._engine.simulation.step_ns
        places = max(LEAST_PLACES, round(RING_TIME * 1e9 * pacing.rate / step_ns))
        self.rings = TickRing(engine.program, min(places, ticks), stamped=True)
        self._clock.begin()
        start = self._clock.now() + LEAD_NS
        self.rings.words[SharedWord.START] = start
        self.rings.words[SharedWord.PULSED] = pacing.pulse is not None
        zero = start - round(engine.number * step_ns / pacing.rate) - self.lost_ns
        self._zero_ns = zero if self._zero_ns is None else self._zero_ns
        self._between_ns = zero - self._zero_ns
        warm = dataclasses.replace(pacing, grace=0.0) if self._stamps else pacing
        deadlines = np.array([task.deadline_ns for task in self.tasks], dtype=np.int64)
        self._pace = PaceMemory(self._clock, settings(warm, step_ns), deadlines)
        self._going = True  # an interrupt from here on finds what it must stop
        self.taking = self._worker.submit(self._take, ticks)

    def _take(self, ticks: int) -> None:
        """In the thread of the loop: unless the loop was told to stop, motors are off as soon as it has ended."""
        try:
            self._engine.run_ticks(self.rings, ticks, self._pace)
        finally:
            if self.rings.status is not LoopStatus.STOPPED:
                self._engine.stop()

    def more(self, left: int, keep: Keep) -> LoopStatus:
        # a loop that was abandoned, by the watchdog, may never end
        if self._engine.force_stopped or self.taking.done():
            status = self._settle(keep)
            if self.taking.done():
                self.taking.result()  # raises an interrupt that met the loop
            return status
        if not self._read(keep):
            wait([self.taking], POLL[self._engine.kind])
        return LoopStatus.RUNNING

    def hold(self, keep: Keep) -> LoopStatus:
        if not self._going:
            return LoopStatus.STOPPED
        self.rings.words[SharedWord.STOP] = 1
        self._clock.leave()
        return self._settle(keep)

    def _read(self, keep: Keep) -> bool:
        """Hand on what the ring holds; whether there was anything."""
        rows, stamps = self.rings.read(self.rings.places)
        if len(rows):
            shift = np.full(stamps.shape[1], self._between_ns)
            shift[-1] = 0  # processor time
            self._stamps.append((self._engine.numbers(rows), stamps - shift))
            keep(rows, stamps)
        return len(rows) > 0

    def _settle(self, keep: Keep) -> LoopStatus:
        """The loop ends: take what it left, and what it says of its time."""
        self._going = False
        if not wait([self.taking], PATIENCE).done:
            self._engine.force_stop(PATIENCE)  # the cause that a watchdog gave stays
            self._read(keep)
            return LoopStatus.FAULT
        self._read(keep)
        self.dropped += int(self.rings.words[SharedWord.DROPPED])
        self.lost_ns += self._pace.lost_ns
        return self.rings.status

    def explain(self, status: LoopStatus) -> str:
        if status not in ENDINGS:
            return ""
        pulse, n = self.pacing.pulse, self.pacing.most
        number = self._engine.number - (status is LoopStatus.LATE)  # which is found when the tick is over
        row = f"{n} ticks in a row missed a deadline, the last one" if n > 1 else "it missed a deadline"
        words = {"row": row, "cause": "being late"}
        if pulse is not None:
            words |= {"source": source(pulse), "timeout": f"{pulse.timeout:g} s"}
        if status is LoopStatus.LATE and (misses := self.timing().misses()):
            words["cause"] = misses[-1].cause
        at = f"stopped at tick {number} (t = {number * self._engine.simulation.step:.6g} s)"
        return f"{at}: {ENDINGS[status].format_map(words)}"

    def timing(self, ticks: int | None = None) -> DeadlineRecord:
        """How on time the ticks were that have been read so far; of the last so many of them at least."""
        kept, found = self._stamps, 0
        for k, (numbers, _) in reversed(list(enumerate(self._stamps))):
            found += len(numbers)
            if ticks is not None and found >= ticks:
                kept = self._stamps[k:]
                break
        numbers, stamps = zip(*kept, strict=True) if kept else ((), ())
        return DeadlineRecord(
            tasks=self.tasks,
            period_ns=self._engine.simulation.step_ns / self.pacing.rate,
            numbers=np.concatenate([np.zeros(0, np.int64), *numbers]),
            stamps=np.concatenate([np.zeros((0, 3 + len(self.tasks)), np.int64), *stamps]),
            lost_ns=self.lost_ns,
            dropped=self.dropped,
            grace_ns=round(self.pacing.grace * 1e9),
            rate=self.pacing.rate,
            pulsed=self.pacing.pulse is not None,
            lane=self._engine.kind,
            rights=self.rights,
        )


# how a pace can end a run
ENDINGS = {
    LoopStatus.LATE: "{row} ({cause}); make schedule.step longer, the rig smaller, or allow more with"
    " schedule.realtime.most",
    LoopStatus.WENT_BACK: "the clock went back; real time needs a clock that is steady: see 'cosim doctor'",
    LoopStatus.JUMPED: "the clock jumped ahead by more than 1 s: the machine slept, or the program was held;"
    " run it again without that",
    LoopStatus.NO_PULSE: "no pulse from {source}: nothing sends to it, or not within {timeout}; look at what"
    " sends it, or wait longer with schedule.realtime.pulse.timeout",
}
