"""Bytes of VESC firmware 6 and 7: commands and answers, which are the content of packets and frames, and setpoints.

The first byte of a command is its number (`COMM_PACKET_ID` of the firmware's datatypes.h, here without COMM_); numbers
are big endian. A setpoint has its own CAN frame.
"""

from __future__ import annotations

import struct

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
COMMANDS = {kind: command for command, kind, _ in SETPOINTS.values()}  # kind of CAN frame -> command
LAYOUTS = {mask: values.layout(mask) for mask in (VALUES, VALUES | VALUES_ID)}
LENGTH_WITH_ID = 5 + LAYOUTS[VALUES | VALUES_ID].size  # bytes of an answer
HEADS = {  # the beginnings of other answers, behind their first byte
    FW_VERSION: struct.Struct(">BB"),  # major, minor
    GET_MCCONF: struct.Struct(">IBBBBff"),  # signature, modes, largest current: motoring, braking
    GET_APPCONF: struct.Struct(">IBIf"),  # signature, id, timeout [ms], brake current
    GET_LIMITS: struct.Struct(">10fB"),  # scales of both currents, least and largest rpm of the field, …, poles
}

LIMITS = struct.Struct(">BBBBB10f")  # SET_LIMITS; store, forward, acknowledge, divide: 0 or 1; as in GET_LIMITS


def decode_head(content: bytes) -> tuple[int, tuple[float, ...]] | None:
    """(command, what is in HEADS); None for another answer, or a shorter one."""
    layout = HEADS.get(content[0]) if content else None
    return None if layout is None or len(content) <= layout.size else (content[0], layout.unpack_from(content, 1))


def setpoint_frame(receiver: int, mode: str) -> CanFrame:
    """A setpoint of 0."""
    return extended_frame(SETPOINTS[mode][1], receiver, bytes(4))
