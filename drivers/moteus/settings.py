"""The configuration of a drive, read when it is opened: its gains and its own limits."""

from __future__ import annotations

import math
from typing import NamedTuple

from cosim.core.units import TURN
from cosim.plugins.drivers.moteus import faults
from cosim.plugins.drivers.moteus.diagnostic import Request, Write, get
from cosim.plugins.drivers.moteus.registers import TORQUE_FACTOR

MIN_VOLTAGE = 4.0  # V, below which a drive reports a fault


class Settings(NamedTuple):
    """In the drive's units: rad, rad/s, N·m; infinite where it has no limit."""

    kp: float  # N·m/rad
    kd: float  # N·m·s/rad
    effort: float
    velocity: float
    lower: float
    upper: float
    voltage: float  # V, °C; above these the drive reports a fault when it is on
    temperature: float

    def limits(self) -> tuple[tuple[str, float, str], ...]:
        """(quantity, limit, its setting in the drive)."""
        return (
            ("effort", self.effort, "servo.max_current_A"),
            ("velocity", self.velocity, "servo.max_velocity"),
            ("upper position", self.upper, "servopos.position_max"),
            ("lower position", self.lower, "servopos.position_min"),
        )


_NAMES = (
    "servo.pid_position.kp",
    "servo.pid_position.kd",
    "servo.max_current_A",
    "motor.Kv",
    "motor_position.rotor_to_output_ratio",
    "servo.max_velocity",
    "servopos.position_min",
    "servopos.position_max",
    "servo.max_voltage",
    "servo.fault_temperature",
)


def read_settings(write: Write, request: Request) -> Settings:
    """The settings of a drive, read on its diagnostic console. Raises NotReported.

    The torque at the output is the current times the torque constant of the manufacturer's motor model, 8.27 / Kv, over
    the ratio of the gear between rotor and output.
    """
    values = [get(write, request, name) for name in _NAMES]
    kp, kd, current, kv, ratio, velocity, lower, upper, voltage, temperature = values
    effort = abs(current * TORQUE_FACTOR / (kv * ratio)) if kv and ratio else math.inf
    return Settings(
        kp / TURN,
        kd / TURN,
        effort,
        velocity * TURN,
        -math.inf if math.isnan(lower) else lower * TURN,
        math.inf if math.isnan(upper) else upper * TURN,
        voltage,
        temperature,
    )


def standing_fault(own: Settings, voltage: float, temperature: float) -> int:
    """The fault that a drive which is off would report when switched on, at this supply [V] and temperature [°C]; 0 for
    none."""
    if temperature > own.temperature:
        return faults.OVER_TEMPERATURE
    if voltage > own.voltage:
        return faults.OVER_VOLTAGE
    return faults.UNDER_VOLTAGE if voltage < MIN_VOLTAGE else 0
