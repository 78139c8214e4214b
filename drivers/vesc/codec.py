"""Bytes of VESC firmware 6 and 7: commands and answers, which are the content of packets and frames, and setpoints.

The first byte of a command is its number (`COMM_PACKET_ID` of the firmware's datatypes.h, here without COMM_); numbers
are big endian. A setpoint has its own CAN frame.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from cosim.plugins.drivers.transport import CanFrame
from cosim.plugins.drivers.transport.content_packets import extended_frame
from cosim.plugins.drivers.vesc import values

FW_VERSION, GET_VALUES, GET_MCCONF, GET_APPCONF, REBOOT, ALIVE, FORWARD_CAN = 0, 4, 14, 17, 29, 30, 34
GET_VALUES_SELECTIVE = 50
SET_LIMITS, GET_LIMITS = 48, 91  # COMM_SET_MCCONF_TEMP, COMM_GET_MCCONF_TEMP
SETPOINTS = {  # mode -> command, kind of CAN frame, steps per A, rpm of the field, and degree
    "effort": (6, 1, 1e3),
    "velocity": (8, 3, 1.0),
    "position": (9, 4, 1e6),
}
OTHER_SETPOINTS = {  # of other programs, as above, with steps per duty cycle; relative: to the current limit
    "duty": (5, 0, 1e5),
    "brake": (7, 2, 1e3),
    "handbrake": (10, 12, 1e3),
    "relative effort": (84, 10, 1e5),
    "relative brake": (None, 11, 1e5),
    "relative handbrake": (None, 13, 1e5),
}
VALUES, VALUES_ID = values.mask_of("temperature", "current", "erpm", "fault", "angle", "status"), values.mask_of("id")
LAYOUTS = {mask: values.layout(mask) for mask in (VALUES, VALUES | VALUES_ID)}
HEADS = {  # the beginnings of other answers, behind their first byte
    FW_VERSION: struct.Struct(">BB"),  # major, minor
    GET_MCCONF: struct.Struct(">IBBBBff"),  # signature, modes, largest current: motoring, braking
    GET_APPCONF: struct.Struct(">IBIf"),  # signature, id, timeout [ms], brake current
    GET_LIMITS: struct.Struct(">10fB"),  # scales of both currents, least and largest rpm of the field, …, poles
}

LIMITS = struct.Struct(">BBBBB10f")  # SET_LIMITS; store, forward, acknowledge, divide: 0 or 1; as in GET_LIMITS


class Values(NamedTuple):
    """°C, A, rpm of the field, code, degrees; id: None if it was not requested; timed_out: without commands."""

    temperature: float
    current: float
    erpm: float
    fault: int
    angle: float
    id: int | None
    timed_out: bool


def encode_values(measured: Values, mask: int) -> bytes:
    """The answer to GET_VALUES_SELECTIVE with this mask, one of LAYOUTS."""
    quantities = measured._asdict() | {"id": measured.id or 0, "status": measured.timed_out}
    return struct.pack(">BI", GET_VALUES_SELECTIVE, mask) + values.encode(quantities, mask)


def decode_values(content: bytes) -> Values | None:
    """None for anything but a complete answer to GET_VALUES_SELECTIVE with a mask of LAYOUTS."""
    layout = LAYOUTS.get(int.from_bytes(content[1:5], "big"))
    if content[:1] != bytes([GET_VALUES_SELECTIVE]) or layout is None or len(content) != 5 + layout.size:
        return None
    temperature, current, erpm, fault, angle, *tail = layout.unpack(content[5:])
    number = tail[0] if len(tail) == 2 else None
    return Values(temperature / 10, current / 100, erpm, fault, angle / 1e6, number, bool(tail[-1] & 1))


def decode_head(content: bytes) -> tuple[int, tuple[float, ...]] | None:
    """(command, what is in HEADS); None for another answer, or a shorter one."""
    layout = HEADS.get(content[0]) if content else None
    return None if layout is None or len(content) <= layout.size else (content[0], layout.unpack_from(content, 1))


def setpoint(mode: str, value: float) -> bytes:
    """A, rpm of the field or degrees, within 32 bits."""
    command, _, steps = SETPOINTS[mode]
    return struct.pack(">Bi", command, round(value * steps))


def setpoint_frame(receiver: int, mode: str, value: float) -> CanFrame:
    """See `setpoint`."""
    return extended_frame(SETPOINTS[mode][1], receiver, setpoint(mode, value)[1:])
