"""Real-time execution: ticks paced by a clock in a separate thread."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from contextlib import AbstractContextManager, ExitStack, nullcontext

import numpy as np

from cosim.core.errors import InputError, RunError, SourceLocation
from cosim.core.growing_table import SpillingTable, run_folder
from cosim.execution.engine import Engine
from cosim.execution.execution_mode import StoreBlock
from cosim.execution.timing import privileges
from cosim.execution.timing.clock_sources import open_clock, trigger_source
from cosim.execution.timing.daemon_executor import DaemonExecutor
from cosim.execution.timing.deadlines import DeadlineRecord, TaskTime
from cosim.simulation.loop.clocks import Clock
from cosim.simulation.loop.pacing import Pacing, settings
from cosim.simulation.loop.tick_ring import LoopStatus, PacingMemory, SharedWord, StopRequest, TickRing

RING_TIME = 8.0  # s of the run that a ring holds
MIN_PLACES = 1 << 12
# s between looks at the ring, by whether its ticks need the interpreter, from which each look takes time
POLL = {False: 0.02, True: 0.05}
CHANGE_POLL = 2e-4  # s
STOP_TIMEOUT = 2.0  # s from the order to stop, after which a tick hangs
STAMP_BYTES = 1 << 26  # in memory; further ones are on the disk
LEAD_NS = 5_000_000  # from the last hold command to the first tick, in which the drivers begin their cycles


class Paced:
    """Runs ticks paced by a clock in a separate thread; the caller reads the ring."""

    def __init__(
        self,
        pacing: Pacing,
        tasks: Sequence[TaskTime],
        place: SourceLocation | str | None,
        clock: Clock | None,
        postponed: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        """tasks: with their deadlines; place: of `schedule.realtime` in the rig, for errors; clock: instead of the one
        of the pacing; postponed: entered where an interrupt would lose rows."""
        self.pacing, self.tasks, self._place, self._given_clock = pacing, tuple(tasks), place, clock
        self._postponed = postponed
        self.privileges: tuple[privileges.Privilege, ...] = ()
        self.slip_ns = self.lost_rows = 0
        self.future: Future[None] = Future()  # of the ticks
        self.future.set_result(None)
        self._started = False
        self._drained = False  # the last look has emptied the ring
        self._zero_ns: int | None = None  # on the clock, when tick 0 would have been due
        self._paused_ns = 0  # time between runs, which is not the rig's
        self._stamps = SpillingTable(4 + len(self.tasks), np.int64, STAMP_BYTES, run_folder)  # numbers, then stamps

    def open(self, engine: Engine, stack: ExitStack) -> None:
        """Raises InputError when the clock cannot be opened."""
        self._engine, self._stack = engine, stack
        try:
            self._clock = self._given_clock or open_clock(self.pacing, stack)
        except RunError as error:
            raise InputError(f"{error.what}; fix it or use another trigger", self._place) from error
        self._executor = DaemonExecutor("ticks")
        stack.callback(lambda: self._executor.close(self._timeout))

    def arm(self) -> None:
        if not self.future.done():
            raise RunError("the last run has not ended, it still waits; close it and make a new scheduler")
        if not self.privileges:
            if self._engine.calls_python:
                self._stack.enter_context(privileges.quiet_interpreter())
            self.privileges = self._executor.submit(self._acquire_privileges).result()
        if self.pacing.strict:
            privileges.refuse_missing(self.privileges, self._place)

    def _acquire_privileges(self) -> tuple[privileges.Privilege, ...]:
        """In the thread of the loop, which also releases them."""
        undo, executor = ExitStack(), self._executor
        self._stack.callback(lambda: wait([executor.submit(undo.close)], self._timeout))
        return undo.enter_context(privileges.acquire(self.pacing))

    def hold(self, run: Callable[[], object]) -> None:
        self._executor.submit(run)

    @property
    def _timeout(self) -> float:
        """s to wait for the thread of the loop; 0 when it hangs, which was waited for before."""
        return 0.0 if self._engine.force_stopped and not self.future.done() else STOP_TIMEOUT

    @property
    def start_deadline_ns(self) -> int:
        return self._clock.now() + LEAD_NS

    def start(self, ticks: int, before: Callable[[TickRing | None], object], end_hold: Callable[[], object]) -> None:
        engine, pacing, step_ns = self._engine, self.pacing, self._engine.tick_model.step_ns
        places = max(MIN_PLACES, round(RING_TIME * 1e9 * pacing.rate / step_ns))
        self.ring = TickRing(engine.program, min(places, ticks), stamped=True)
        resumed = dataclasses.replace(pacing, warm_up=0.0) if len(self._stamps) else pacing
        deadlines = np.array([task.deadline_ns for task in self.tasks], dtype=np.int64)
        self._pace = PacingMemory(self._clock, settings(resumed, step_ns), deadlines)
        self._clock.begin()
        before(self.ring)
        self._started = True  # before the submission: an interrupt must find the running loop
        self._ended = threading.Lock()
        self._ended.acquire()
        self.future = self._executor.submit(self._run_ticks, ticks)
        self.future.add_done_callback(lambda _, ended=self._ended: ended.release())
        # the thread of the loop, which holds the motors, goes from its last command to the ticks: it waits for no other
        # thread, which on a machine under load may take longer than the watchdog of a drive
        end_hold()

    def _begin(self) -> None:
        """In the thread of the loop: the time of the first tick, which follows."""
        engine, step_ns = self._engine, self._engine.tick_model.step_ns
        start = self._clock.now() + LEAD_NS
        self.ring.words[SharedWord.START] = start
        self.ring.words[SharedWord.TRIGGERED] = self.pacing.trigger is not None
        zero = start - round(engine.number * step_ns / self.pacing.rate) - self.slip_ns
        self._zero_ns = zero if self._zero_ns is None else self._zero_ns
        self._paused_ns = zero - self._zero_ns

    def _run_ticks(self, ticks: int) -> None:
        """In the thread of the loop: motors off as soon as it has ended, except for a pause."""
        ring = self.ring
        try:
            self._begin()
            self._engine.run_ticks(ring, ticks, self._pace)
        finally:
            if ring.status is not LoopStatus.STOPPED or ring.words[SharedWord.STOP] != StopRequest.PAUSE:
                self._engine.stop()

    def change(self, places: np.ndarray, values: np.ndarray) -> int:
        if self.ring.changed_at is None:
            raise RunError("the loop has not made the change before; the tick that it runs hangs")
        self.ring.change(places, values)
        longest = STOP_TIMEOUT + self._engine.tick_model.step_ns * 1e-9 / self.pacing.rate
        until = time.monotonic() + longest
        while (tick := self.ring.changed_at) is None and not self.future.done() and time.monotonic() < until:
            time.sleep(CHANGE_POLL)
        if tick is None and (tick := self.ring.changed_at) is None:
            raise RunError("the run has ended" if self.future.done() else f"the loop has run no tick for {longest:g} s")
        return tick

    def collect(self, remaining: int, store: StoreBlock) -> LoopStatus:
        # a loop that was stopped by force may never end
        if self._engine.force_stopped or self.future.done():
            status = self._finish(store)
            if self.future.done():
                self.future.result()  # raises an interrupt of the loop
            return status
        if self._drained:  # blocks are as long as this wait: each costs its readers as much as hundreds of ticks
            self._wait(POLL[self._engine.calls_python])
        self._drained = self._read(store) < self.ring.places // 4
        return LoopStatus.RUNNING

    def stop_after_tick(self, request: StopRequest, store: StoreBlock) -> LoopStatus:
        if not self._started:
            return LoopStatus.STOPPED
        self.ring.words[SharedWord.STOP] = request
        self._clock.interrupt()
        return self._finish(store)

    def _wait(self, timeout: float) -> bool:
        """Wait up to `timeout` [s] for the end of the loop; whether it has ended."""
        # a lock, because two interrupts in a row break the condition of a future
        return self.future.done() or self._ended.acquire(timeout=timeout) or self.future.done()

    def _read(self, store: StoreBlock) -> int:
        """Store the rows in the ring; how many there were."""
        with self._postponed():
            rows, stamps = self.ring.read(self.ring.places)
            if len(rows):
                shift = np.full(stamps.shape[1], self._paused_ns)
                shift[-1] = 0  # CPU time
                self._stamps.append(np.column_stack([self._engine.numbers(rows), stamps - shift]))
                store(rows, stamps)
        return len(rows)

    def _finish(self, store: StoreBlock) -> LoopStatus:
        """Wait for the end of the loop, and store the remaining rows."""
        self._started = False
        if not self._wait(STOP_TIMEOUT):
            self._engine.force_stop(STOP_TIMEOUT)  # a cause from the watchdog stays
            self._read(store)
            return LoopStatus.FAULT
        self._read(store)
        self.lost_rows += int(self.ring.words[SharedWord.LOST])
        self.slip_ns += self._pace.slip_ns
        return self.ring.status

    def fault_message(self, status: LoopStatus) -> str:
        if status not in MESSAGES:
            return ""
        trigger, n = self.pacing.trigger, self.pacing.max_consecutive
        number = self._engine.number - (status is LoopStatus.LATE)  # LATE is found after the tick
        missed = f"{n} ticks in a row missed a deadline, the last one" if n > 1 else "it missed a deadline"
        words = {"missed": missed, "cause": "being late"}
        if trigger is not None:
            words |= {"source": trigger_source(trigger), "timeout": f"{trigger.timeout:g} s"}
        if status is LoopStatus.LATE and (misses := self.timing().misses()):
            words["cause"] = misses[-1].cause
        at = f"stopped at tick {number} (t = {number * self._engine.tick_model.step:.6g} s)"
        return f"{at}: {MESSAGES[status].format_map(words)}"

    def timing(self) -> DeadlineRecord:
        """Timing of the ticks read so far."""
        table = self._stamps.rows()
        return DeadlineRecord(
            tasks=self.tasks,
            period_ns=self._engine.tick_model.step_ns / self.pacing.rate,
            numbers=table[:, 0],
            stamps=table[:, 1:],
            slip_ns=self.slip_ns,
            lost_rows=self.lost_rows,
            warm_up_ns=round(self.pacing.warm_up * 1e9),
            rate=self.pacing.rate,
            triggered=self.pacing.trigger is not None,
            engine=self._engine.kind,
            privileges=self.privileges,
        )


# status -> why the pacing ended the run
MESSAGES = {
    LoopStatus.LATE: "{missed} ({cause}); make schedule.step longer, the rig smaller, or allow more with"
    " schedule.realtime.max_consecutive",
    LoopStatus.WENT_BACK: "the clock went back; real time needs a steady clock: see 'cosim doctor'",
    LoopStatus.JUMPED: "the clock jumped ahead by more than 1 s: the machine was suspended or the program was stopped;"
    " run it again without that",
    LoopStatus.NO_TRIGGER: "no trigger from {source} within {timeout}; check what sends it, or wait longer with"
    " schedule.realtime.trigger.timeout",
}
