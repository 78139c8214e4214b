"""Bytes of VESC firmware 6 and 7: commands and answers, and how they are carried on CAN and on a UART.

The first byte of a command is its number (`COMM_PACKET_ID` of the firmware's datatypes.h, here without COMM_); numbers
are big endian. On a UART a packet is 2, length u8 (or 3, length u16), content, CRC-16/XMODEM of the content, 3. On CAN
the frames have 29 bits of identifier, kind · 256 + receiver: setpoints, short content, and content in parts.
"""

from __future__ import annotations

import struct
from binascii import crc_hqx
from typing import NamedTuple

from cosim.drivers.transport import CanFrame

FW_VERSION, GET_MCCONF, GET_APPCONF, REBOOT, ALIVE, FORWARD_CAN, GET_VALUES = 0, 14, 17, 29, 30, 34, 50
SET_LIMITS, GET_LIMITS = 48, 91  # COMM_SET_MCCONF_TEMP, COMM_GET_MCCONF_TEMP
FILL, FILL_LONG, PROCESS, SHORT = 5, 6, 7, 8  # kinds of CAN frames, CAN_PACKET_ID
SHORT_SIZE, LONGEST = 6, 512  # bytes of content: of one frame, of a packet
ASK, TELL = 0, 1  # content is to be answered, content is an answer
SETPOINTS = {  # mode -> command, kind of CAN frame, steps per A, rpm of the field, and degree
    "effort": (6, 1, 1e3),
    "velocity": (8, 3, 1.0),
    "position": (9, 4, 1e6),
}
# GET_VALUES_SELECTIVE: bit 1 temperature of the motor, 5 torque-producing current, 7 rpm of the field, 15 fault, 16
# angle, 17 id of the drive, 21 status
VALUES, VALUES_ID = 1 << 1 | 1 << 5 | 1 << 7 | 1 << 15 | 1 << 16 | 1 << 21, 1 << 17
LAYOUTS = {VALUES: struct.Struct(">hiiBiB"), VALUES | VALUES_ID: struct.Struct(">hiiBiBB")}
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


def encode_values(values: Values, mask: int) -> bytes:
    """The answer to GET_VALUES with this mask, one of LAYOUTS."""
    scaled = (values.temperature * 10, values.current * 100, values.erpm, values.fault, values.angle * 1e6)
    motion = [round(value) for value in scaled]
    tail = [] if values.id is None else [values.id]
    return struct.pack(">BI", GET_VALUES, mask) + LAYOUTS[mask].pack(*motion, *tail, values.timed_out)


def decode_values(content: bytes) -> Values | None:
    """None for anything but a complete answer to GET_VALUES with a mask of LAYOUTS."""
    layout = LAYOUTS.get(int.from_bytes(content[1:5], "big"))
    if content[:1] != bytes([GET_VALUES]) or layout is None or len(content) != 5 + layout.size:
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


# --- UART -----------------------------------------------------------------------------------------


def packet(content: bytes) -> bytes:
    size = len(content)
    head = bytes([2, size]) if size < 256 else b"\x03" + size.to_bytes(2, "big")
    return head + content + crc_hqx(content, 0).to_bytes(2, "big") + b"\x03"


def with_valid_checksum(data: bytes) -> bytes:
    """A packet of this content, whatever its length and checksum."""
    start = 3 if data[:1] == b"\x03" else 2
    return packet(data[start:-3]) if 0 < len(data) - start - 3 <= LONGEST else data


class PacketReader:
    """Finds packets in chunks of bytes. lost: counter of spoilt ones."""

    def __init__(self) -> None:
        self.lost, self._rest = 0, b""

    def feed(self, chunk: bytes) -> list[bytes]:
        """The contents that the chunk completes."""
        data, found, spoilt = self._rest + chunk, [], False
        while data:
            start = data[0]
            size = int.from_bytes(data[1:start], "big") if len(data) >= start else 1
            if start not in (2, 3) or not 0 < size <= LONGEST:
                data, spoilt = data[1:], True
                continue
            end = start + size + 3
            if len(data) < max(end, start):
                break
            content = data[start : start + size]
            good = data[start + size : end] == crc_hqx(content, 0).to_bytes(2, "big") + b"\x03"
            if good:
                found.append(content)
            data, spoilt = data[end if good else 1 :], spoilt or not good
        self.lost, self._rest = self.lost + spoilt, data
        return found


# --- CAN ------------------------------------------------------------------------------------------


def frames(receiver: int, sender: int, content: bytes, what: int) -> list[CanFrame]:
    """Content in one frame or in parts; what: ASK or TELL."""
    head, size = bytes([sender, what]), len(content)
    if size <= SHORT_SIZE:
        return [_frame(SHORT, receiver, head + content)]
    parts, at = [], 0
    while at < size:
        kind, width, step = (FILL, 1, 7) if at < 256 else (FILL_LONG, 2, 6)
        parts.append(_frame(kind, receiver, at.to_bytes(width, "big") + content[at : at + step]))
        at += step
    tail = head + size.to_bytes(2, "big") + crc_hqx(content, 0).to_bytes(2, "big")
    return [*parts, _frame(PROCESS, receiver, tail)]


def setpoint_frame(receiver: int, mode: str, value: float) -> CanFrame:
    """See `setpoint`."""
    return _frame(SETPOINTS[mode][1], receiver, setpoint(mode, value)[1:])


def _frame(kind: int, receiver: int, data: bytes) -> CanFrame:
    return CanFrame(kind << 8 | receiver, data, extended=True)


class Content(NamedTuple):
    receiver: int
    sender: int
    what: int  # ASK or TELL
    data: bytes


class FrameReader:
    """Puts content together. lost: counter of what could not be."""

    def __init__(self) -> None:
        self.lost = 0
        self._parts: dict[int, bytearray] = {}  # by receiver

    def complete(self, frame: CanFrame) -> Content | None:
        """What the frame completes."""
        kind, receiver, data = frame.id >> 8, frame.id & 0xFF, frame.data
        if not frame.extended or frame.remote or kind not in (FILL, FILL_LONG, PROCESS, SHORT):
            return None
        part = self._parts.setdefault(receiver, bytearray(LONGEST))
        if kind == SHORT and len(data) > 2:
            return Content(receiver, data[0], data[1], data[2:])
        if kind == PROCESS and len(data) == 6:
            content = bytes(part[: int.from_bytes(data[2:4], "big")])
            if content and crc_hqx(content, 0).to_bytes(2, "big") == data[4:]:
                return Content(receiver, data[0], data[1], content)
        width = {FILL: 1, FILL_LONG: 2}.get(kind, 8)
        at = int.from_bytes(data[:width], "big")
        if len(data) <= width or at + len(data) - width > LONGEST:
            self.lost += 1
        else:
            part[at : at + len(data) - width] = data[width:]
        return None
