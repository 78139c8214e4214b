"""A driver with the indices of its joints in the model, and the messages of its failures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, cast

import numpy as np

from cosim.core.driver_contract import Driver, HardwareDriver
from cosim.core.errors import CosimError, InputError, RunError, SilentDrive, describe_exception
from cosim.core.types import JointState

CLEARABLE = "fix the cause, then run with --clear-faults"
CLEARED = "fix the cause before the next run; this stop clears the fault"


class DriverGroup(NamedTuple):
    """A driver and the indices (n,) of its joints in the model's order.

    mode: in which it is enabled; real: it moves real motors and is a HardwareDriver; load: its motors are load motors,
    which apply the efforts of the joints; detect_family: what is at an address of its connection at which no drive of
    its family answers, an error in words or ""; ambiguous: joints whose drives may be on several turns after power-on.
    """

    driver: Driver
    joint_index: np.ndarray
    mode: str = "effort"
    real: bool = False
    load: bool = False
    detect_family: Callable[[int], str] = lambda address: ""
    ambiguous: tuple[str, ...] = ()

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
