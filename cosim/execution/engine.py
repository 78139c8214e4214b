"""What takes the ticks of a rig: the loop in machine code, and the loop in Python around drivers.

Both run the same tasks in the same order on the same memory, hold the same pace and leave the same rows and stamps.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np

from cosim.compile.routine import Routine
from cosim.control.bumpless_start import BumplessStart
from cosim.control.controlled_stop import ASKED, ControlledStop
from cosim.control.guard import STOP
from cosim.errors import RunError, describe_exception
from cosim.execution.python_pacer import ClockPacer, NoPacer, Pacer
from cosim.execution.stop_reason import stop_reason
from cosim.hardware.estop import Estop
from cosim.hardware.manager import DriverGroup, HardwareManager
from cosim.tick.memory_call import MemoryCall
from cosim.tick.tick_model import TickModel, TickTask
from cosim.tick.virtual_plant import VirtualPlant
from cosim.timing.native_loop import (
    LoopStatus,
    LoopTask,
    NativeLoop,
    PaceMemory,
    RoutineCall,
    SharedWord,
    TickProgram,
    TickRing,
)
from cosim.timing.pacing import ORDER
from cosim.timing.watchdog import Watchdog
from cosim.types import Driver

# top speed of a quintic of unit length in unit time
QUINTIC_SPEED = 1.875
# of a joint's limit of speed, for the way to the trajectory; the rest is for the trajectory's own and for overshoot
SHARE = 0.5


@dataclass(frozen=True)
class Snapshot:
    """A rig between two ticks: the number of the next one, and all that goes on from tick to tick."""

    number: int
    memory: np.ndarray


class Engine(ABC):
    """Takes a rig forward; after a fault or `close` its drivers are stopped."""

    lane: str  # what it runs in
    drives: HardwareManager
    memory: np.ndarray
    hardware = False  # whether any of them moves a real motor
    number = 0  # of the next tick
    failure = ""  # what a part that failed said
    left = False  # whether it was abandoned
    at = "the loop"  # what runs at the moment

    def __init__(self, simulation: TickModel, order: Sequence[str]) -> None:
        self.simulation = simulation
        self.stages = simulation.stages(order)
        self.program = program(simulation, self.stages)

    def run(self, count: int) -> tuple[np.ndarray, str]:
        """The rows (k, nr) of the next `count` ticks as fast as they can be taken, fewer when something stopped the
        run: then it says what."""
        rings = TickRing(self.program, count)
        self.take(rings, count)
        rows, _ = rings.read(count)
        return rows, self.outcome(rings.status)

    def take(self, rings: TickRing, count: int, pace: PaceMemory | None = None) -> None:
        """Take `count` ticks into the rings, by the clock of the pace or as fast as possible; `rings.status` tells how
        it ended."""
        rings.words[SharedWord.NUMBER], rings.words[SharedWord.COUNT] = self.number, count
        rings.words[SharedWord.STATUS] = LoopStatus.RUNNING
        try:
            self._take(rings, pace)
        finally:
            self.number = int(rings.words[SharedWord.NUMBER])

    def outcome(self, status: LoopStatus) -> str:
        """Why a fault ended the ticks; empty when none did."""
        if not self.left and (status is not LoopStatus.FAULT or (not self.failure and self.view("fault") == ASKED)):
            return ""
        return self.failure or stop_reason(self.simulation, self.number - 1, self.memory)

    def halt(self) -> None:
        """The ticks are to bring the joints to rest and end; from another thread. Only where the simulation halts."""
        self.view("halted", "asked")[...] = 1.0

    def numbers(self, rows: np.ndarray) -> np.ndarray:
        """(k,) of the ticks that left these rows (k, nr)."""
        return np.rint(rows[:, self.program.time] / self.simulation.step).astype(np.int64)

    def view(self, *path: str) -> np.ndarray:
        """A part of the memory by its name, to be read or written in place."""
        where, shape = self.simulation.layout.place(*path)
        return self.memory[where].reshape(shape)

    def snapshot(self) -> Snapshot:
        return Snapshot(self.number, self.memory.copy())

    def restore(self, snapshot: Snapshot) -> None:
        """Go on from there, to the bit."""
        self.number, self.memory[:] = snapshot.number, snapshot.memory
        self.failure = ""

    @abstractmethod
    def _take(self, rings: TickRing, pace: PaceMemory | None) -> None: ...

    def sense(self, until: int) -> tuple[np.ndarray, np.ndarray]:
        """(position, velocity) (nv,) as measured now; what the sensors remember stays as it is. until: the deadline
        [ns] on the clock of the drivers."""
        before = self.memory.copy()
        try:
            return self._sense(until)
        finally:
            self.memory[:] = before

    @abstractmethod
    def _sense(self, until: int) -> tuple[np.ndarray, np.ndarray]: ...

    def begin_from_measured(self, blend: float, until: int) -> None:
        """Let controllers start afresh, and references lead from the measured state to the trajectory within `blend`
        [s], or longer where that would be too fast; until: see `sense`."""
        simulation, nv = self.simulation, self.simulation.nv
        position, velocity = self.sense(until)
        away = BumplessStart(self.number * simulation.step, blend, np.zeros(nv), np.zeros(nv))
        for loop in simulation.loops:
            self.view("controllers", loop.name)[:] = loop.layout.pack(loop.initial())
            self.view("fallen", loop.name)[:] = 0.0
            self.view("told", loop.name)[:] = 0.0
            loop.failure = ""
            if loop.looks_at("position"):
                sample = loop.trajectory.sample(0.0)
                away.position[loop.index] = position[loop.index] - sample["position"]
                away.velocity[loop.index] = velocity[loop.index] - sample["velocity"]
        self.view("command")[:] = 0.0
        self._check_at_rest(position, velocity)
        plant, real = simulation.plant, [simulation.plant.model.dof_index(name) for name in simulation.plant.real]
        if real:
            state = plant.begun(plant.layout.unpack(self.view("plant").copy()), position[real], velocity[real])
            self.view("plant")[:] = plant.layout.pack(state)
        needed = float(np.max(np.abs(away.position) / (SHARE * simulation.limits.velocity), initial=0.0))
        length = max(blend, simulation.step, QUINTIC_SPEED * needed)
        halting = ControlledStop.none(nv) if simulation.halts else []
        self.view("arming")[:] = np.concatenate([[away.t, length], away.position, away.velocity, halting])
        for name in ("asked", "reason", "first"):
            self.view("halted", name)[...] = 0.0

    def open(self) -> None:
        """Connect drivers; motors stay off. When one fails, all are let go of."""
        return None

    def clear(self) -> None:
        """Clear what real drives report as faults; motors stay off. Where one stands, all are let go of."""
        return None

    def arm(self) -> None:
        """Switch the motors on. When one fails, all are off."""
        self.left = False

    def _check_at_rest(self, position: np.ndarray, velocity: np.ndarray) -> None:
        """Raises RunError for a real joint that would stop the first tick by where it is, or by its speed."""
        held, model = self.simulation.guard, self.simulation.plant.model
        for name in self.simulation.plant.real:
            k = model.dof_index(name)
            limits, unit = held.limits, model.dof_units[k]
            lower, upper, most = limits.lower[k], limits.upper[k], limits.velocity[k]
            if held.does(STOP, "position")[k] and not lower <= position[k] <= upper:
                what = f"joint '{name}' is at {position[k]:.6g} {unit} before it is commanded, outside its limits"
                mend = "move it back by hand, or look at its zero"
                raise RunError(f"{what} {lower:.6g} to {upper:.6g} {unit}; {mend}")
            if held.does(STOP, "velocity")[k] and abs(velocity[k]) > most:
                what = f"joint '{name}' moves at {velocity[k]:.6g} {unit}/s before it is commanded"
                raise RunError(f"{what}, above its limit of {most:.6g} {unit}/s; wait until it rests")

    def hold(self) -> None:
        """Motors that are on stay so until the first tick."""
        return None

    def abandon(self, patience: float) -> None:
        """The ticks do not end although they were told to, for `patience` [s]: motors off, from another thread."""
        self._abandon(f"{self.at} has not returned for {patience:g} s; look at what it waits for")

    def _abandon(self, what: str) -> None:
        if self.left:
            return  # the first cause counts
        self.failure = f"stopped at tick {self.number} (t = {self.number * self.simulation.step:.6g} s): {what}"
        self.left = True  # whoever sees it finds the cause
        self.stop()

    def stop(self) -> None:
        """Every driver is stopped, whatever the others do; simulated ones ask for nothing any more."""
        self.view("request")[:] = 0.0

    def close(self) -> None:
        """Every driver is stopped, then let go of."""
        self.stop()


def program(simulation: TickModel, stages: Sequence[TickTask]) -> TickProgram:
    """The stages as the loops see them, without their calls."""
    place = simulation.layout.place
    return TickProgram(
        tasks=tuple(LoopTask((), stage.ticks, stage.phase) for stage in stages),
        step=simulation.step,
        time=place("t").where.start,
        fault=place("fault").where.start,
        judge=next(k for k, stage in enumerate(stages) if stage.name == "guard" and stage.loop is None),
        early=place("plant").where.stop,
        row=simulation.row.size,
    )


class NativeEngine(Engine):
    """The whole tick in machine code; Python sees blocks of finished ticks."""

    lane = "machine code"

    def __init__(self, simulation: TickModel, order: Sequence[str] = ORDER) -> None:
        super().__init__(simulation, order)
        self.memory = simulation.memory()
        calls = [tuple(_call(part) for part in stage.parts) for stage in self.stages]
        tasks = [LoopTask(made, stage.ticks, stage.phase) for made, stage in zip(calls, self.stages, strict=True)]
        self._ticks = NativeLoop(TickProgram(**{**vars(self.program), "tasks": tuple(tasks)}))

    def _take(self, rings: TickRing, pace: PaceMemory | None) -> None:
        self._ticks.run(self.memory, rings, pace)

    def _sense(self, until: int) -> tuple[np.ndarray, np.ndarray]:
        world = VirtualPlant(self.simulation)
        world.memory[:] = self.memory
        world.begin(self.number * self.simulation.step_ns)
        position, velocity, _ = world.measure()
        return position.copy(), velocity.copy()


def _call(part: MemoryCall) -> RoutineCall:
    shapes = [place.shape for place in part.inputs]
    routine = part.fn if isinstance(part.fn, Routine) else Routine(part.fn, shapes, part.name)
    return RoutineCall(routine, tuple(p.where for p in part.inputs), tuple(p.where for p in part.outputs))


class PythonEngine(Engine):
    """The loop in Python around drivers; what can be compiled still is, unless the simulation says not to."""

    lane = "Python"
    _keeper: Pacer = NoPacer()

    def __init__(
        self,
        simulation: TickModel,
        world: VirtualPlant,
        drivers: Sequence[tuple[Driver, np.ndarray] | DriverGroup],
        order: Sequence[str] = ORDER,
        hardware: bool = False,
        estop: Callable[[ExitStack], Estop] | None = None,
        watchdog: float | None = None,
    ) -> None:
        """drivers together cover all joints, each with the places (n,) of its joints in the model's order; estop: opens
        the emergency stop; watchdog [s]: motors are off when a tick takes longer."""
        super().__init__(simulation, order)
        self.drives = HardwareManager(
            [pair if isinstance(pair, DriverGroup) else DriverGroup(*pair) for pair in drivers], world
        )
        self.hardware = hardware or any(group.real for group in self.drives.groups)
        self.world, self.memory = world, world.memory
        self._tasks = [self._task(stage) for stage in self.stages]
        self._names = [f"controller '{s.name}'" if s.loop else f"task '{s.name}'" for s in self.stages]
        self._faulty = world.view("fault")
        self._stack, self._open_estop = ExitStack(), estop
        self._estop = Estop(())
        self._watchdog = None if watchdog is None else Watchdog(watchdog, self._barked)

    @property
    def drivers(self) -> Sequence[tuple[Driver, np.ndarray]]:
        """Each with the places (n,) of its joints."""
        return [(group.driver, group.index) for group in self.drives.groups]

    def open(self) -> None:
        if self._open_estop is not None:
            self._estop = self._open_estop(self._stack)
        self.drives.open()

    def clear(self) -> None:
        self.drives.clear()

    def arm(self) -> None:
        self._estop.reset()
        self.drives.enable()
        super().arm()
        if self._watchdog is not None:
            self._watchdog.start()
            self._watchdog.rest()

    def hold(self) -> None:
        self.drives.hold()

    def stop(self) -> None:
        self.drives.stop()
        if self._watchdog is not None:
            self._watchdog.stop()
        super().stop()

    def close(self) -> None:
        super().close()  # stops first
        self.drives.close()
        self._stack.close()

    def _barked(self, cause: str) -> None:
        """In the watchdog's thread."""
        self._abandon(f"{cause} (it was at {self.at})")

    def _measure(self, until: int) -> None:
        if cause := self._estop.pressed():
            raise RunError(f"{cause}; release it, then arm the rig again")
        self.drives.read(until, self._keeper.now, self._keeper.due())

    def _task(self, stage: TickTask) -> Callable[[int], object]:
        """A task of the tick, called with its deadline [ns]."""
        if stage.loop is not None:
            return self._controller(stage)
        # simulated drivers measure and ask by themselves; of real ones it is noted what they are asked for
        apart = ("measure",) if self.simulation.plant.real else ("measure", "write")
        calls = [self.world.bound(part) for part in stage.parts if part.name not in apart]
        if stage.name == "read":
            return lambda until: (self._measure(until), *(call() for call in calls))
        if stage.name == "write":
            return lambda until: (*(call() for call in calls), self.drives.write(until, self._keeper.now))
        return lambda _: [call() for call in calls]

    def _controller(self, stage: TickTask) -> Callable[[int], object]:
        assert stage.loop is not None
        name = stage.loop.name
        call = self.world.bound(stage.parts[0], interpret=name in self.simulation.untraceable)

        def update(_: int) -> None:
            try:
                call()
            except (Exception, SystemExit) as error:  # a controller may be the user's own: anything can happen in it
                raise RunError(f"controller '{name}' failed: {describe_exception(error)}") from error

        return update

    def _take(self, rings: TickRing, pace: PaceMemory | None) -> None:
        """The same loop as `compile.ticks` writes in machine code."""
        status, keeper = LoopStatus.FAULT, NoPacer()
        if not self.left:  # else there are no ticks before it is armed again
            self.failure = ""
        if self._watchdog is not None:
            self._watchdog.feed()
        try:
            if pace is not None:
                keeper = ClockPacer(pace, self.program, rings.words, not self.simulation.compiled)
            # a diverging run is reported by the guard, not by warnings of numpy
            with np.errstate(all="ignore"):
                status = self._loop(rings, keeper)
        except BaseException as error:  # whatever it is, what was done until then stays
            number, what = (
                int(rings.words[SharedWord.NUMBER]),
                str(error) if isinstance(error, RunError) else describe_exception(error),
            )
            if not self.left:
                self.failure = f"stopped at tick {number} (t = {number * self.simulation.step:.6g} s): {what}"
            if not isinstance(error, Exception):
                raise
        finally:
            if self._watchdog is not None:
                self._watchdog.rest()
            if status is LoopStatus.FAULT:
                self.stop()
            rings.words[SharedWord.STATUS] = status

    def _loop(self, rings: TickRing, keeper: Pacer) -> LoopStatus:
        words, memory, program = rings.words, self.memory, self.program
        self._keeper = keeper
        first, count, places = (int(words[word]) for word in (SharedWord.NUMBER, SharedWord.COUNT, SharedWord.PLACES))
        step_ns, early = self.simulation.step_ns, program.early
        for k in range(count):
            if (ending := keeper.wait(words)) is not LoopStatus.RUNNING:
                return ending
            number, taken = first + k, int(words[SharedWord.TAKEN])
            room = taken - int(words[SharedWord.READ]) < places
            place = taken % places if room else places
            self.number = number
            self.world.begin(number * step_ns)
            rings.rows[place, :early] = memory[:early]
            faulty = self._tick(number, keeper)
            rings.rows[place, early:] = memory[early : program.row]
            keeper.stamp(rings, place)
            words[SharedWord.DROPPED] += not room
            if self._watchdog is not None:
                self._watchdog.feed()
            words[SharedWord.NUMBER] = number + 1
            words[SharedWord.TAKEN] = taken + room
            if faulty:
                return LoopStatus.FAULT
            if (ending := keeper.follow(k, number)) is not LoopStatus.RUNNING:
                return ending
        return LoopStatus.FINISHED

    def _tick(self, number: int, keeper: Pacer) -> bool:
        """Run the tasks that are due; whether the guard, or what became of the plant, cut the tick short."""
        t_ns, faulty = number * self.simulation.step_ns, False
        for i, (task, run) in enumerate(zip(self.program.tasks, self._tasks, strict=True)):
            if not faulty and number % task.ticks == task.phase:
                if self.left:
                    raise RunError("nothing is done any more")
                self.at = self._names[i]
                run(keeper.deadline(i, t_ns))
                keeper.ended(i)
            faulty |= i == self.program.judge and bool(self._faulty)
        return faulty

    def _sense(self, until: int) -> tuple[np.ndarray, np.ndarray]:
        self.world.restored()
        self.world.begin(self.number * self.simulation.step_ns)
        try:
            self.drives.sense(until)
        finally:
            self.world.restored()
        return self.view("measured", "position").copy(), self.view("measured", "velocity").copy()

    def restore(self, snapshot: Snapshot) -> None:
        if self.hardware:
            raise RunError("a rig with real motors cannot be put back to an earlier state; arm it again instead")
        super().restore(snapshot)
        self.world.restored()
