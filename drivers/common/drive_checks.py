"""What is checked of the drives behind a driver before they get a command, and the errors that name them."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable
from enum import Enum
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from cosim.core.driver_contract import DriverContext
from cosim.core.errors import CosimError, InputError, RunError, SilentDrive
from cosim.core.types import JointCommand, Limits
from cosim.plugins.drivers.common.cycle import LARGEST_COMMAND
from cosim.plugins.drivers.common.wiring import JointParams, Units
from cosim.plugins.drivers.transport import CanFrame, Connection

Item = TypeVar("Item", bound=CanFrame | bytes)  # of the connection
Joint = TypeVar("Joint", bound=JointParams)

ENABLE_NS = 1_000_000_000  # in which drives must be on
# the quantities that a drive limits by itself, with their units at the drive
_LIMIT_UNITS = {"effort": "N*m", "velocity": "rad/s", "upper position": "rad", "lower position": "rad"}
_TOLERANCE = 1e-5  # relative and absolute, for limits that are stored as 32-bit floats


class State(Enum):
    """How far a driver is between closed and motors on."""

    CLOSED = 0
    OPENING = 1
    OFF = 2
    ON = 3


class ListedCommand(NamedTuple):
    """The numbers of a `JointCommand` in lists (n,), as in `Units`."""

    position: list[float]
    velocity: list[float]
    effort: list[float]
    kp: list[float]
    kd: list[float]


class DriveChecks(Generic[Item, Joint]):
    """The joints of a driver with their drives: their limits, their names, and their errors."""

    joints: tuple[str, ...]
    limits: Limits
    units: Units
    link: Connection[Item]
    _context: DriverContext
    _wiring: tuple[Joint, ...]
    _state: State
    _compared_limits: dict[int, tuple[list[tuple[str, float, str]], float]]  # joint -> what was compared

    def check_finite(self, cmd: JointCommand | ListedCommand, requested: Iterable[float]) -> None:
        """Raises RunError for a command with a number that is not finite, or too large."""
        if math.hypot(*cmd.position, *cmd.velocity, *cmd.kp, *cmd.kd, *requested) < LARGEST_COMMAND:  # the usual way
            return
        rows = zip(cmd.position, cmd.velocity, cmd.kp, cmd.kd, requested, strict=True)
        bad = [k for k, row in enumerate(rows) if not all(abs(value) < LARGEST_COMMAND for value in row)]
        if bad:
            named = ", ".join(f"'{self.joints[k]}'" for k in bad)
            raise RunError(f"the command of joint {named} is not finite and was not sent; check the controller")

    def _guard_limits(self, k: int) -> dict[str, float]:
        """The guard's limits of a joint in its drive's units; positions lower and upper as the drive counts."""
        scale, size, limits = self.units.scale[k], abs(self.units.scale[k]), self.limits
        lower, upper = sorted(scale * (end - self.units.zero[k]) for end in (limits.lower[k], limits.upper[k]))
        return {
            "effort": float(limits.effort[k] / size),
            "velocity": float(limits.velocity[k] * size),
            "upper position": float(upper),
            "lower position": float(lower),
        }

    def _check_limits(self, k: int, own: Iterable[tuple[str, float, str]], tolerance: float = 0.0) -> None:
        """Compare the guard's limits of a joint with its drive's own: (quantity, limit in the drive's units, setting of
        the drive); tolerance: absolute. Raises the error of a limit beyond the drive's; infinite ones are not compared.
        """
        guard, own = self._guard_limits(k), list(own)
        self._compared_limits[k] = own, tolerance
        for quantity, limit, setting in own:
            asked, sign = guard[quantity], -1.0 if quantity.startswith("lower") else 1.0
            if np.isfinite(asked) and sign * asked > sign * limit + _TOLERANCE * (1.0 + abs(limit)) + tolerance:
                unit = _LIMIT_UNITS[quantity]
                what = f"the {quantity} limit is {asked:.6g} {unit} at {self._drive_name(k)}, whose own limit is"
                raise self._drive_error(
                    k, f"{what} {limit:.6g} {unit} ({setting}); lower the joint's limit or raise the drive's"
                )

    def _joint_error(self, k: int, what: str) -> RunError:
        return RunError(f"joint '{self.joints[k]}': {what}")

    def _drive_error(self, k: int, what: str) -> CosimError:
        """The error of a drive: of the rig (at the joint's address) until it is open, of the run later."""
        if self._state in (State.CLOSED, State.OPENING):
            return InputError(what, self._context.place("joints", self.joints[k], self._wiring[k].key))
        return self._joint_error(k, what)

    def _no_answer(self, k: int) -> CosimError:
        key = self._wiring[k].key
        what = f"no answer from {self._drive_name(k)} on {self.link.name}"
        return self._silent(k, f"{what}; check its power, the {key} and the bit rate")

    def _silent(self, k: int, what: str) -> CosimError:
        """The error of a drive that does not answer, or not as one of the family."""
        error = self._drive_error(k, what)
        return SilentDrive(what, error.place, self._wiring[k].address) if isinstance(error, InputError) else error

    @property
    def _loses_answers(self) -> str:
        """The fix for a drive that answers, but not every request."""
        return f"{self.link.name} loses or damages messages; check its cable, its termination and its bit rate"

    def _not_on(self, k: int, why: str) -> CosimError:
        return self._drive_error(k, f"{self._drive_name(k)} did not switch on within {ENABLE_NS * 1e-9:g} s; {why}")

    def _fault_persists(self, k: int, code: int) -> RunError:
        return self._joint_error(k, f"the fault persists: {self.describe_fault(k, code)}")

    def _drive_name(self, k: int) -> str:
        """The drive in messages."""
        return f"node {self._wiring[k].address}"

    @abstractmethod
    def describe_fault(self, joint_index: int, code: int) -> str:
        """A fault code in one line: the manufacturer's name of it, a semicolon, the fix."""
