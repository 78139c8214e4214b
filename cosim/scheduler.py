"""A rig from the first look at its drivers to the last tick: states, real time, pauses, arming again.

    configured → ready → armed → running ⇄ paused → stopping → stopped | fault

A run as fast as possible takes its ticks in the caller's thread, a block each time it is asked for one. A run on time
takes them in a thread of its own, and the caller reads what the ring holds.
"""

from __future__ import annotations

import dataclasses
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from cosim import realtime
from cosim.clock import open_clock, source
from cosim.compile.clocks import Clock
from cosim.compile.ticks import Pace, Rings, Status, Word
from cosim.engine import Engine, Snapshot
from cosim.errors import RunError
from cosim.pacing import Pacing, settings
from cosim.timing import TaskTime, Timing

FIRST_BLOCK = 32  # ticks; blocks as fast as possible grow until one takes BLOCK_TIME [s]
BLOCK_TIME = 0.02
RING_TIME = 8.0  # s that a ring holds of a run on time
LEAST_PLACES = 1 << 12
POLL = 0.02  # s between looks at the ring
LEAD_NS = 5_000_000  # from the order to start to the first tick: the loop's thread is up by then
FOREVER = np.iinfo(np.int64).max


class State(StrEnum):
    CONFIGURED = "configured"
    READY = "ready"
    ARMED = "armed"
    RUNNING = "running"
    PAUSED = "paused"
    STOPPING = "stopping"
    STOPPED = "stopped"
    FAULT = "fault"


# what may be done -> the states in which it may
ALLOWED = {
    "prepare": {State.CONFIGURED},
    "arm": {State.READY, State.STOPPED},
    "start": {State.ARMED},
    "pause": {State.RUNNING},
    "step": {State.PAUSED},
    "resume": {State.PAUSED},
    "snapshot": {State.READY, State.ARMED, State.PAUSED, State.STOPPED, State.FAULT},
    "restore": {State.READY, State.PAUSED, State.STOPPED, State.FAULT},
    "reset": {State.FAULT},
}


@dataclass(frozen=True)
class Block:
    """Finished ticks: their numbers (k,), rows (k, nr), stamps (k, 3 + tasks) or none (k, 0), and the `Arming` (flat)
    that their references began with."""

    numbers: np.ndarray
    rows: np.ndarray
    stamps: np.ndarray
    arming: np.ndarray


