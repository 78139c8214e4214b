"""Frames of the moteus register protocol: bytes <-> subframes, and the frames of a control cycle in a fixed shape.

Source: mjbots' CAN protocol (docs/protocol/can.md) and the multiplex format it refers to. Numbers are little-endian; a
frame is a sequence of subframes, padded with NOPs to a length of CAN FD. All functions are pure and total.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from cosim.core.units import TURN
from cosim.plugins.drivers.moteus.registers import TEMPERATURE, VOLTAGE, Mode, to_raw

INT8, INT16, INT32, FLOAT = range(4)
NOP = 0x50
BROADCAST = 0x7F
REPLY_BIT = 0x8000  # in the arbitration id: requests an answer
CLIENT_DATA, SERVER_DATA, CLIENT_POLL, SERVER_DATA_FLOW, CLIENT_POLL_FLOW = range(0x40, 0x45)

_LETTERS = "bhif"
_SIZES = (1, 2, 4, 4)
_VALUES = [[struct.Struct(f"<{count}{letter}") for count in range(65)] for letter in _LETTERS]
_LENGTHS = [min(n for n in (*range(9), 12, 16, 20, 24, 32, 48, 64) if n >= length) for length in range(65)]


def arbitration(source: int, destination: int, prefix: int = 0, reply: bool = False) -> int:
    """prefix: 13 bits, source and destination: 7 bits each."""
    return prefix << 16 | (REPLY_BIT if reply else 0) | source << 8 | destination


def pad(data: bytes) -> bytes:
    """data (at most 64 bytes), with NOPs up to the next length of a CAN FD frame."""
    return data.ljust(_LENGTHS[len(data)], b"\x50")


# --- any frame ----------------------------------------------------------------------------------


class Write(NamedTuple):
    """A subframe that writes consecutive registers."""

    register: int
    resolution: int
    values: tuple[float, ...]  # raw, of consecutive registers


class Read(NamedTuple):
    """A subframe that reads consecutive registers."""

    register: int
    resolution: int
    length: int  # registers
    brief: bool  # the length is in the type of the subframe


class Reply(NamedTuple):
    """A subframe with the values of registers that were read."""

    register: int
    resolution: int
    values: tuple[float, ...]


class Failure(NamedTuple):
    """A register that could not be written or read; code 1: unknown, 2: not writable, or no space for the answer."""

    register: int
    code: int
    reading: bool


class Tunnel(NamedTuple):
    """Text of a channel, or a poll for at most `limit` bytes of it; packet: its number, for flow control."""

    kind: int  # CLIENT_DATA … CLIENT_POLL_FLOW
    channel: int
    data: bytes
    limit: int
    packet: int


Subframe = Write | Read | Reply | Failure | Tunnel


def varuint(value: int) -> bytes:
    if value < 0x80:
        return bytes((value,))
    return bytes((value & 0x7F | 0x80,)) + varuint(value >> 7)


def _varuint(data: bytes, at: int) -> tuple[int, int]:
    """(value, index after it). Raises IndexError at the end of the data, ValueError after five bytes."""
    value = data[at]
    if value < 0x80:
        return value, at + 1
    value &= 0x7F
    for k in range(1, 5):
        byte = data[at + k]
        value |= (byte & 0x7F) << 7 * k
        if byte < 0x80:
            return value, at + k + 1
    raise ValueError


def decode(data: bytes) -> tuple[list[Subframe], bool]:
    """(subframes, whether all bytes were decoded), for any bytes.

    As in the drive, decoding ends at the first truncated or unknown subframe; the subframes before it are valid, and so
    are the complete values of a truncated write.
    """
    found: list[Subframe] = []
    at, end = 0, len(data)
    try:
        while at < end:
            kind = data[at]
            if kind == NOP:
                at += 1
            elif kind < 0x30:
                count, resolution = kind & 3, kind >> 2 & 3
                register = data[at + 1]
                if count and register < 0x80:
                    at += 2
                else:
                    at += 1
                    if not count:
                        count, at = _varuint(data, at)
                    register, at = _varuint(data, at)
                if 0x10 <= kind < 0x20:
                    found.append(Read(register, resolution, count, kind & 3 != 0))
                    continue
                whole = min(count, (end - at) // _SIZES[resolution])
                values = _VALUES[resolution][whole].unpack_from(data, at)
                at += whole * _SIZES[resolution]
                found.append((Reply if kind & 0x20 else Write)(register, resolution, values))
                if whole < count:
                    return found, False
            elif kind in (0x30, 0x31):
                register, at = _varuint(data, at + 1)
                code, at = _varuint(data, at)
                found.append(Failure(register, code, kind == 0x31))
            elif CLIENT_DATA <= kind <= CLIENT_POLL_FLOW:
                packet = size = 0
                channel, at = _varuint(data, at + 1)
                if kind >= SERVER_DATA_FLOW:
                    packet, at = data[at], at + 1
                size, at = _varuint(data, at)
                text = b""
                if kind not in (CLIENT_POLL, CLIENT_POLL_FLOW):
                    text, at = data[at : at + size], at + size
                    if at > end:
                        return found, False
                found.append(Tunnel(kind, channel, text, size, packet))
            else:
                return found, False
    except (IndexError, ValueError):
        return found, False
    return found, True


def _registers(base: int, register: int, resolution: int, count: int, brief: bool) -> bytes:
    kind = base | resolution << 2
    return (bytes((kind | count,)) if brief else bytes((kind,)) + varuint(count)) + varuint(register)


def write(register: int, resolution: int, values: Sequence[float]) -> bytes:
    """Subframe that writes raw values to consecutive registers."""
    head = _registers(0x00, register, resolution, len(values), 0 < len(values) < 4)
    return head + _VALUES[resolution][len(values)].pack(*values)


def read(register: int, resolution: int, count: int = 1) -> bytes:
    return _registers(0x10, register, resolution, count, 0 < count < 4)


def reply(query: Read, values: Sequence[float]) -> bytes:
    """The answer to a query, with its form of the length."""
    head = _registers(0x20, query.register, query.resolution, query.length, query.brief)
    return head + _VALUES[query.resolution][query.length].pack(*values)


def reply_size(query: Read) -> int:
    """Bytes of the answer to a query."""
    count = 0 if query.brief else len(varuint(query.length))
    return 1 + count + len(varuint(query.register)) + query.length * _SIZES[query.resolution]


def failure(register: int, code: int, reading: bool) -> bytes:
    return bytes((0x31 if reading else 0x30,)) + varuint(register) + varuint(code)


def tunnel(kind: int, channel: int, data: bytes, packet: int = 0) -> bytes:
    """Text of a channel."""
    number = bytes((packet,)) if kind >= SERVER_DATA_FLOW else b""
    return bytes((kind,)) + varuint(channel) + number + varuint(len(data)) + data


def poll(channel: int, limit: int) -> bytes:
    """Request at most `limit` bytes of a channel."""
    return bytes((CLIENT_POLL,)) + varuint(channel) + varuint(limit)


# --- the frames of a control cycle ----------------------------------------------------------------

_QUERY = read(0x000, INT8) + read(0x001, FLOAT, 3) + read(0x00D, INT8, 3)
QUERY = pad(_QUERY)  # mode; position, velocity, torque; voltage, temperature, fault
STOP = pad(write(0x000, INT8, (Mode.STOPPED,)) + _QUERY)  # also clears a fault and a tripped watchdog
BRAKE = pad(write(0x000, INT8, (Mode.BRAKE,)) + _QUERY)  # phases shorted; clears neither a fault nor a tripped watchdog

_COMMAND_HEAD = write(0x000, INT8, (Mode.POSITION,)) + write(0x020, FLOAT, [0.0] * 6)[:3]
_REPLY = struct.Struct("<HbH3fHbbb")
_REPLY_HEADS = 0x0021, 0x012F, 0x0D23
_SCALE = 1.0 / TURN


def command_tail(watchdog: float, integral: bool) -> bytes:
    """The end of every command: the watchdog [s, steps of 1 ms], trajectory limits off, the drive's integral term or
    none, the query."""
    steps = min(max(round(watchdog * 1e3), 1), 32767)
    return pad(bytes(30) + write(0x027, INT16, (steps, -1, -1)) + write(0x02B, INT8, (127 * integral,)) + _QUERY)[30:]


def command(tail: bytes) -> bytes:
    """A command in position mode whose six numbers are 0, 48 bytes: position [turns; NaN means the measured one],
    velocity [turns/s], effort [N·m], kp_scale, kd_scale and max_effort [N·m], 32-bit floats from byte 6 on.

    The drive gives kp_scale · kp (position − q) + kd_scale · kd (velocity − v) + effort within ± max_effort, kp and kd
    as configured in it.
    """
    return _COMMAND_HEAD + bytes(24) + tail


class ServoFeedback(NamedTuple):
    """The measured state of a drive, as its answers hold it."""

    mode: int
    position: float  # rad
    velocity: float  # rad/s
    effort: float  # N·m
    voltage: float  # V, steps of 0.5
    temperature: float  # °C, steps of 1
    fault: int


def encode_feedback(feedback: ServoFeedback) -> bytes:
    """The answer of a drive to QUERY, STOP, BRAKE or a command, 24 bytes."""
    mode, position, velocity, effort, voltage, temperature, fault = feedback
    head1, head2, head3 = _REPLY_HEADS
    coarse = (int(to_raw(VOLTAGE, INT8, voltage)), int(to_raw(TEMPERATURE, INT8, temperature)))
    data = _REPLY.pack(head1, mode, head2, position * _SCALE, velocity * _SCALE, effort, head3, *coarse, fault)
    return data + b"\x50\x50"
