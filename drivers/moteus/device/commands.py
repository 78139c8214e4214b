"""The fields of a command: their registers and their default values."""

from __future__ import annotations

import math

_ROWS: tuple[tuple[int, str], ...] = (  # first register, the fields from there on
    (0x010, "pwm_a pwm_b pwm_c"),
    (0x014, "voltage_a voltage_b voltage_c"),
    (0x018, "theta voltage d_voltage q_voltage q_current d_current theta_rate"),
    (0x020, "position velocity feedforward kp_scale kd_scale max_torque stop_position timeout"),
    (0x028, "velocity_limit accel_limit fixed_voltage ilimit_scale fixed_current ignore_bounds"),
    (0x040, "lower upper feedforward kp_scale kd_scale max_torque timeout ilimit_scale ignore_bounds"),
)
COMMANDS = {first + k: field for first, fields in _ROWS for k, field in enumerate(fields.split())}

NOTHING: dict[str, float] = (
    dict.fromkeys(("mode", "axis", *COMMANDS.values()), 0.0)
    | dict.fromkeys(("stop_position", "velocity_limit", "accel_limit", "fixed_voltage", "fixed_current"), math.nan)
    | {"period": 4.0, "kp_scale": 1.0, "kd_scale": 1.0, "ilimit_scale": 1.0, "max_torque": 100.0}
)
