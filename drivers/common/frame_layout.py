"""Where the numbers of a cycle are in the frames of a line, and which frames a cycle has.

A frame has fields at fixed places; the numbers of the fields are in an array per joint. The compiled driver stores and
reads them by these tables, `pack` and `unpack` do the same in Python. All numbers are little-endian.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import NamedTuple

from cosim.core.types import Array
from cosim.plugins.drivers.transport.compiled_link import LinkFrame


class Kind(IntEnum):
    """How a field holds its number."""

    FLOAT32, INT8, INT16, INT32, UINT8, UINT16, UINT32 = range(7)


_FORMATS = {kind: struct.Struct("<" + letter) for kind, letter in zip(Kind, "fbhiBHI", strict=True)}


class FrameField(NamedTuple):
    """A number in a frame. number: its place in the array of its joint, which is `joint` places after the joint of the
    frame."""

    at: int  # bytes from the beginning of the data
    kind: Kind
    number: int
    joint: int = 0


class SentFrame(NamedTuple):
    """A frame to the drive of a joint: a template whose fields are set in every cycle. It is sent in the cycles whose
    number is `phase` modulo `period`."""

    frame: LinkFrame
    joint: int = 0  # index
    fields: tuple[FrameField, ...] = ()
    period: int = 1
    phase: int = 0


class Role(IntEnum):
    """MEASUREMENT: awaited in every cycle, its arrival is the time of the measurement; ANSWER: awaited after commands;
    NOTICE: not awaited."""

    MEASUREMENT, ANSWER, NOTICE = range(3)


class ReceivedFrame(NamedTuple):
    """A frame from the drive of a joint."""

    frame: LinkFrame  # its data, of this length or longer
    joint: int
    fields: tuple[FrameField, ...]
    role: Role = Role.MEASUREMENT
    fixed: tuple[slice, ...] = ()  # bytes that equal `frame`, or else it is damaged
    exact: bool = False  # it is as long as `frame`
    longest_silence_ns: int = 0  # between two of them; 0: any


class CycleLayout(NamedTuple):
    """What a family supplies for its cycle in machine code, while the motors are on."""

    command_function: int  # address, see `exchange`
    state_function: int  # address, see `exchange`
    settings: Array  # (n, any), for these functions
    sent: Sequence[SentFrame]  # in this order
    received: Sequence[ReceivedFrame]
    polls: Sequence[LinkFrame]  # request measurements; on a half-duplex link in every cycle
    stops: Sequence[LinkFrame]  # switch all motors off
    numbers: Array | None = None  # (n, any) received numbers at the beginning
    # where requests feed the drives' watchdogs: from and until how long after the last command none is sent
    quiet_ns: tuple[int, int] = (0, 0)


def pack(sent: SentFrame, numbers: Array) -> bytes:
    """The data of a frame with these numbers of its joint. Raises struct.error or OverflowError where one does not
    fit."""
    data = bytearray(sent.frame.data)
    for at, kind, number, _ in sent.fields:
        value = float(numbers[number])
        _FORMATS[kind].pack_into(data, at, value if kind is Kind.FLOAT32 else int(value))
    return bytes(data)


def unpack(received: ReceivedFrame, data: bytes, numbers: Array) -> bool:
    """Set the numbers of the joint from the data of a frame; False, and nothing is set, if it is damaged."""
    template = received.frame.data
    if len(data) < len(template) or (received.exact and len(data) != len(template)):
        return False
    if any(data[part] != template[part] for part in received.fixed):
        return False
    for at, kind, number, _ in received.fields:
        (numbers[number],) = _FORMATS[kind].unpack_from(data, at)
    return True


def count_numbers(frames: Iterable[SentFrame | ReceivedFrame]) -> int:
    """Numbers per joint that the fields of these frames need."""
    return 1 + max((field.number for frame in frames for field in frame.fields), default=-1)
