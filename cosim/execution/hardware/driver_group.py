"""A driver with the indices of its joints in the model, the messages of its failures, and what the memory of a tick
holds of these joints: where, and copied as one block in each direction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple, cast

import numpy as np

from cosim.core.driver_contract import Driver, HardwareDriver
from cosim.core.errors import CosimError, InputError, RunError, SilentDrive, describe_exception
from cosim.core.types import COMMAND, JointCommand, JointState
from cosim.simulation.tick.virtual_plant import VirtualPlant

CLEARABLE = "fix the cause, then run with --clear-faults"
CLEARED = "fix the cause before the next run; this stop clears the fault"


class DriverGroup(NamedTuple):
    """A driver and the indices (n,) of its joints in the model's order.

    mode: in which it is enabled; real: it moves real motors and is a HardwareDriver; load: its motors are load motors,
    which apply the efforts of the joints; detect_family: what is at an address of its connection at which no drive of
    its family answers, an error in words or ""; ambiguous: joints whose drives may be on several turns after power-on;
    called: a compiled loop calls it in Python, because its cycle is not in machine code.
    """

    driver: Driver
    joint_index: np.ndarray
    mode: str = "effort"
    real: bool = False
    load: bool = False
    detect_family: Callable[[int], str] = lambda address: ""
    ambiguous: tuple[str, ...] = ()
    called: bool = False

    @property
    def hardware(self) -> HardwareDriver | None:
        """Its driver if it moves real motors."""
        return cast(HardwareDriver, self.driver) if self.real else None

    @property
    def joints(self) -> str:
        """The names of its joints."""
        return ", ".join(self.driver.joints)

    def disconnected(self) -> bool:
        """Whether the connection of its driver was lost."""
        return self.hardware is not None and self.hardware.link.lost

    def open(self) -> None:
        """Connect, motors off. Raises InputError for a drive that does not answer or is another one."""
        try:
            self.driver.open()
        except SilentDrive as error:
            if what := self.detect_family(error.address):
                raise InputError(what, error.place) from error
            raise

    def enable(self) -> None:
        """Enable the motors. Raises RunError, with the fix where the drive has a fault that can be cleared."""
        try:
            self.driver.enable(self.mode)
        except RunError as error:
            if self.hardware is not None and self.hardware.latched:
                raise RunError(f"{error.what}; {CLEARABLE}", error.place) from error
            raise

    def clear(self) -> None:
        """Clear faults that real drives report; motors stay off. Raises RunError for a fault that persists."""
        if self.hardware is not None:
            self.hardware.clear()

    def check_faults(self, state: JointState) -> None:
        """Raises RunError for a fault that a drive reports, with its fix and what clears it."""
        for j, code in enumerate(state.fault.tolist()):
            if not code:
                continue
            device = "load motor" if self.load else "drive"
            fault = f"fault {code}; clear it first"
            if self.hardware is not None:
                fault = self.hardware.describe_fault(j, code)
                if code > 0:  # of the drive itself; negative codes are what the driver found
                    fault += f"; {CLEARABLE if self.hardware.faults_outlast_stop else CLEARED}"
            raise RunError(f"the {device} of joint '{self.driver.joints[j]}' reports {fault}")

    @contextmanager
    def named(self) -> Iterator[None]:
        """Convert any failure of the driver to a CosimError that names its joints."""
        try:
            yield
        except Exception as error:
            raise self.error_of(error) from error

    def error_of(self, error: Exception) -> CosimError:
        """A failure of the driver as a CosimError that names its joints."""
        if isinstance(error, CosimError):
            return error
        return RunError(f"the driver of {self.joints} failed: {describe_exception(error)}")


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
