"""Parameters by their names in odrivetool: attributes of the emulated axis, and endpoint numbers on CAN.

On CAN a parameter is addressed by a number that differs between firmware versions. The manufacturer publishes the
numbers of each version as `flat_endpoints.json`; the required ones of 0.6.10 for the S1 are here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from struct import Struct
from typing import NamedTuple

from cosim.core.errors import InputError, SourceLocation
from cosim.core.paths import read_file

# parameter of an axis -> attribute of `Axis`, whether it may be written
PARAMETERS: dict[str, tuple[str, bool]] = {
    "active_errors": ("active_errors", False),
    "disarm_reason": ("disarm_reason", False),
    "current_state": ("state", False),
    "requested_state": ("requested_state", True),
    "pos_estimate": ("pos_estimate", False),
    "vel_estimate": ("vel_estimate", False),
    "is_homed": ("is_homed", False),
    "procedure_result": ("procedure_result", False),
    "config.watchdog_timeout": ("watchdog_timeout", True),
    "config.enable_watchdog": ("enable_watchdog", True),
    "config.can.node_id": ("node_id", True),
    "config.can.version_msg_rate_ms": ("version_ms", True),
    "config.can.heartbeat_msg_rate_ms": ("heartbeat_ms", True),
    "config.can.encoder_msg_rate_ms": ("encoder_ms", True),
    "config.can.iq_msg_rate_ms": ("iq_ms", True),
    "config.can.error_msg_rate_ms": ("error_ms", True),
    "config.can.temperature_msg_rate_ms": ("temperature_ms", True),
    "config.can.bus_voltage_msg_rate_ms": ("bus_ms", True),
    "config.can.torques_msg_rate_ms": ("torques_ms", True),
    "config.can.powers_msg_rate_ms": ("powers_ms", True),
    "config.can.input_vel_scale": ("input_vel_scale", True),
    "config.can.input_torque_scale": ("input_torque_scale", True),
    "config.torque_soft_min": ("torque_soft_min", True),
    "config.torque_soft_max": ("torque_soft_max", True),
    "config.motor.torque_constant": ("torque_constant", True),
    "config.motor.current_soft_max": ("current_soft_max", True),
    "config.motor.current_hard_max": ("current_hard_max", True),
    "motor.foc.Iq_setpoint": ("iq_setpoint", False),
    "motor.foc.Iq_measured": ("iq_measured", False),
    "motor.fet_thermistor.temperature": ("fet_temperature", False),
    "motor.motor_thermistor.temperature": ("motor_temperature", False),
    "motor.torque_estimate": ("torque_estimate", False),
    "motor.mechanical_power": ("mechanical_power", False),
    "controller.input_pos": ("input_pos", True),
    "controller.input_vel": ("input_vel", True),
    "controller.input_torque": ("input_torque", True),
    "controller.trajectory_done": ("trajectory_done", False),
    "controller.config.enable_vel_limit": ("enable_vel_limit", True),
    "controller.config.enable_torque_mode_vel_limit": ("enable_torque_mode_vel_limit", True),
    "controller.config.enable_overspeed_error": ("enable_overspeed_error", True),
    "controller.config.control_mode": ("control_mode", True),
    "controller.config.input_mode": ("input_mode", True),
    "controller.config.pos_gain": ("pos_gain", True),
    "controller.config.vel_gain": ("vel_gain", True),
    "controller.config.vel_integrator_gain": ("vel_integrator_gain", True),
    "controller.config.vel_integrator_limit": ("vel_integrator_limit", True),
    "controller.config.vel_limit": ("vel_limit", True),
    "controller.config.vel_limit_tolerance": ("vel_limit_tolerance", True),
    "controller.config.vel_ramp_rate": ("vel_ramp_rate", True),
    "controller.config.torque_ramp_rate": ("torque_ramp_rate", True),
    "controller.config.homing_speed": ("homing_speed", True),
    "controller.config.inertia": ("inertia", True),
    "controller.config.input_filter_bandwidth": ("input_filter_bandwidth", True),
    "trap_traj.config.vel_limit": ("traj_vel_limit", True),
    "trap_traj.config.accel_limit": ("traj_accel_limit", True),
    "trap_traj.config.decel_limit": ("traj_decel_limit", True),
    "min_endstop.config.enabled": ("min_endstop_enabled", True),
}
FUNCTION = "watchdog_feed"

# types of the manufacturer's table -> format of a value; others are not needed
TYPES = {name: Struct("<" + code) for name, code in {"float": "f", "bool": "?", "uint8": "B", "uint32": "I"}.items()}


class Endpoint(NamedTuple):
    """A property or a function of a firmware, by its number."""

    number: int
    value: Struct | None  # None: a function without arguments


class Endpoints(NamedTuple):
    """The numbers of one firmware on one hardware."""

    firmware: str  # "0.6.10"
    hardware: str  # "5.2.0": line, version, variant
    table: Mapping[str, Endpoint]  # by the name after "axis0."


_FLOATS = {
    "pos_estimate": 195,
    "vel_estimate": 196,
    "config.watchdog_timeout": 213,
    "config.torque_soft_min": 264,
    "config.torque_soft_max": 265,
    "config.motor.torque_constant": 272,
    "config.motor.current_soft_max": 284,
    "config.motor.current_hard_max": 285,
    "motor.foc.Iq_setpoint": 333,
    "motor.foc.Iq_measured": 339,
    "motor.fet_thermistor.temperature": 346,
    "motor.motor_thermistor.temperature": 347,
    "motor.torque_estimate": 363,
    "motor.mechanical_power": 364,
    "controller.input_pos": 380,
    "controller.input_vel": 381,
    "controller.input_torque": 382,
    "controller.config.pos_gain": 397,
    "controller.config.vel_gain": 398,
    "controller.config.vel_integrator_gain": 399,
    "controller.config.vel_integrator_limit": 400,
    "controller.config.vel_limit": 401,
    "controller.config.vel_limit_tolerance": 402,
    "controller.config.vel_ramp_rate": 403,
    "controller.config.torque_ramp_rate": 404,
    "controller.config.homing_speed": 412,
    "controller.config.inertia": 413,
    "controller.config.input_filter_bandwidth": 414,
    "trap_traj.config.vel_limit": 429,
    "trap_traj.config.accel_limit": 430,
    "trap_traj.config.decel_limit": 431,
}
_BOOLS = {
    "is_homed": 197,
    "config.enable_watchdog": 214,
    "controller.trajectory_done": 387,
    "controller.config.enable_vel_limit": 390,
    "controller.config.enable_torque_mode_vel_limit": 391,
    "controller.config.enable_overspeed_error": 394,
    "min_endstop.config.enabled": 434,
}
_BYTES = {
    "current_state": 193,
    "requested_state": 194,
    "controller.config.control_mode": 395,
    "controller.config.input_mode": 396,
    "procedure_result": 545,
}
_WORDS = {
    "active_errors": 188,
    "disarm_reason": 189,
    "config.can.node_id": 242,
    "config.can.version_msg_rate_ms": 243,
    "config.can.heartbeat_msg_rate_ms": 244,
    "config.can.encoder_msg_rate_ms": 245,
    "config.can.iq_msg_rate_ms": 246,
    "config.can.error_msg_rate_ms": 247,
    "config.can.temperature_msg_rate_ms": 248,
    "config.can.bus_voltage_msg_rate_ms": 249,
    "config.can.torques_msg_rate_ms": 250,
    "config.can.powers_msg_rate_ms": 251,
    "config.can.input_vel_scale": 252,
    "config.can.input_torque_scale": 253,
}
S1_0_6_10 = Endpoints(
    "0.6.10",
    "5.2.0",
    {
        **{name: Endpoint(number, TYPES["float"]) for name, number in _FLOATS.items()},
        **{name: Endpoint(number, TYPES["bool"]) for name, number in _BOOLS.items()},
        **{name: Endpoint(number, TYPES["uint8"]) for name, number in _BYTES.items()},
        **{name: Endpoint(number, TYPES["uint32"]) for name, number in _WORDS.items()},
        FUNCTION: Endpoint(549, None),
    },
)


def read_endpoints(path: Path, place: SourceLocation) -> Endpoints:
    """Read the manufacturer's `flat_endpoints.json` of a firmware version.

    Raises InputError if the file cannot be read or lacks what the driver needs.
    """
    try:
        data = json.loads(read_file(path))
        firmware, hardware = str(data["fw_version"]).partition("-")[0], str(data["hw_version"])
        known = {name.removeprefix("axis0."): row for name, row in data["endpoints"].items() if name[:6] == "axis0."}
        table = {name: _endpoint(row) for name, row in known.items() if name in S1_0_6_10.table}
    except OSError as error:
        what = f"'{path}' cannot be read ({error.strerror}); use the manufacturer's flat_endpoints.json"
        raise InputError(what, place) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        what = f"'{path}' is not a flat_endpoints.json; download it with the manufacturer's firmware release"
        raise InputError(what, place) from error
    return Endpoints(firmware, hardware, table)


def _endpoint(row: Mapping[str, object]) -> Endpoint:
    """Raises KeyError for a type that does not fit a frame."""
    number = row["id"]
    if not isinstance(number, int) or not 0 <= number < 1 << 16:
        raise ValueError("an endpoint's number does not fit")
    return Endpoint(number, None if row["type"] == "function" else TYPES[str(row["type"])])
