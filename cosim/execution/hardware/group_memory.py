"""What the memory of a tick holds of the joints of a driver: where, and copied as one block in each direction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from cosim.core.types import COMMAND, JointCommand, JointState
from cosim.execution.hardware.driver_group import DriverGroup
from cosim.simulation.tick.virtual_plant import VirtualPlant

MEASURED = (
    *("measured position", "measured velocity", "measured effort", "temperature"),  # as a driver reports them
    *("interval", "delay", "age"),  # s, of its sample
)

Paths = Mapping[str, tuple[str, ...]]

# parts of the memory by the name in COMMAND or MEASURED: of simulated joints, of real ones, of load motors
SIMULATED_PATHS: Paths = {name: ("command", name) for name in COMMAND} | {
    "measured position": ("measured", "position"),
    "measured velocity": ("measured", "velocity"),
    "measured effort": ("measured_effort",),
}
JOINT_PATHS: Paths = SIMULATED_PATHS | {
    "temperature": ("temperature",),
    "interval": ("sample_interval",),
    "delay": ("sample_delay",),
    "age": ("age",),
}
LOAD_PATHS: Paths = {
    "effort": ("load_effort",),
    "measured velocity": ("load_measured", "velocity"),
    "measured effort": ("load_measured", "effort"),
    "interval": ("load_interval",),
}


def paths_of(group: DriverGroup) -> Paths:
    """The parts of the memory that a group reads and writes."""
    return LOAD_PATHS if group.load else JOINT_PATHS if group.real else SIMULATED_PATHS


class GroupMemory:
    """The state and the command of n joints; their arrays are rows of blocks, which are copied together."""

    def __init__(self, group: DriverGroup, plant: VirtualPlant) -> None:
        paths, index = paths_of(group), group.joint_index
        measured, self._measured, self._measured_places = _block(MEASURED, paths, plant, index)
        commanded, self._commanded, self._commanded_places = _block(COMMAND, paths, plant, index)
        position, velocity, effort, temperature, self._interval, self._delay, self._age = measured
        temperature[:] = np.nan  # where it is not measured
        self._memory = plant.memory
        self.state = JointState(0, position, velocity, effort, np.zeros(len(index), np.int64), temperature)
        self.command = JointCommand(*commanded, valid_until_ns=0)

    def write_state(self, interval: float, delay: float, age: float) -> None:
        """Copy the state to the memory, with the times of its sample [s]: since the sample before, to the time when the
        tick was due, to now."""
        self._interval.fill(interval)
        self._delay.fill(delay)
        self._age.fill(age)
        self._memory[self._measured_places] = self._measured

    def read_command(self) -> None:
        """Copy the command from the memory."""
        self._commanded[:] = self._memory[self._commanded_places]


def _block(
    names: Sequence[str], paths: Paths, plant: VirtualPlant, index: np.ndarray
) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    """(a row (n,) for each name, those rows that the memory holds as one block, the places (rows, n) of the block)."""
    held = [name for name in names if name in paths]
    rows = np.zeros((len(names), len(index)))
    row_of = dict(zip([*held, *(name for name in names if name not in paths)], rows, strict=True))
    starts = [plant.tick_model.layout.place(*paths[name])[0].start for name in held]
    places = np.add.outer(np.array(starts, np.int64), index)
    return [row_of[name] for name in names], rows[: len(held)], places
