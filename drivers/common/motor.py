"""A motor as the device side of a protocol sees it: what its drive measures, and the effort that it requests."""

from __future__ import annotations

import math
from typing import Protocol

from cosim.core.servo.commanded import CommandedLoops

# what may be wrong with a motor from outside; every family has its own error code for each
FAULT_CAUSES = ("overtemperature", "overcurrent", "undervoltage", "encoder")


class Motor(Protocol):
    """In the drive's units: rad, rad/s, N·m, A, V, °C; as of the last step of the physics."""

    position: float
    velocity: float
    effort: float  # that the motor gives
    current: float
    temperature: float
    voltage: float  # of the supply
    torque_constant: float  # N·m/A
    max_effort: float  # the drive's own limits
    max_velocity: float
    max_temperature: float
    fault_cause: str  # "" or one of FAULT_CAUSES
    # as of a DC motor with this torque constant
    resistance: float  # Ω, 0: an ideal motor, without windings
    inductance: float  # H
    lag: float  # s, time constant with which the effort follows a request
    enabled: bool  # set by its drive: whether that is switched on, which a holding brake follows
    loops: CommandedLoops | None  # of its drive, None: an emulated drive's

    @property
    def shaft_position(self) -> float:
        """The position of the motor itself, whatever its encoder gives."""
        ...

    @property
    def shaft_velocity(self) -> float: ...

    def request(self, effort: float) -> None:
        """The effort that the motor is to give until the next request; 0 when it is off."""
        ...


class WholeNumberEncoder:
    """The encoder of a motor in a drive that counts in whole numbers: while it gives none, the last ones are kept."""

    def __init__(self, motor: Motor) -> None:
        self._motor = motor
        self._position = self._velocity = 0.0

    @property
    def lost(self) -> bool:
        """Whether it gives no number, which a drive reports as a fault of the encoder."""
        return math.isnan(self._motor.position)

    def position(self) -> float:
        """rad"""
        if not self.lost:
            self._position = self._motor.position
        return self._position

    def velocity(self) -> float:
        """rad/s"""
        if not math.isnan(self._motor.velocity):
            self._velocity = self._motor.velocity
        return self._velocity


class Rotor:
    """A motor on its own: a disc with viscous friction, for trying a protocol without a rig."""

    resistance = inductance = lag = 0.0  # it has no windings
    loops: CommandedLoops | None = None

    def __init__(self, inertia: float = 1e-3, friction: float = 1e-3, max_effort: float = 2.0) -> None:
        """inertia [kg·m²], friction [N·m·s/rad], max_effort [N·m]"""
        self.position = self.velocity = self.effort = self.current = 0.0
        self.temperature, self.voltage, self.torque_constant = 25.0, 24.0, 0.1
        self.max_effort, self.max_velocity, self.max_temperature = max_effort, 100.0, 80.0
        self.fault_cause, self.enabled = "", False
        self._inertia, self._friction = inertia, friction

    @property
    def shaft_position(self) -> float:
        return self.position

    @property
    def shaft_velocity(self) -> float:
        return self.velocity

    def request(self, effort: float) -> None:
        self.effort = min(max(effort, -self.max_effort), self.max_effort)
        self.current = self.effort / self.torque_constant

    def advance(self, step: float) -> None:
        """step [s], by the semi-implicit Euler method."""
        self.velocity += step * (self.effort - self._friction * self.velocity) / self._inertia
        self.position += step * self.velocity
