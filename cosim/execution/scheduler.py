"""A rig from the first look at its drivers to the last tick: states, pauses, snapshots, arming again.

    configured → ready → armed → running ⇄ paused → stopping → stopped | fault

How ticks are taken, as fast as possible or on time, is told in `taking`.
"""

from __future__ import annotations

import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from cosim.control.controlled_stop import SETTLING
from cosim.errors import RunError
from cosim.execution.engine import Engine, Snapshot
from cosim.execution.execution_mode import PATIENCE, ExecutionMode, FreeRunning, Paced, run_block
from cosim.timing.clocks import Clock
from cosim.timing.deadlines import DeadlineRecord, TaskTime
from cosim.timing.native_loop import LoopStatus
from cosim.timing.pacing import Pacing
from cosim.timing.privileges import Privilege

FOREVER = np.iinfo(np.int64).max


class SchedulerState(StrEnum):
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
    "prepare": {SchedulerState.CONFIGURED},
    "clear": {SchedulerState.READY, SchedulerState.STOPPED},
    "arm": {SchedulerState.READY, SchedulerState.STOPPED},
    "start": {SchedulerState.ARMED},
    "pause": {SchedulerState.RUNNING},
    "step": {SchedulerState.PAUSED},
    "resume": {SchedulerState.PAUSED},
    "snapshot": {
        SchedulerState.READY,
        SchedulerState.ARMED,
        SchedulerState.PAUSED,
        SchedulerState.STOPPED,
        SchedulerState.FAULT,
    },
    "restore": {SchedulerState.READY, SchedulerState.PAUSED, SchedulerState.STOPPED, SchedulerState.FAULT},
    "reset": {SchedulerState.FAULT},
}


