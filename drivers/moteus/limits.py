"""What a drive says of itself when it is opened: its gains and its limits, whether the guard's are within them, and
whether it is itself."""

from __future__ import annotations

import math
from typing import NamedTuple

from cosim.drivers.moteus import faults
from cosim.drivers.moteus.diagnostic import Ask, Tell, get, quiet
from cosim.drivers.moteus.registers import TORQUE_FACTOR
from cosim.units import TURN

MIN_VOLTAGE = 4.0  # V, below which a drive reports a fault


class Settings(NamedTuple):
    """In the drive's units: rad, rad/s, N·m; infinite where it has no limit."""

    kp: float  # N·m/rad
    kd: float  # N·m·s/rad
    effort: float
    velocity: float
    lower: float
    upper: float
    voltage: float  # V, °C; above these it reports a fault once it is on
    temperature: float


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


def settings(tell: Tell, ask: Ask) -> Settings | str:
    """Of the drive that these speak to, by its diagnostic console; the name of a value it did not tell.

    The torque at the output is the current times the torque constant of the maker's motor model, 8.27 / Kv, over the
    ratio of the gear between rotor and output.
    """
    quiet(tell, ask)
    values: list[float] = []
    for name in _NAMES:
        value = get(tell, ask, name)
        if value is None:
            return name
        values.append(value)
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


def beyond(own: Settings, lower: float, upper: float, velocity: float, effort: float) -> str:
    """What of the guard's limits is outside the drive's own (both in the drive's units), "" when nothing is.

    A limit that the guard leaves open is not compared: the drive's own holds then.
    """
    for what, guard, drive, unit, key in (
        ("effort", effort, own.effort, "N*m", "servo.max_current_A"),
        ("velocity", velocity, own.velocity, "rad/s", "servo.max_velocity"),
        ("upper position", upper, own.upper, "rad", "servopos.position_max"),
        ("lower position", -lower, -own.lower, "rad", "servopos.position_min"),
    ):
        if math.isfinite(guard) and guard > drive * (1 + 1e-5) + 1e-5:
            sign = -1.0 if what.startswith("lower") else 1.0
            return (
                f"the {what} limit, {sign * guard:.6g} {unit} at the drive, is beyond the drive's own"
                f" {sign * drive:.6g} {unit} ({key}); lower the limit or configure the drive"
            )
    return ""


def standing(own: Settings, voltage: float, temperature: float) -> int:
    """The fault that a drive which is off would report as soon as it is on [V, °C], 0 for none that can be seen."""
    if temperature > own.temperature:
        return faults.OVER_TEMPERATURE
    if voltage > own.voltage:
        return faults.OVER_VOLTAGE
    return faults.UNDER_VOLTAGE if voltage < MIN_VOLTAGE else 0
