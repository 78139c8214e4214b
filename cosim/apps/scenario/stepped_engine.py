"""The engine of a rig whose drives are emulated in the same process: drivers, buses and drives in simulated time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from cosim.core.driver_contract import DriverContext
from cosim.core.types import JointCommand, JointState
from cosim.execution.engine import Engine
from cosim.execution.hardware.driver_group import DriverGroup
from cosim.execution.hardware.emulation.server import EmulationServer
from cosim.execution.hardware.emulation.stepped_line import SimulatedTime, SteppedLine, join
from cosim.execution.hardware_engine import HardwareEngine
from cosim.execution.python_engine import PythonEngine
from cosim.execution.python_pacer import NoPacer, Pacer
from cosim.rig.emulate import emulation_of
from cosim.rig.wiring.drivers import driver_groups
from cosim.rig.wiring.wired_rig import WiredRig
from cosim.simulation.loop.tick_ring import LoopStatus, SharedWord
from cosim.simulation.tick.virtual_plant import VirtualPlant

ANSWER_NS = 5_000_000  # for an answer outside of the cycle
VALID_NS = 50_000_000  # of a hold command
OFF = 1e-6  # N·m: some drives damp their motor after a watchdog trip, less and less while it slows down


class SteppedPacer(NoPacer):
    """Every tick begins when it is due in simulated time, and its tasks have their deadlines."""

    def __init__(self, time: SimulatedTime, zero_ns: int, step_ns: int, deadlines: Sequence[int]) -> None:
        """zero_ns: when tick 0 is due; deadlines [ns]: of the tasks."""
        self._time, self._zero_ns, self._step_ns, self._deadlines = time, zero_ns, step_ns, tuple(deadlines)
        self._due_ns = zero_ns

    def wait(self, words: np.ndarray) -> LoopStatus:
        self._due_ns = self._zero_ns + int(words[SharedWord.NUMBER]) * self._step_ns
        self._time.wait_until(self._due_ns)
        return super().wait(words)

    def now(self) -> int:
        return self._time.now()

    def due(self) -> int:
        return self._due_ns

    def deadline(self, task: int, t_ns: int) -> int:
        return self._due_ns + self._deadlines[task]


class SteppedDrives(HardwareEngine):
    """Base of engines whose drivers are on lines in memory. Motors are enabled one after the other, and those that are
    on get hold commands meanwhile, as from `enabling.HoldCommands`."""

    def __init__(
        self, rig: WiredRig, plant: VirtualPlant, groups: Sequence[DriverGroup], server: EmulationServer
    ) -> None:
        super().__init__(rig.tick_model, plant, groups)
        self.server, self._deadlines = server, [task.deadline_ns for task in rig.tasks]
        self._zero_ns: int | None = None  # when tick 0 is due, from `begin` on
        self._on: list[DriverGroup] = []

    @property
    def time(self) -> SimulatedTime:
        return self._time

    def join(self, time: SimulatedTime) -> None:
        self._time = time

    def open(self) -> None:
        self.server.open()
        super().open()

    def close(self) -> None:
        super().close()
        self.server.close()

    def arm(self) -> None:
        Engine.arm(self)
        self._on, self._time.attend = [], self._hold
        try:
            for group in self.hardware_manager.groups:
                with group.named():
                    group.enable()
                if group.real:
                    self._on.append(group)
        finally:
            self._time.attend = None

    def _hold(self) -> None:
        for group in self._on:
            n, now = len(group.joint_index), self._time.now()
            state, command = JointState.zeros(n), JointCommand.zeros(n)
            group.driver.read(state, now + ANSWER_NS)
            command.position[:], command.valid_until_ns = state.position, self._time.now() + VALID_NS
            group.driver.write(command, self._time.now() + ANSWER_NS)

    def begin(self, blend: float) -> None:
        """Enable the motors, and begin the run from the measured state."""
        self.arm()
        self.start_from_measured(blend, self._time.now() + ANSWER_NS)
        self._zero_ns = self.server.due_ns

    def time_until_off(self, longest: float) -> float | None:
        """After a stop: let the time pass until no motor exerts an effort; how long that took [s], None where it took
        longer than `longest` [s]."""
        begun = self._time.now()
        while any(abs(motor.requested) > OFF for motor in self.server.motors.motors):
            if self._time.now() - begun > longest * 1e9:
                return None
            self._time.step(self.server.due_ns)
        return (self._time.now() - begun) * 1e-9


class SteppedEngine(SteppedDrives, PythonEngine):
    """The Python engine around these drivers."""

    def _unpaced(self) -> Pacer:
        if self._zero_ns is None:
            return super()._unpaced()
        return SteppedPacer(self._time, self._zero_ns, self.tick_model.step_ns, self._deadlines)


Made = TypeVar("Made", bound=SteppedDrives)


def stepped_engine(rig: WiredRig) -> SteppedEngine:
    """See `stepped`: the Python engine."""
    return stepped(SteppedEngine, rig)


def stepped(kind: type[Made], rig: WiredRig) -> Made:
    """A new engine of a rig with drivers, not yet open. Raises InputError for load motors, which the emulated mechanism
    does not have."""
    spec, time = rig.spec, SimulatedTime()
    lines = {
        driver.name: SteppedLine(
            driver.family.connection_name(driver.plugin.params),
            time,
            can=getattr(driver.plugin.params, "bus", None) is not None,
        )
        for driver in spec.drivers
    }
    server = emulation_of(spec, rig.interpret, time.now, lines=lines)
    join(server, lines, time)
    contexts = {name: _on_line(context, lines[name]) for name, context in rig.contexts.items()}
    plant = VirtualPlant(rig.tick_model)
    # lines in memory are used in Python
    groups = driver_groups(spec.drivers, contexts, rig.joints, rig.limits, plant, called=contexts)
    engine = kind(rig, plant, groups, server)
    engine.join(time)
    return engine


def _on_line(context: DriverContext, line: SteppedLine) -> DriverContext:
    """For emulated drives in memory, which have counted their turns from the start of the mechanism on."""
    turns = tuple("known" if known == "ambiguous" else known for known in context.turns)
    return replace(context, ends=line.ends, turns=turns)
