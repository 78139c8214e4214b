"""The life cycle of a rig: states, pauses, snapshots, re-arming.

    configured → ready → armed → running ⇄ paused → stopping → stopped | fault

`execution_mode` and `paced` run the ticks.
"""

from __future__ import annotations

import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from enum import StrEnum

import numpy as np

from cosim.control.controlled_stop import SETTLING
from cosim.core.errors import RunError, SourceLocation
from cosim.execution.engine import Engine, Snapshot
from cosim.execution.execution_mode import RECENT_TICKS, ExecutionMode, FreeRunning, PlannedChange, UnpacedTicks
from cosim.execution.motion_plan import MotionPlan
from cosim.execution.paced import STOP_TIMEOUT, Paced
from cosim.execution.stop_signals import StopOrder, StopSignals
from cosim.execution.timing.deadlines import DeadlineRecord, TaskTime
from cosim.execution.timing.privileges import Privilege
from cosim.simulation.loop.clocks import Clock
from cosim.simulation.loop.pacing import Pacing
from cosim.simulation.loop.tick_ring import LoopStatus, SharedWord, StopRequest, TickRing
from cosim.simulation.tick.tick_block import TickBlock

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


# method -> states in which it is allowed
ALLOWED = {
    "prepare": {SchedulerState.CONFIGURED},
    "clear": {SchedulerState.READY, SchedulerState.STOPPED},
    "plan": {SchedulerState.READY, SchedulerState.STOPPED},
    "arm": {SchedulerState.READY, SchedulerState.STOPPED},
    "start": {SchedulerState.ARMED},
    "pause": {SchedulerState.RUNNING},
    "step": {SchedulerState.PAUSED},
    "resume": {SchedulerState.PAUSED},
    "change": {SchedulerState.READY, SchedulerState.ARMED, SchedulerState.RUNNING, SchedulerState.PAUSED},
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


class Scheduler:
    """Runs a rig through its states. Use it in a `with` statement, or call `close`: motors are off afterwards."""

    def __init__(
        self,
        make_engine: Callable[[], Engine],
        pacing: Pacing | None = None,
        tasks: Sequence[TaskTime] = (),
        blend: float = 0.5,
        place: SourceLocation | str | None = None,
        clock: Clock | None = None,
        signals: StopSignals | None = None,
        planned: Sequence[PlannedChange] = (),
    ) -> None:
        """make_engine: called by `prepare`; pacing: None for free running; tasks: with their deadlines, for real time;
        blend [s]: see `arm`; place: of `schedule.realtime` in the rig, for errors; clock: instead of the pacing's;
        signals: that stop a run in real time, while they are entered; planned: changes of the memory in a free run."""
        self._make_engine, self.pacing, self._blend = make_engine, pacing, blend
        self.signals = StopSignals() if signals is None else signals
        paced = pacing and Paced(pacing, tasks, place, clock, self.signals.postponed)
        self.mode: ExecutionMode = paced or FreeRunning(planned)
        self.state = SchedulerState.CONFIGURED
        self.fault = ""  # why it is in the state `fault`
        self._stack, self._closed = ExitStack(), False
        # also when the scheduler is garbage-collected or the program exits
        self._close = weakref.finalize(self, _close, self.mode, self._stack)
        self._blocks: deque[TickBlock] = deque()
        self._recent: deque[np.ndarray] = deque()  # rows of the last blocks
        self._end_number = 0  # of the tick before which the run ends

    def _check_allowed(self, what: str) -> None:
        if self._closed:
            raise RunError(f"cannot {what} a rig that was closed; make a new scheduler")
        if self.state not in ALLOWED[what]:
            states = " or ".join(sorted(ALLOWED[what]))
            raise RunError(f"cannot {what} a rig that is {self.state}; it must be {states}")

    def prepare(self, clear: bool = False) -> None:
        """Compile, connect drivers (motors off), open the clock: → ready.

        clear: clear reported faults of real drives; check the causes before.
        Raises InputError when the clock cannot be opened, RunError when a driver cannot be opened or a fault persists.
        """
        self._check_allowed("prepare")
        self.engine = self._make_engine()
        self._stack.callback(self.engine.close)
        self.engine.open()
        if clear:
            self.engine.clear()
        self.mode.open(self.engine, self._stack)
        self.state = SchedulerState.READY

    def clear(self) -> None:
        """Clear reported faults of real drives, motors off; check the causes before.

        Raises RunError when a fault persists; the rig is closed then.
        """
        self._check_allowed("clear")
        try:
            self.engine.clear()
        except BaseException:
            self.close()
            raise

    def plan(self, ticks: int = 0) -> MotionPlan:
        """Motors off: what the real joints will do in a run of so many ticks from where they are now; 0: until they are
        on their trajectories.

        Raises RunError for a joint that could not start, see `arm`."""
        self._check_allowed("plan")
        return self.engine.plan_motion(self._blend, self.mode.start_deadline_ns, ticks)

    def standing(self) -> MotionPlan:
        """Motors off: where the real joints stand, a plan without motion."""
        self._check_allowed("plan")
        return self.engine.standing(self.mode.start_deadline_ns)

    def arm(self, agreed: MotionPlan | None = None, allow_turns: bool = False) -> None:
        """Switch the motors on; acquire the privileges of a real-time run: → armed.

        A rig that has run before, or that has real motors, starts from its measured state: controllers are reset,
        trajectories start from their beginning, and references blend from the measured positions to the trajectory
        within `blend` s, or longer where the reference would leave the limits of a joint.
        agreed: the plan that was confirmed; allow_turns: `MotionPlan.confirm_turns` is agreed to.
        Raises InputError for privileges that are missing under `strict`; RunError, with motors off, for a real joint
        that would have to move beyond its limits or by more than a turn, whose drive may be on another turn than it
        reports, or that has moved since the plan.
        """
        self._check_allowed("arm")
        self._recent.clear()
        self.mode.arm()
        try:
            if self.engine.hardware:
                self._check_plan(agreed, allow_turns)
            if (hold := self.engine.begin_hold()) is not None:
                self.mode.hold(hold)
            self.engine.arm()
            if self.engine.number or self.engine.hardware:
                self.engine.start_from_measured(self._blend, self.mode.start_deadline_ns)
        except BaseException:
            self.engine.stop()
            raise
        self.state = SchedulerState.ARMED

    def _check_plan(self, agreed: MotionPlan | None, allow_turns: bool) -> None:
        """Raises RunError for a start that must not be."""
        now = self.engine.plan_motion(self._blend, self.mode.start_deadline_ns, 0)
        if agreed is not None and (moved := agreed.moved(now)):
            raise RunError(f"{moved}; confirm it again")
        if not allow_turns:
            now.check_turns("allow it with allow_turns (--allow-turns)")

    @property
    def privileges(self) -> tuple[Privilege, ...]:
        """The real-time privileges that were requested, granted or not; empty before `arm`."""
        return self.mode.privileges

    def start(self, ticks: int = FOREVER) -> None:
        """Start so many ticks: → running."""
        self._check_allowed("start")
        self._end_number = self.engine.number + check_ticks(ticks)
        self._start_ticks()

    @property
    def _remaining(self) -> int:
        """Ticks still to run."""
        return self._end_number - self.engine.number

    def _start_ticks(self) -> None:
        self.state = SchedulerState.RUNNING  # before the start: an interrupt must find the running loop
        try:
            with self.signals.postponed():  # ticks may run before this thread does: a signal stops them as later ones
                self.mode.start(self._remaining, self._before_ticks, self.engine.end_hold)
        except Exception:
            self.stop()
            raise

    def _before_ticks(self, ring: TickRing | None) -> None:
        """A signal stops ticks in another thread in their loop: like `controlled_stop`, the next signal immediately."""
        if ring is None:
            return
        orders = [StopOrder(ring.words[SharedWord.STOP, ...], StopRequest.STOP)]
        if self.engine.tick_model.deceleration:
            orders.insert(0, StopOrder(self.engine.view("controlled_stop", "requested"), 1.0))
        self.signals.give_orders(orders)

    def read(self) -> TickBlock | None:
        """Wait for the next block of finished ticks; None when there are no more, after the end or a pause."""
        block = self.read_view()
        return None if block is None else block.owned()

    def read_view(self) -> TickBlock | None:
        """As `read`, without a copy: the rows of the block may change when more ticks run."""
        return self._blocks.popleft() if self.wait() else None

    def wait(self, attend: Callable[[], object] = lambda: None) -> bool:
        """Wait for a block; whether there is one. attend: called between looks at the ticks; it may pause them."""
        while not self._blocks and self.state is SchedulerState.RUNNING:
            attend()
            if self.state is not SchedulerState.RUNNING:
                break
            status = self.mode.collect(self._remaining, self._store)
            if status is not LoopStatus.RUNNING:
                self._end(status)
        return bool(self._blocks)

    def _store(self, rows: np.ndarray, stamps: np.ndarray) -> None:
        if len(rows):
            self._recent.append(rows)
            while sum(map(len, self._recent)) - len(self._recent[0]) > RECENT_TICKS:
                self._recent.popleft()
            numbers, start = self.engine.numbers(rows), self.engine.view("bumpless_start").copy()
            failures = self.engine.failures
            for k in range(len(self._blocks)):  # the rows of those that wait may change
                self._blocks[k] = self._blocks[k].owned()
            self._blocks.append(TickBlock(numbers, rows, stamps, start, failures))

    def _end(self, status: LoopStatus) -> None:
        """→ stopped or fault, motors off."""
        self.state = SchedulerState.STOPPING
        self.engine.stop()
        faulty = status is LoopStatus.FAULT  # only then the rows are looked at
        recent = np.concatenate([np.zeros((0, self.engine.program.row)), *(self._recent if faulty else ())])
        self.fault = self.engine.fault_message(status, recent) or self.mode.fault_message(status)
        self.state = SchedulerState.FAULT if self.fault else SchedulerState.STOPPED

    def pause(self) -> None:
        """Stop between two ticks: → paused. Raises RunError with real motors, which must not be without commands."""
        self._check_allowed("pause")
        if self.engine.hardware:
            raise RunError("a rig with real motors cannot be paused; stop it and arm it again")
        status = self.mode.stop_after_tick(StopRequest.PAUSE, self._store)
        if status is LoopStatus.STOPPED:
            self.state = SchedulerState.PAUSED
        else:
            self._end(status)  # it ended before the order

    def step(self, ticks: int = 1) -> None:
        """Run some ticks of a paused rig, without the clock."""
        self._check_allowed("step")
        end = self.engine.number + check_ticks(ticks)
        unpaced, status = UnpacedTicks(self.engine), LoopStatus.RUNNING
        width = 0 if self.pacing is None else 3 + len(self.engine.program.tasks)

        def store(rows: np.ndarray, _: np.ndarray) -> None:
            self._store(rows, np.zeros((len(rows), width), dtype=np.int64))  # such ticks take no time of the clock

        while status is LoopStatus.RUNNING and self.engine.number < end:
            status = unpaced.run(end - self.engine.number, self._remaining, store)
        if status is not LoopStatus.RUNNING:
            self._end(status)

    def resume(self) -> None:
        """Continue: → running. The time of the rig does not advance in the pause."""
        self._check_allowed("resume")
        self._start_ticks()

    def change(self, places: np.ndarray, values: np.ndarray) -> int:
        """Store values (k,) at places (k,) of the memory, all between the same two ticks; the number of the second one.

        Raises RunError when no tick follows.
        """
        self._check_allowed("change")
        if self.state is SchedulerState.RUNNING:
            return self.mode.change(places, values)
        self.engine.change(places, values)
        return self.engine.number

    def controlled_stop(self) -> None:
        """Controlled stop (IEC 60204-1 category 1) where the rig has a deceleration for it, else immediate stop: →
        stopped, or fault. Finished blocks can still be read."""
        # not after an interrupt within a tick
        running = self.state is SchedulerState.RUNNING and not self.engine.failure
        if running and (deceleration := self.engine.tick_model.deceleration):
            fastest = self.engine.tick_model.limits.velocity
            braking = float(np.max(fastest[np.isfinite(fastest)], initial=0.0)) / deceleration + SETTLING
            rate = 1.0 if self.pacing is None else self.pacing.rate
            until = time.monotonic() + braking / rate + STOP_TIMEOUT
            self.engine.request_controlled_stop()
            while self.state is SchedulerState.RUNNING and time.monotonic() < until:
                status = self.mode.collect(self._remaining, self._store)
                if status is not LoopStatus.RUNNING:
                    self._end(status)
        self.stop()

    def stop(self) -> None:
        """Immediate stop (category 0), from any state: → stopped. Never raises. Finished blocks can still be read."""
        running = self.state is SchedulerState.RUNNING
        hangs = running and self.mode.stop_after_tick(StopRequest.STOP, self._store) is LoopStatus.FAULT
        if self.state in (SchedulerState.ARMED, SchedulerState.RUNNING, SchedulerState.PAUSED):
            self._end(LoopStatus.FAULT if hangs else LoopStatus.STOPPED)

    def reset(self) -> None:
        """Acknowledge a fault: → stopped; `arm` is allowed again."""
        self._check_allowed("reset")
        self.fault, self.engine.failure = "", ""
        self.state = SchedulerState.STOPPED

    def snapshot(self) -> Snapshot:
        """The rig between two ticks, without hidden state of controllers in Python."""
        self._check_allowed("snapshot")
        return self.engine.snapshot()

    def restore(self, snapshot: Snapshot) -> None:
        """Return to a snapshot of this rig, equal to the bit. Raises RunError with real motors, and with parts that are
        not compiled, unless it is one of t = 0."""
        self._check_allowed("restore")
        self.engine.restore(snapshot)

    @property
    def timing(self) -> DeadlineRecord:
        """Timing of the ticks of a real-time run that were read so far. Raises RunError of a free run."""
        if not isinstance(self.mode, Paced):
            raise RunError("a free run has no timing; run the rig with realtime=True")
        if self.state is SchedulerState.CONFIGURED:
            raise RunError("there is no timing before the rig is prepared")
        return self.mode.timing()

    def close(self) -> None:
        """Motors off, drivers closed, privileges released; idempotent. Finished blocks can still be read."""
        self._closed = True
        try:
            self.stop()
        finally:
            self._close()

    def __enter__(self) -> Scheduler:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def check_ticks(ticks: int) -> int:
    """Raises RunError unless it is a whole number of 1 or more."""
    if not isinstance(ticks, (int, np.integer)) or ticks < 1:
        raise RunError(f"cannot run {ticks!r} ticks; give a whole number of 1 or more")
    return int(ticks)


def _close(mode: ExecutionMode, stack: ExitStack) -> None:
    """End the ticks, switch motors off, release drivers and privileges."""
    mode.stop_after_tick(StopRequest.STOP, lambda rows, stamps: None)
    stack.close()
