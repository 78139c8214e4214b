"""The measured values that a VESC reports, as its firmware lays them out (COMM_GET_VALUES and COMM_GET_VALUES_SETUP of
its comm/commands.c): the value with number k is there if bit k of the mask is set."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple


class Field(NamedTuple):
    """A quantity in steps of 1/steps of its unit; letters: of `struct`, several have the same value."""

    name: str
    letters: str
    steps: float


VALUES = (
    Field("temperature_drive", "h", 10),  # °C
    Field("temperature", "h", 10),  # of the motor
    Field("motor_current", "i", 100),  # A, positive while the drive feeds the motor
    Field("input_current", "i", 100),  # A, from the supply
    Field("direct_current", "i", 100),
    Field("current", "i", 100),  # torque-producing
    Field("duty", "h", 1000),
    Field("erpm", "i", 1),  # rpm of the field
    Field("voltage", "h", 10),  # V, of the supply
    Field("amp_hours", "i", 1e4),
    Field("amp_hours_charged", "i", 1e4),
    Field("watt_hours", "i", 1e4),
    Field("watt_hours_charged", "i", 1e4),
    Field("tachometer", "i", 1),  # sixths of a turn of the field
    Field("tachometer_abs", "i", 1),
    Field("fault", "B", 1),
    Field("angle", "i", 1e6),  # degrees
    Field("id", "B", 1),
    Field("temperature_drive", "hhh", 10),
    Field("direct_voltage", "i", 1e3),  # V
    Field("quadrature_voltage", "i", 1e3),
    Field("status", "B", 1),  # bit 0: its timeout has tripped
)
SETUP_VALUES = (  # of the drive and of the vehicle that it drives; speeds and distances are 0: it drives none
    Field("temperature_drive", "h", 10),
    Field("temperature", "h", 10),
    Field("motor_current", "i", 100),
    Field("input_current", "i", 100),
    Field("duty", "h", 1000),
    Field("erpm", "i", 1),
    Field("speed", "i", 1e3),
    Field("voltage", "h", 10),
    Field("battery_level", "h", 1e3),
    Field("amp_hours", "i", 1e4),
    Field("amp_hours_charged", "i", 1e4),
    Field("watt_hours", "i", 1e4),
    Field("watt_hours_charged", "i", 1e4),
    Field("distance", "i", 1e3),
    Field("distance_abs", "i", 1e3),
    Field("angle", "i", 1e6),
    Field("fault", "B", 1),
    Field("id", "B", 1),
    Field("drives", "B", 1),
    Field("watt_hours_left", "i", 1e3),
    Field("odometer", "I", 1),
    Field("uptime", "I", 1e3),  # s
)
ALL = 0xFFFFFFFF
_RANGES = {"h": (-(1 << 15), (1 << 15) - 1), "i": (-(1 << 31), (1 << 31) - 1), "B": (0, 255), "I": (0, (1 << 32) - 1)}


def mask_of(*names: str) -> int:
    """The mask of GET_VALUES_SELECTIVE that selects these values."""
    return sum(1 << k for k, field in enumerate(VALUES) if field.name in names)


@cache
def layout(mask: int) -> struct.Struct:
    """Of the VALUES of a mask."""
    return struct.Struct(">" + "".join(field.letters for field in _selected(VALUES, mask)))


def encode(quantities: Mapping[str, float], mask: int = ALL, fields: Sequence[Field] = VALUES) -> bytes:
    """The values of a mask; one that is not given is 0, one beyond its range the end of it."""
    return b"".join(_field(field, quantities.get(field.name, 0.0)) for field in _selected(fields, mask))


def _selected(fields: Sequence[Field], mask: int) -> list[Field]:
    return [field for k, field in enumerate(fields) if mask >> k & 1]


def _field(field: Field, value: float) -> bytes:
    low, high = _RANGES[field.letters[0]]
    steps = min(max(low, value * field.steps), high)  # in this order a value that is not a number is the least one
    return struct.pack(f">{field.letters}", *[round(steps)] * len(field.letters))
