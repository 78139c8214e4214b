"""The base of the engines that run the ticks of a rig.

The compiled engine and the Python engine run the same tasks in the same order on the same memory, follow the same
pacing policy and leave the same rows and stamps.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cosim.control.controlled_stop import REQUESTED
from cosim.core.compile.process_exits import user_code
from cosim.core.errors import InputError, RunError, describe_exception
from cosim.execution.crash import crash_in_words, prepare
from cosim.simulation.loop.tick_ring import LoopStatus, PacingMemory, SharedWord, TickRing
from cosim.simulation.tick.arming import armed, refused
from cosim.simulation.tick.first_references import Start, start_of

if TYPE_CHECKING:
    from cosim.execution.hardware.manager import HardwareManager, PowerOnPlace
    from cosim.execution.motion_plan import MotionPlan
    from cosim.simulation.tick.tick_model import TickModel, TickTask


@dataclass(frozen=True)
class Snapshot:
    """A rig between two ticks: the number of the next tick, and the memory."""

    number: int
    memory: np.ndarray


def call_of_controller(name: str, run: Callable[[], object]) -> Callable[[], None]:
    """A call of a controller in Python. Raises RunError with its name for whatever it raises."""

    def call() -> None:
        try:
            run()
        except (Exception, SystemExit) as error:  # user code may raise anything
            raise RunError(f"controller '{name}' failed: {describe_exception(error)}") from error

    return call


class Engine(ABC):
    """Runs the ticks of a rig; after a fault or `close` its drivers are stopped."""

    kind: str  # of the loop: "compiled" or "Python"
    calls_python = True  # whether ticks need the interpreter, for parts of them or for all
    hardware_manager: HardwareManager  # of engines with drivers only
    hardware = False  # whether a driver moves a real motor
    number = 0  # of the next tick
    failure = ""  # error message of a part that failed
    force_stopped = False
    running = "the loop"  # what runs now

    def __init__(self, tick_model: TickModel, memory: np.ndarray) -> None:
        """memory: of `tick_model`, on which the ticks run."""
        self.tick_model, self.program, self._memory = tick_model, tick_model.program, memory

    @property
    def memory(self) -> np.ndarray:
        """What passes from tick to tick. It is the same array for the life of the engine: drivers and controllers keep
        views of it."""
        return self._memory

    @property
    def tasks(self) -> tuple[TickTask, ...]:
        """Of a tick, in running order."""
        return self.tick_model.tasks

    @property
    def failures(self) -> tuple[str, ...]:
        """Of the control loops in turn, as far as they stay in Python."""
        return tuple(loop.failure for loop in self.tick_model.loops)

    def run(self, count: int) -> tuple[np.ndarray, str]:
        """(rows (k, nr) of the next `count` ticks as fast as possible, why there are fewer or "")."""
        ring = TickRing(self.program, count)
        self.run_ticks(ring, count)
        rows, _ = ring.take()
        return rows, self.fault_message(ring.status, rows)

    def run_ticks(self, ring: TickRing, count: int, pace: PacingMemory | None = None) -> None:
        """Run `count` ticks into the ring, held to the clock or as fast as possible; `ring.status` is how they
        ended."""
        ring.words[SharedWord.NUMBER], ring.words[SharedWord.COUNT] = self.number, count
        ring.words[SharedWord.STATUS] = LoopStatus.RUNNING
        try:
            with ExitStack() as stack:
                if self.calls_python:  # it may call what a user has written
                    stack.enter_context(user_code())
                    stack.enter_context(crash_in_words())
                self._run_ticks(ring, pace)
        finally:
            self.number = int(ring.words[SharedWord.NUMBER])

    @abstractmethod
    def _run_ticks(self, ring: TickRing, pace: PacingMemory | None) -> None: ...

    def fault_message(self, status: LoopStatus, rows: np.ndarray) -> str:
        """Why a fault ended the ticks; empty where none did. rows (k, nr): the last ticks, for the cause."""
        faulty = status is LoopStatus.FAULT and (self.failure or self.view("fault") != REQUESTED)
        if not self.force_stopped and not faulty:
            return ""
        from cosim.execution.stop_reason import stop_reason  # looks at every part of the rig

        try:
            return self.failure or stop_reason(self.tick_model, self.number - 1, self.memory, rows)
        except InputError as error:  # the files of a rig that was not built changed during its run
            return self._stopped_at(self.number - 1, f"a fault whose cause is not known: {error.what}")

    def request_controlled_stop(self) -> None:
        """Bring the joints to rest, then end the ticks; from another thread. Only with `has_controlled_stop`."""
        self.view("controlled_stop", "requested")[...] = 1.0

    def change(self, places: np.ndarray, values: np.ndarray) -> None:
        """Store values (k,) at places (k,) of the memory, between two ticks."""
        self.memory[places] = values

    def numbers(self, rows: np.ndarray) -> np.ndarray:
        """(k,) numbers of the ticks that left these rows (k, nr)."""
        first, last = (round(float(rows[k, self.program.time]) / self.tick_model.step) for k in (0, -1))
        if last - first == len(rows) - 1:  # none is lost
            return np.arange(first, last + 1)
        return np.rint(rows[:, self.program.time] / self.tick_model.step).astype(np.int64)

    def view(self, *path: str) -> np.ndarray:
        """A part of the memory by its name, to be read or written in place."""
        where, shape = self.tick_model.layout.place(*path)
        return self.memory[where].reshape(shape)

    def snapshot(self) -> Snapshot:
        return Snapshot(self.number, self.memory.copy())

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from the snapshot, equal to the bit."""
        self.number, self.memory[:] = snapshot.number, snapshot.memory
        self.failure = ""

    # --- start ---

    def open(self) -> None:
        """Connect drivers, motors off. When one fails, all are closed."""
        if self.calls_python:
            prepare()  # which takes time, before motors are on

    def clear(self) -> None:
        """Clear reported faults of real drives, motors off. When one persists, all drivers are closed."""
        return None

    def arm(self) -> None:
        """Switch the motors on. When one fails, all are off."""
        self.force_stopped = False

    def begin_hold(self) -> Callable[[], object] | None:
        """Before `arm`: a function for the thread of the loop, which keeps motors enabled until `end_hold` or `stop`.
        None where none is needed."""
        return None

    def end_hold(self) -> None:
        """The first tick follows. Raises RunError when motors could not be kept enabled."""
        return None

    def measure_once(self, until: int) -> tuple[np.ndarray, np.ndarray]:
        """(position, velocity) (nv,) as measured now; the memory stays as it is. until: the deadline [ns] on the clock
        of the drivers."""
        return self._preserved(lambda: self._measure_once(until))

    def _preserved(self, measure: Callable[[], tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
        """Of this measurement, without a trace in the memory."""
        before = self.memory.copy()
        try:
            return measure()
        finally:
            self.memory[:] = before

    @abstractmethod
    def _measure_once(self, until: int) -> tuple[np.ndarray, np.ndarray]: ...

    def _measure_off(self, until: int) -> tuple[np.ndarray, np.ndarray]:
        """The same with motors off, which gives no sign of faults: `arm` checks them."""
        return self._measure_once(until)

    def plan_motion(self, blend: float, until: int, ticks: int) -> MotionPlan:
        """With motors off: what the real joints will do in a run of so many ticks from where they are now (see
        `Scheduler.plan`); blend, until: see `start_from_measured`. Raises RunError for one that could not start."""
        from cosim.execution.motion_plan import plan_of

        position, velocity = self._preserved(lambda: self._measure_off(until))
        start = self._start_at(blend, position, velocity)
        return plan_of(self.tick_model, start, position, ticks, self.power_on_places())

    def standing(self, until: int) -> MotionPlan:
        """With motors off: where the real joints stand; until: see `measure_once`."""
        from cosim.execution.motion_plan import MotionPlan, standing

        position, _ = self._preserved(lambda: self._measure_off(until))
        return MotionPlan(standing(self.tick_model, position), 0.0)

    def power_on_places(self) -> Mapping[str, PowerOnPlace]:
        """Real joint -> on which turn its drive is taken to be, where that is not simply what it reports."""
        return {}

    def start_from_measured(self, blend: float, until: int) -> None:
        """Reset controllers and trajectories, and blend references from the measured state to the trajectory within
        `blend` [s], or longer where that would be too fast; until: see `measure_once`.

        Raises RunError for a real joint that would stop the first tick, or whose reference would leave its limits.
        """
        model = self.tick_model
        position, velocity = self.measure_once(until)
        start = self._start_at(blend, position, velocity)
        for loop in model.loops:
            loop.failure = ""
        for path, value in armed(model, start.references, self.view("plant"), position, velocity).items():
            self.memory[model.layout.place(*path).where] = value

    def _start_at(self, blend: float, position: np.ndarray, velocity: np.ndarray) -> Start:
        """The references from this measured state (nv,). Raises RunError for a real joint that cannot start."""
        start = start_of(self.tick_model, blend, self.number * self.tick_model.step, position, velocity)
        codes = refused(self.tick_model, start, position, velocity)
        if codes.any():
            from cosim.execution.motion_plan import check_start

            check_start(self.tick_model, start, codes, blend, position, velocity, self.power_on_places())
        if self.tick_model.plant.haptic:
            from cosim.execution.motion_plan import check_contacts

            check_contacts(self.tick_model, self.view("plant"), position, velocity)
        return start

    # --- stop ---

    def force_stop(self, timeout: float) -> None:
        """Motors off, from another thread: the ticks did not end within `timeout` [s] of the order to stop."""
        self._force_stop(f"{self.running} has not returned for {timeout:g} s; check what it waits for")

    def _force_stop(self, what: str) -> None:
        if self.force_stopped:
            return  # the first cause counts
        self.failure = self._stopped_at(self.number, what)
        self.force_stopped = True  # after its cause, which other threads read
        self.stop()

    def _fail(self, number: int, error: BaseException) -> None:
        """Keep the error of a part that ended the ticks, unless they were stopped by force before."""
        if not self.force_stopped:
            what = str(error) if isinstance(error, RunError) else describe_exception(error)
            self.failure = self._stopped_at(number, what)

    def _stopped_at(self, number: int, what: str) -> str:
        return f"stopped at tick {number} (t = {number * self.tick_model.step:.6g} s): {what}"

    def stop(self) -> None:
        """Stop every driver, even when others fail; requested efforts of simulated drives become 0."""
        self.view("request")[:] = 0.0

    def close(self) -> None:
        """Stop every driver, then close it."""
        self.stop()
