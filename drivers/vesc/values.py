"""The measured values that a VESC reports, as its firmware lays them out (COMM_GET_VALUES and COMM_GET_VALUES_SETUP of
its comm/commands.c): the value with number k is there if bit k of the mask is set."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple


class ValueField(NamedTuple):
    """A quantity in steps of 1/steps of its unit; letters: of `struct`, several have the same value."""

    name: str
    letters: str
    steps: float


VALUES = (
    ValueField("temperature_drive", "h", 10),  # °C
    ValueField("temperature", "h", 10),  # of the motor
    ValueField("motor_current", "i", 100),  # A, positive while the drive feeds the motor
    ValueField("input_current", "i", 100),  # A, from the supply
    ValueField("direct_current", "i", 100),
    ValueField("current", "i", 100),  # torque-producing
    ValueField("duty", "h", 1000),
    ValueField("erpm", "i", 1),  # rpm of the field
    ValueField("voltage", "h", 10),  # V, of the supply
    ValueField("amp_hours", "i", 1e4),
    ValueField("amp_hours_charged", "i", 1e4),
    ValueField("watt_hours", "i", 1e4),
    ValueField("watt_hours_charged", "i", 1e4),
    ValueField("tachometer", "i", 1),  # sixths of a turn of the field
    ValueField("tachometer_abs", "i", 1),
    ValueField("fault", "B", 1),
    ValueField("angle", "i", 1e6),  # degrees
    ValueField("id", "B", 1),
    ValueField("temperature_drive", "hhh", 10),
    ValueField("direct_voltage", "i", 1e3),  # V
    ValueField("quadrature_voltage", "i", 1e3),
    ValueField("status", "B", 1),  # bit 0: its timeout has tripped
)
SETUP_VALUES = (  # of the drive and of the vehicle that it drives; speeds and distances are 0: it drives none
    ValueField("temperature_drive", "h", 10),
    ValueField("temperature", "h", 10),
    ValueField("motor_current", "i", 100),
    ValueField("input_current", "i", 100),
    ValueField("duty", "h", 1000),
    ValueField("erpm", "i", 1),
    ValueField("speed", "i", 1e3),
    ValueField("voltage", "h", 10),
    ValueField("battery_level", "h", 1e3),
    ValueField("amp_hours", "i", 1e4),
    ValueField("amp_hours_charged", "i", 1e4),
    ValueField("watt_hours", "i", 1e4),
    ValueField("watt_hours_charged", "i", 1e4),
    ValueField("distance", "i", 1e3),
    ValueField("distance_abs", "i", 1e3),
    ValueField("angle", "i", 1e6),
    ValueField("fault", "B", 1),
    ValueField("id", "B", 1),
    ValueField("drives", "B", 1),
    ValueField("watt_hours_left", "i", 1e3),
    ValueField("odometer", "I", 1),
    ValueField("uptime", "I", 1e3),  # s
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


def encode(quantities: Mapping[str, float], mask: int = ALL, fields: Sequence[ValueField] = VALUES) -> bytes:
    """The values of a mask; one that is not given is 0, one beyond its range the end of it."""
    return b"".join(_field(field, quantities.get(field.name, 0.0)) for field in _selected(fields, mask))


def _selected(fields: Sequence[ValueField], mask: int) -> list[ValueField]:
    return [field for k, field in enumerate(fields) if mask >> k & 1]


def _field(field: ValueField, value: float) -> bytes:
    low, high = _RANGES[field.letters[0]]
    steps = min(max(low, value * field.steps), high)  # in this order a value that is not a number is the least one
    return struct.pack(f">{field.letters}", *[round(steps)] * len(field.letters))
