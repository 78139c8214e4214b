"""The configuration of an emulated drive: the values of `conf enumerate`, with the manufacturer's names and defaults.

Source: mjbots' configuration reference. The names are those that a control loop or the manufacturer's tools need;
positions are in turns, kp in N·m/turn, kd in N·m per turn/s.
"""

from __future__ import annotations

import math

from cosim.core.units import TURN
from cosim.plugins.drivers.common.motor import Motor
from cosim.plugins.drivers.common.windings import MAGNET_ANGLE, POLE_PAIRS, phase_inductance, phase_resistance
from cosim.plugins.drivers.moteus.registers import TORQUE_FACTOR

Config = dict[str, int | float]

OFFSETS = 64  # of the commutation over a turn of the encoder
_FIXED = ("motor.phase_invert", "motor_position.sources.0.sign", "motor_position.commutation_source")  # as wired


def factory(node: int, uuid: bytes, motor: Motor) -> Config:
    """The configuration of a drive that is calibrated for its motor, without position limits."""
    return {
        "can.prefix": 0,
        "id.id": node,
        "motor.poles": 2 * POLE_PAIRS,
        "motor.phase_invert": 0,
        "motor.resistance_ohm": phase_resistance(motor) or 0.1,
        "motor.inductance_d_H": phase_inductance(motor),
        "motor.inductance_q_H": phase_inductance(motor),
        "motor.inductance_d_scale": 0.0,
        "motor.Kv": TORQUE_FACTOR / motor.torque_constant,
        **dict.fromkeys((f"motor.offset.{k}" for k in range(OFFSETS)), MAGNET_ANGLE),
        "motor_position.commutation_source": 0,
        "motor_position.sources.0.type": 1,
        "motor_position.sources.0.sign": 1,
        "motor_position.sources.0.pll_filter_hz": 400.0,
        "motor_position.output.source": 0,
        "motor_position.output.offset": 0.0,
        "motor_position.output.sign": 1,
        "motor_position.rotor_to_output_ratio": 1.0,
        "servo.pwm_rate_hz": 30000,
        "servo.current_sense_ohm": 0.0005,
        "servo.pid_dq_hz": 100.0,
        "servo.voltage_mode_control": 0,
        "servo.max_voltage": 46.0,
        "servo.fault_temperature": motor.max_temperature,
        "servo.pid_position.kp": 4.0,
        "servo.pid_position.ki": 1.0,
        "servo.pid_position.kd": 0.05,
        "servo.pid_position.ilimit": 0.0,
        "servo.default_velocity_limit": math.nan,
        "servo.default_accel_limit": 50.0,
        "servo.default_timeout_s": 0.1,
        "servo.timeout_max_torque_Nm": 5.0,
        "servo.timeout_mode": 12,
        "servo.position_derate": 0.02,
        "servo.max_current_A": motor.max_effort / motor.torque_constant,
        "servo.max_velocity": motor.max_velocity / TURN,
        "servo.max_velocity_derate": 2.0,
        "servopos.position_min": math.nan,
        "servopos.position_max": math.nan,
        **{f"uuid.uuid.{k}": byte for k, byte in enumerate(uuid)},
    }


def formatted(value: int | float) -> str:
    """A value as the drive prints it."""
    return f"{value:d}" if isinstance(value, int) else f"{value:f}"


def groups(config: Config) -> list[str]:
    return list(dict.fromkeys(name.split(".")[0] for name in config))


def change(config: Config, name: str, text: str) -> bool:
    """Set a value from text; False if the name does not exist or the text is not a valid number."""
    if name not in config:
        return False
    try:
        value = type(config[name])(text)
        formatted(value)
    except (ValueError, OverflowError):
        return False
    if name in _FIXED and value != config[name]:
        return False
    if name == "id.id" and not 1 <= value <= 126:
        value = 1  # as in the drive, so that it stays reachable
    config[name] = value
    return True
