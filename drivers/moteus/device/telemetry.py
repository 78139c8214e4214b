"""Telemetry of an emulated drive: named records with a schema, in the binary form of mjlib's telemetry or as text.

A schema is an object (type 16) of fields: flags, name, aliases, type, no default; a field of type 0 ends it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import NamedTuple

from cosim.plugins.drivers.moteus.device.servo import Servo

# type: (its bytes in a schema, format of its value)
_TYPES: dict[str, tuple[bytes, str]] = {
    "bool": (b"\x02", "?"),
    "u8": (b"\x04\x01", "B"),
    "u32": (b"\x04\x04", "I"),
    "u64": (b"\x04\x08", "Q"),
    "f32": (b"\x07", "f"),
}


class _Field(NamedTuple):
    name: str
    type: str
    length: int  # 0: a single value
    value: Callable[[Servo], float | Sequence[float]]


CHANNELS: dict[str, tuple[_Field, ...]] = {
    "firmware": (
        _Field("version", "u32", 0, lambda s: 0x010100),
        _Field("serial_number", "u32", 3, lambda s: s.serial),
        _Field("model", "u32", 0, lambda s: 0),
        _Field("family", "u8", 0, lambda s: 0),
        _Field("hwrev", "u8", 0, lambda s: 8),
    ),
    "git": (
        _Field("hash", "u8", 20, lambda s: bytes(20)),
        _Field("dirty", "bool", 0, lambda s: False),
        _Field("timestamp", "u64", 0, lambda s: 0),
    ),
    "servo_stats": (
        _Field("mode", "u8", 0, lambda s: s.mode),
        _Field("fault", "u8", 0, lambda s: s.fault),
        _Field("bus_V", "f32", 0, lambda s: s.motor.voltage),
        _Field("fet_temp_C", "f32", 0, lambda s: s.motor.temperature),
        _Field("filt_bus_V", "f32", 0, lambda s: s.motor.voltage),
        _Field("d_A", "f32", 0, lambda s: s.dq_current().real),
        _Field("q_A", "f32", 0, lambda s: s.dq_current().imag),
        _Field("position", "f32", 0, lambda s: s.encoder + s.offset),
        _Field("velocity", "f32", 0, lambda s: s.velocity),
        _Field("torque_Nm", "f32", 0, lambda s: s.motor.effort),
        _Field("meas_ind_integrator", "f32", 0, lambda s: s.inductance.sum),
    ),
    "motor_position": (
        _Field("homed", "u8", 0, lambda s: s.home),
        _Field("position", "f32", 0, lambda s: s.encoder + s.offset),
        _Field("velocity", "f32", 0, lambda s: s.velocity),
        _Field("error", "u8", 0, lambda s: int(s.encoder_lost)),
        _Field("theta_valid", "bool", 0, lambda s: not s.encoder_lost),
    ),
}


def _string(text: str) -> bytes:
    return bytes((len(text),)) + text.encode()


def schema(name: str) -> bytes:
    """The schema of a channel."""
    out = b"\x10\x00"
    for field in CHANNELS[name]:
        array = bytes((19, field.length)) if field.length else b""
        out += b"\x00" + _string(field.name) + b"\x00" + array + _TYPES[field.type][0] + b"\x00"
    return out + b"\x00\x00\x00\x00\x00"


def _values(servo: Servo, field: _Field) -> Sequence[float]:
    value = field.value(servo)
    return value if isinstance(value, Sequence) else (value,)


def binary(servo: Servo, name: str) -> bytes:
    """The record of a channel, in the form of its schema."""
    return b"".join(
        struct.pack(f"<{field.length or 1}{_TYPES[field.type][1]}", *_values(servo, field)) for field in CHANNELS[name]
    )


def text(servo: Servo, name: str) -> bytes:
    """The record of a channel as text, each value in its own line."""
    lines = []
    for field in CHANNELS[name]:
        for k, value in enumerate(_values(servo, field)):
            formatted = f"{value:f}" if field.type == "f32" else f"{value:d}"
            lines.append(f"{name}.{field.name}{f'.{k}' if field.length else ''} {formatted}\r\n")
    return "".join(lines).encode()
