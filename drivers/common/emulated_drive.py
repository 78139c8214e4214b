"""An emulated drive without its protocol: modes, cascaded loops, watchdog, latched faults, the drive's own limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, TypeVar

from cosim.core.servo.commanded import CommandedLoops
from cosim.plugins.drivers.common.motor import Motor, WholeNumberEncoder
from cosim.plugins.drivers.common.unknown_requests import UnknownRequests

WATCHDOG = "watchdog"  # the fault of a drive that got no commands; the others are FAULT_CAUSES
WATCHDOG_NS = 100_000_000  # until a command sets another


class EmulatedDrive:
    """A drive with a motor; it starts switched off. It reads no clock: times are given in ns."""

    def __init__(self, motor: Motor) -> None:
        self.motor = motor
        self.loops = motor.loops or CommandedLoops()
        self.reset()

    def reset(self) -> None:
        """The power is switched on."""
        self.fault = ""
        self.switch_off()

    def switch_off(self) -> None:
        self.mode, self.target, self.effort_limit = "", 0.0, self.motor.max_effort
        self.watchdog_ns = WATCHDOG_NS
        self.motor.enabled = False
        self.motor.request(0.0)

    def enable(self, t_ns: int) -> None:
        """On, in effort mode and without effort, unless a fault is latched."""
        if not self.mode and not self.fault:
            self.mode, self.command_ns, self.motor.enabled = "effort", t_ns, True

    def command(self, mode: str, target: float, effort_limit: float, watchdog_ns: int, t_ns: int) -> None:
        """Follow a target in a mode [N·m, rad/s or rad]; a drive that is off stays off."""
        if self.mode:
            if mode != self.mode:
                self.loops.reset()
            self.mode, self.target, self.effort_limit = mode, target, effort_limit
            self.watchdog_ns, self.command_ns = watchdog_ns, t_ns

    def clear(self) -> None:
        """Clear the fault; it is latched again while its cause persists."""
        self.fault = self.cause()

    def cause(self) -> str:
        """The fault that persists now, empty for none."""
        hot = self.motor.temperature > self.motor.max_temperature
        return "overtemperature" if hot else self.motor.fault_cause

    def process(self, t_ns: int) -> None:
        """One cycle of the drive, after the motor was measured."""
        expired = self.mode and t_ns - self.command_ns > self.watchdog_ns
        self.fault = self.fault or self.cause() or (WATCHDOG if expired else "")
        if self.fault or not self.mode:
            return self.switch_off()
        # in this order a limit that is not a number is the drive's own
        limit = max(0.0, min(self.motor.max_effort, self.effort_limit))
        effort = self.requested_effort(limit)
        self.motor.request(min(max(effort, -limit), limit) if effort == effort else 0.0)

    def requested_effort(self, limit: float) -> float:
        """By the cascade of position and velocity loop [N·m]; limit: of the effort."""
        if self.mode == "effort":
            return self.target
        motor, mode = self.motor, "position" if self.mode == "position" else "velocity"
        return self.loops.effort(mode, self.target, motor.position, motor.velocity, motor.max_velocity, limit)


class CountingDrive(EmulatedDrive):
    """A drive that reports its motion in whole numbers: while its encoder gives none, the last ones, and a fault."""

    def __init__(self, motor: Motor) -> None:
        self.encoder = WholeNumberEncoder(motor)
        super().__init__(motor)

    def cause(self) -> str:
        return super().cause() or ("encoder" if self.encoder.lost else "")


DriveType = TypeVar("DriveType", bound=EmulatedDrive)


class EmulatedDrives(Generic[DriveType]):
    """Drives on one connection by their address; they send nothing unless requested."""

    def __init__(self, drives: Mapping[int, DriveType]) -> None:
        self.drives = drives
        self.unknown = UnknownRequests()

    def process(self, t_ns: int) -> list:
        """Time has passed."""
        for drive in self.drives.values():
            drive.process(t_ns)
        return []

    def reset(self, t_ns: int) -> None:
        """The power is switched on."""
        for drive in self.drives.values():
            drive.reset()