@dataclass(frozen=True)
class TickBlock:
    """Finished ticks: numbers (k,), rows (k, nr), stamps (k, 3 + tasks) or (k, 0) without a clock, and the flat
    `BumplessStart` of their run."""

    numbers: np.ndarray
    rows: np.ndarray
    stamps: np.ndarray
    bumpless_start: np.ndarray


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
        self._make, self.pacing, self._blend = make, pacing, blend
        self.way: ExecutionMode = FreeRunning() if pacing is None else Paced(pacing, tasks, place, clock)
        self.state = SchedulerState.CONFIGURED
        self.fault = ""  # why it is in the state `fault`
        self._stack, self._closed = ExitStack(), False
        # a scheduler that is forgotten, or left by an error, stops all the same, at the program's exit at the latest
        self._forgotten = weakref.finalize(self, _leave, self.way, self._stack)
        self._done: deque[TickBlock] = deque()
        self._until = 0  # number of the tick before which the run ends

    def _need(self, what: str) -> None:
        if self._closed:
            raise RunError(f"cannot {what} a rig that was closed; make a new scheduler")
        if self.state not in ALLOWED[what]:
            states = " or ".join(sorted(ALLOWED[what]))
            raise RunError(f"cannot {what} a rig that is {self.state}; it must be {states}")

    def prepare(self, clear: bool = False) -> None:
        """Compile, connect drivers (motors stay off), and see that the ticks fit their time: → ready.

        clear: what real drives report as faults is cleared first; look at the causes before.
        Raises InputError when a task takes longer than it has, RunError when a driver or a clock cannot be had, or a
        fault stands.
        """
        self._need("prepare")
        self.engine = self._make()
        self._stack.callback(self.engine.close)
        self.engine.open()
        if clear:
            self.engine.clear()
        self.way.open(self.engine, self._stack)
        self.state = SchedulerState.READY

    def clear(self) -> None:
        """Clear what real drives report as faults, motors off; look at the causes before.

        Raises RunError when a fault stands: all drivers are let go of then, and the rig is to be closed.
        """
        self._need("clear")
        try:
            self.engine.clear()
        except BaseException:
            self.close()
            raise

    def arm(self) -> None:
        """Switch the motors on; take the rights that a run on time needs: → armed.

        A rig that has run before, or that has real motors, begins from its measured state: controllers start afresh,
        trajectories from their beginning, and references lead from where the joints are to the trajectory within
        `blend` s, or longer where that would take more than half of the speed that a joint's limit allows.
        Raises InputError for rights that are missing under `strict`.
        """
        self._need("arm")
        self.way.arm()
        self.engine.arm()
        try:
            if self.engine.number or self.engine.hardware:
                self.engine.start_from_measured(self._blend, self.way.soon)
                self.engine.keep_enabled()
        except BaseException:
            self.engine.stop()
            raise
        self.state = SchedulerState.ARMED

    @property
    def rights(self) -> tuple[Privilege, ...]:
        """What was asked of the system, since it was armed."""
        return self.way.rights

    def start(self, ticks: int = FOREVER) -> None:
        """Begin to take that many ticks: → running."""
        self._need("start")
        self._until = self.engine.number + checked(ticks)
        self._go()

    @property
    def _left(self) -> int:
        """Ticks that are still to be taken."""
        return self._until - self.engine.number

    def _go(self) -> None:
        self.state = SchedulerState.RUNNING  # an interrupt finds what it must stop
        self.way.go(self._left)

    def read(self) -> TickBlock | None:
        """The next block of finished ticks, waiting for it; None when there are no more: it has stopped, or paused."""
        return self._done.popleft() if self.wait() else None

    def wait(self) -> bool:
        """Wait for a block to read; whether there is one."""
        while not self._done and self.state is SchedulerState.RUNNING:
            status = self.way.more(self._left, self._keep)
            if status is not LoopStatus.RUNNING:
                self._end(status)
        return bool(self._done)

    def _keep(self, rows: np.ndarray, stamps: np.ndarray) -> None:
        if len(rows):
            numbers = self.engine.numbers(rows)
            self._done.append(TickBlock(numbers, rows, stamps, self.engine.view("bumpless_start").copy()))

    def _end(self, status: LoopStatus) -> None:
        """→ stopped or fault, motors off."""
        self.state = SchedulerState.STOPPING
        self.engine.stop()
        self.fault = self.engine.fault_message(status) or self.way.explain(status)
        self.state = SchedulerState.FAULT if self.fault else SchedulerState.STOPPED

    def pause(self) -> None:
        """Hold the ticks between two of them: → paused. Raises RunError with real motors, which must not be left
        without commands."""
        self._need("pause")
        if self.engine.hardware:
            raise RunError("a rig with real motors cannot be paused; stop it and arm it again")
        status = self.way.hold(self._keep)
        if status is LoopStatus.STOPPED:
            self.state = SchedulerState.PAUSED
        else:
            self._end(status)  # it ended before it saw the order

    def step(self, ticks: int = 1) -> None:
        """Take some ticks of a paused rig, without the clock."""
        self._need("step")
        status = run_block(self.engine, checked(ticks), self._left, self._keep)
        if status is not LoopStatus.RUNNING:
            self._end(status)

    def resume(self) -> None:
        """Go on: → running. The time of the pause is none of the rig's."""
        self._need("resume")
        self._go()

    def halt(self) -> None:
        """Bring the joints to rest, where the rig says how, then motors off: → stopped, or fault; elsewhere the same as
        `stop`. What the ticks left can still be read."""
        going = (
            self.state is SchedulerState.RUNNING and not self.engine.failure
        )  # not left by an interrupt within a tick
        if going and (deceleration := self.engine.simulation.deceleration):
            fastest = self.engine.simulation.limits.velocity
            slowing = float(np.max(fastest[np.isfinite(fastest)], initial=0.0)) / deceleration + SETTLING
            rate = 1.0 if self.pacing is None else self.pacing.rate
            until = time.monotonic() + slowing / rate + PATIENCE
            self.engine.request_controlled_stop()
            while self.state is SchedulerState.RUNNING and time.monotonic() < until:
                status = self.way.more(self._left, self._keep)
                if status is not LoopStatus.RUNNING:
                    self._end(status)
        self.stop()

    def stop(self) -> None:
        """Motors off, whatever it is doing: → stopped. Never raises; what the ticks left can still be read."""
        hung = self.state is SchedulerState.RUNNING and self.way.hold(self._keep) is LoopStatus.FAULT
        if self.state in (SchedulerState.ARMED, SchedulerState.RUNNING, SchedulerState.PAUSED):
            self._end(LoopStatus.FAULT if hung else LoopStatus.STOPPED)

    def reset(self) -> None:
        """Acknowledge a fault: → stopped, from where it can be armed again."""
        self._need("reset")
        self.fault, self.engine.failure = "", ""
        self.state = SchedulerState.STOPPED

    def snapshot(self) -> Snapshot:
        """The rig between two ticks. Controllers in Python that keep something of their own are not part of it."""
        self._need("snapshot")
        return self.engine.snapshot()

    def restore(self, snapshot: Snapshot) -> None:
        """Back to a snapshot of this rig, to the bit. Raises RunError with real motors."""
        self._need("restore")
        self.engine.restore(snapshot)

    @property
    def timing(self) -> DeadlineRecord:
        """How on time the ticks of a run on time were that have been read so far."""
        return self.recent(None)

    def recent(self, ticks: int | None) -> DeadlineRecord:
        """The same of the last so many ticks, at least."""
        if not isinstance(self.way, Paced):
            raise RunError("a rig that goes as fast as possible has no timing; run it with realtime=True")
        if self.state is SchedulerState.CONFIGURED:
            raise RunError("there is no timing before the rig is prepared")
        return self.way.timing(ticks)

    def close(self) -> None:
        """Motors off, drivers let go of, rights given back; idempotent. What the ticks left can still be read."""
        self._closed = True
        try:
            self.stop()
        finally:
            self._forgotten()

    def __enter__(self) -> Scheduler:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def checked(ticks: int) -> int:
    """Raises RunError for what is no number of ticks."""
    if not isinstance(ticks, (int, np.integer)) or ticks < 1:
        raise RunError(f"cannot take {ticks!r} ticks; give a whole number of 1 or more")
    return int(ticks)


def _leave(way: ExecutionMode, stack: ExitStack) -> None:
    """Ticks end, motors are off, drivers and rights are given back."""
    way.hold(lambda rows, stamps: None)
    stack.close()
