"""Where the numbers of a cycle are in the frames of a bus.

A frame is a template of bytes with fields; the numbers of the fields are in an array per joint. The compiled driver
packs and unpacks frames by these tables, `pack` and `unpack` do the same in Python. All numbers are little-endian.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

from cosim.drivers.transport import CanFrame
from cosim.types import Array


class Kind(IntEnum):
    """How a field holds its number."""

    FLOAT32, INT8, INT16, INT32, UINT8, UINT16, UINT32 = range(7)


_FORMATS = {kind: struct.Struct("<" + letter) for kind, letter in zip(Kind, "fbhiBHI", strict=True)}


class Field(NamedTuple):
    """A number in a frame. number: its place in the array of its joint."""

    at: int  # bytes from the beginning of the data
    kind: Kind
    number: int


class FrameLayout(NamedTuple):
    """A frame of a joint. Of a received one the bytes outside of its fields must be those of the template, except for
    `padding` bytes at its end; its drive sends it in every cycle, and its arrival is the time of the measurement."""

    joint: int  # index
    id: int
    data: bytes
    fields: tuple[Field, ...]
    extended: bool = False
    fd: bool = False
    switched: bool = False
    padding: int = 0

    @property
    def mask(self) -> bytes:
        """255 where the bytes must be those of the template."""
        mask = bytearray(b"\xff" * len(self.data))
        for field in self.fields:
            size = _FORMATS[field.kind].size
            mask[field.at : field.at + size] = bytes(size)
        for k in range(len(mask) - self.padding, len(mask)):
            mask[k] = 0
        return bytes(mask)


class CycleLayout(NamedTuple):
    """What a family supplies for its cycle in machine code, while the motors are on."""

    command_function: int  # address, see `exchange`
    state_function: int  # address, see `exchange`
    settings: Array  # (n, any), for these functions
    sent: Sequence[FrameLayout]
    received: Sequence[FrameLayout]
    polls: Sequence[CanFrame]  # request feedback without feeding a watchdog
    stops: Sequence[CanFrame]  # switch all motors off


def pack(layout: FrameLayout, numbers: Array) -> bytes:
    """The data of a frame with these numbers of its joint. Raises struct.error or OverflowError where one does not
    fit."""
    data = bytearray(layout.data)
    for at, kind, number in layout.fields:
        value = float(numbers[number])
        _FORMATS[kind].pack_into(data, at, value if kind is Kind.FLOAT32 else int(value))
    return bytes(data)


def unpack(layout: FrameLayout, data: bytes, numbers: Array) -> bool:
    """Set the numbers of the joint from the data of a frame; False, and nothing is set, if it is another frame."""
    size = len(layout.data) - layout.padding
    if len(data) < size or any((a ^ b) & m for a, b, m in zip(data[:size], layout.data, layout.mask, strict=False)):
        return False
    for at, kind, number in layout.fields:
        (numbers[number],) = _FORMATS[kind].unpack_from(data, at)
    return True


def sizes(layouts: Sequence[FrameLayout]) -> int:
    """Numbers per joint that the fields of these layouts need."""
    return 1 + max((field.number for layout in layouts for field in layout.fields), default=-1)