class Scheduler:
    """Takes a rig through its states. Use it in a `with` statement, or call `close`: motors are off afterwards."""

    def __init__(
        self,
        make: Callable[[], Engine],
        pacing: Pacing | None = None,
        tasks: Sequence[TaskTime] = (),
        blend: float = 0.5,
        place: Any = None,
        clock: Clock | None = None,
    ) -> None:
        """make: the engine, when it is time; pacing: None for as fast as possible, else `tasks` say what deadlines
        there are; blend [s]: see `arm`; place: of `schedule.realtime` in the rig, for errors; clock: instead of the
        pacing's."""
        self._make, self.pacing, self.tasks, self._blend, self._place = make, pacing, tuple(tasks), blend, place
        self.state = State.CONFIGURED
        self.fault = ""  # why it is in the state `fault`
        self.rights: tuple[realtime.Right, ...] = ()
        self._stack = ExitStack()
        self._clock = clock
        self._closed = False
        self._taking: Future[None] = Future()
        self._taking.set_result(None)
        self._done: deque[Block] = deque()
        self._left = 0  # ticks of the run that are still to be taken
        self._lost_ns = self._dropped = 0
        self._zero_ns: int | None = None  # on the clock, when tick 0 would have been due
        self._between_ns = 0  # time between two runs, which is none of the rig's
        self._stamps: list[tuple[np.ndarray, np.ndarray]] = []
        self._last = np.zeros((0, 0))  # rows

    # --- states ---

    def _need(self, what: str) -> None:
        if self._closed:
            raise RunError(f"cannot {what} a rig that was closed; make a new scheduler")
        if self.state not in ALLOWED[what]:
            states = " or ".join(sorted(ALLOWED[what]))
            raise RunError(f"cannot {what} a rig that is {self.state}; it must be {states}")

    def prepare(self) -> None:
        """Compile, connect drivers (motors stay off), and see that the ticks fit their time: → ready.

        Raises InputError when a task takes longer than it has, RunError when a driver cannot be opened.
        """
        self._need("prepare")
        self.engine = self._make()
        self._stack.callback(self.engine.close)
        self.engine.open()
        if self.pacing is not None:
            self._clock = self._clock or open_clock(self.pacing, self._stack)
            self._worker = ThreadPoolExecutor(1, "ticks")
            self._stack.callback(self._worker.shutdown)
            self._deadlines = np.array([task.deadline_ns for task in self.tasks], dtype=np.int64)
        self.state = State.READY

    def arm(self) -> None:
        """Switch the motors on; take the rights that a run on time needs: → armed.

        A rig that has run before, or that has real motors, begins from its measured state: controllers start afresh,
        trajectories from their beginning, and references lead from where the joints are to the trajectory within
        `blend` s, or longer where that would take more than half of the speed that a joint's limit allows.
        Raises InputError for rights that are missing under `strict`.
        """
        self._need("arm")
        if self.pacing is not None:
            self.rights = self.rights or self._worker.submit(self._take_rights, self.pacing).result()
            if self.pacing.strict:
                realtime.refuse_missing(self.rights, self._place)
        self.engine.arm()
        try:
            if self.engine.number or self.engine.hardware:
                self.engine.begin_from_measured(self._blend, self._soon)
        except BaseException:
            self.engine.stop()
            raise
        self.state = State.ARMED

    @property
    def _soon(self) -> int:
        """A deadline [ns] for what is done between two runs, on the clock of the drivers."""
        if self.pacing is None:
            return self.engine.number * self.engine.simulation.step_ns
        assert self._clock is not None
        return self._clock.now() + LEAD_NS

    def _take_rights(self, pacing: Pacing) -> tuple[realtime.Right, ...]:
        self._undo = ExitStack()
        self._stack.callback(lambda: self._worker.submit(self._undo.close).result())
        if self.engine.lane == "Python":
            self._undo.enter_context(realtime.calm())
        return self._undo.enter_context(realtime.take(pacing))

    def start(self, ticks: int = FOREVER) -> None:
        """Begin to take that many ticks: → running."""
        self._need("start")
        self._left, self._block = ticks, FIRST_BLOCK
        self._go()

    def _go(self) -> None:
        if self.pacing is None:
            self.state = State.RUNNING
            return
        places = max(LEAST_PLACES, round(RING_TIME * 1e9 * self.pacing.rate / self.engine.simulation.step_ns))
        self._rings = Rings(self.engine.program, min(places, self._left), stamped=True)
        assert self._clock is not None
        self._clock.begin()
        start, step_ns = self._clock.now() + LEAD_NS, self.engine.simulation.step_ns
        self._rings.words[Word.START] = start
        self._rings.words[Word.PULSED] = self.pacing.pulse is not None
        zero = start - round(self.engine.number * step_ns / self.pacing.rate) - self._lost_ns
        self._zero_ns = zero if self._zero_ns is None else self._zero_ns
        self._between_ns = zero - self._zero_ns
        warm = dataclasses.replace(self.pacing, grace=0.0) if self._stamps else self.pacing
        self._pace = Pace(self._clock, settings(warm, step_ns), self._deadlines)
        self.state = State.RUNNING  # from here on an interrupt finds what it must stop
        self._taking = self._worker.submit(self._take_on_time, self._left)

    def _take_on_time(self, count: int) -> None:
        """In the thread of the loop: unless the loop was told to stop, motors are off as soon as it has ended."""
        try:
            self.engine.take(self._rings, count, self._pace)
        finally:
            if self._rings.status is not Status.STOPPED:
                self.engine.stop()

    def read(self) -> Block | None:
        """The next block of finished ticks, waiting for it; None when there are no more: it has stopped, or paused."""
        return self._done.popleft() if self.wait() else None

    def wait(self) -> bool:
        """Wait for a block to read; whether there is one."""
        while not self._done and self.state is State.RUNNING:
            (self._take_block if self.pacing is None else self._read_ring)()
        return bool(self._done)

    def _take_block(self) -> None:
        begun = time.perf_counter()
        self._take_now(self._block)
        if time.perf_counter() - begun < BLOCK_TIME:
            self._block *= 2

    def _take_now(self, most: int) -> None:
        """Take so many ticks, or those that are left, without the clock."""
        count = min(most, self._left)
        rings = Rings(self.engine.program, count)
        try:
            self.engine.take(rings, count)
        finally:
            self._keep(rings)  # also what there was before an interrupt
        if rings.status is not Status.FINISHED or not self._left:
            self._end(rings.status)

    def _read_ring(self) -> None:
        if self._taking.done():
            self._settle()
            self._end(self._rings.status)
            self._taking.result()  # raises an interrupt that met the loop
            return
        self._keep(self._rings)
        if not self._done:
            time.sleep(POLL)

    def _keep(self, rings: Rings) -> None:
        """Take what a ring holds."""
        rows, stamps = rings.read(rings.places)
        if not len(rows):
            return
        engine = self.engine
        numbers = np.rint(rows[:, engine.program.time] / engine.simulation.step).astype(np.int64)
        self._left -= len(rows)
        self._done.append(Block(numbers, rows, stamps, engine.view("arming").copy()))
        self._last = rows
        if rings.stamped:
            shift = np.full(stamps.shape[1], self._between_ns)
            shift[-1] = 0  # processor time
            self._stamps.append((numbers, stamps - shift))

    def _settle(self) -> None:
        """The loop has ended: take what it left, and what it says of its time."""
        wait([self._taking])
        self._keep(self._rings)
        if dropped := int(self._rings.words[Word.DROPPED]):
            self._left -= dropped
            self._dropped += dropped
            lost = self._rings.rows[-1:]  # the last of those that found no place
            t = self.engine.program.time
            if lost[0, t] > self._last[-1, t]:
                self._last = lost
        self._lost_ns += self._pace.lost_ns

    def _end(self, status: Status) -> None:
        """→ stopped or fault, motors off."""
        self.state = State.STOPPING
        self.engine.stop()
        self.fault = self.engine.outcome(status, self._last) or self._late(status)
        self.state = State.FAULT if self.fault else State.STOPPED

    def _late(self, status: Status) -> str:
        """Why the pace ended the run; empty when it did not."""
        if self.pacing is None or status not in ENDED_BY_PACE:
            return ""
        number, pulse = self.engine.number, self.pacing.pulse
        n = self.pacing.most
        row = f"{n} ticks in a row missed a deadline, the last" if n > 1 else "it missed a deadline,"
        values = {"row": row, "tick": number, "t": number * self.engine.simulation.step, "cause": "being late"}
        if pulse is not None:
            values |= {"source": source(pulse), "timeout": pulse.timeout}
        if status is Status.LATE and (misses := self.timing.misses()):
            values["cause"] = misses[-1].cause
        return ENDED_BY_PACE[status].format_map(values)

    def pause(self) -> None:
        """Hold the ticks between two of them: → paused. Raises RunError with real motors, which must not be left
        without commands."""
        self._need("pause")
        if self.engine.hardware:
            raise RunError("a rig with real motors cannot be paused; stop it and arm it again")
        if self.pacing is not None:
            self._rings.words[Word.STOP] = 1
            self._settle()
            if self._rings.status is not Status.STOPPED:  # it ended before it saw the word
                self._end(self._rings.status)
                return
        self.state = State.PAUSED

    def step(self, ticks: int = 1) -> None:
        """Take some ticks of a paused rig, without the clock."""
        self._need("step")
        self._take_now(ticks)

    def resume(self) -> None:
        """Go on: → running. The time of the pause is none of the rig's."""
        self._need("resume")
        self._go()

    def stop(self) -> None:
        """Motors off, whatever it is doing: → stopped. Never raises; what the ticks left can still be read."""
        if self.state is State.RUNNING and self.pacing is not None:
            self._rings.words[Word.STOP] = 1
            self._settle()
        if self.state in (State.ARMED, State.RUNNING, State.PAUSED):
            self._end(Status.STOPPED)

    def reset(self) -> None:
        """Acknowledge a fault: → stopped, from where it can be armed again."""
        self._need("reset")
        self.fault, self.engine.failure = "", ""
        self.state = State.STOPPED

    def snapshot(self) -> Snapshot:
        """The rig between two ticks. Controllers in Python that keep something of their own are not part of it."""
        self._need("snapshot")
        return self.engine.snapshot()

    def restore(self, snapshot: Snapshot) -> None:
        """Back to a snapshot of this rig, to the bit. Raises RunError with real motors."""
        self._need("restore")
        self.engine.restore(snapshot)

    def close(self) -> None:
        """Motors off, drivers let go of, rights given back; idempotent. What the ticks left can still be read."""
        self._closed = True
        try:
            self.stop()
        finally:
            self._stack.close()

    def __enter__(self) -> Scheduler:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- what became of time ---

    @property
    def timing(self) -> Timing:
        """How on time the ticks of a run on time were that have been read so far."""
        return self.recent(None)

    def recent(self, ticks: int | None) -> Timing:
        """The same of the last so many ticks, at least."""
        assert self.pacing is not None
        kept, found = self._stamps, 0
        for k, (numbers, _) in reversed(list(enumerate(self._stamps))):
            found += len(numbers)
            if ticks is not None and found >= ticks:
                kept = self._stamps[k:]
                break
        numbers, stamps = zip(*kept, strict=True) if kept else ((), ())
        return Timing(
            tasks=self.tasks,
            period_ns=self.engine.simulation.step_ns / self.pacing.rate,
            numbers=np.concatenate([np.zeros(0, np.int64), *numbers]),
            stamps=np.concatenate([np.zeros((0, 3 + len(self.tasks)), np.int64), *stamps]),
            lost_ns=self._lost_ns,
            dropped=self._dropped,
            grace_ns=round(self.pacing.grace * 1e9),
            rate=self.pacing.rate,
            pulsed=self.pacing.pulse is not None,
            lane=self.engine.lane,
            rights=self.rights,
        )


# how a pace can end a run
_AT = "stopped at tick {tick} (t = {t:.6g} s): "
ENDED_BY_PACE = {
    Status.LATE: _AT + "{row} by {cause}; make schedule.step longer, the"
    " rig smaller, or allow more with schedule.realtime.most",
    Status.WENT_BACK: _AT + "the clock went back; real time needs a clock that is steady: see 'cosim doctor'",
    Status.JUMPED: _AT + "the clock jumped ahead by more than 1 s: the machine slept, or the program was held; run it"
    " again without that",
    Status.NO_PULSE: _AT + "no pulse from {source}: nothing sends to it, or not within {timeout:g} s; look at what"
    " sends it, or wait longer with schedule.realtime.pulse.timeout",
}
