"""Messages of Protobuf that differ in their numbers and times alone, so that numpy fills in many of them together."""

from __future__ import annotations

import struct
from typing import NamedTuple

import numpy as np

from cosim.core.recordings.protobuf_wire import part, varint

_DOUBLE, _VARINT = 1, 0  # types on the wire
_GROUPS = 5  # of 7 bits, that a number of a time always has here: 2**35 s, 10**9 ns
_SECONDS, _NANOS = 1, 2 + _GROUPS  # places in a time


class MessagePattern(NamedTuple):
    """An encoded message with the places where its numbers and times are written. numbers: places of its doubles;
    times: of its times."""

    data: bytes = b""
    numbers: tuple[int, ...] = ()
    times: tuple[int, ...] = ()

    def filled(self, stamps_ns: np.ndarray, numbers: np.ndarray) -> list[bytes]:
        """k messages. stamps_ns: (k,) since 1970; numbers: (k, n), in the order of the pattern."""
        k = len(stamps_ns)
        data = np.tile(np.frombuffer(self.data, np.uint8), (k, 1))
        where = (np.array(self.numbers, dtype=np.intp)[:, None] + np.arange(8)).ravel()
        data[:, where] = np.ascontiguousarray(numbers, "<f8").reshape(k, -1).view(np.uint8)
        for offset, value in ((_SECONDS, stamps_ns // 10**9), (_NANOS, stamps_ns % 10**9)):
            for start in self.times:
                data[:, start + offset : start + offset + _GROUPS] = _groups(value)
        return [row.tobytes() for row in data]


def _groups(values: np.ndarray) -> np.ndarray:
    """(k, _GROUPS): varints, all of the same length."""
    groups = values[:, None] >> 7 * np.arange(_GROUPS) & 0x7F
    groups[:, :-1] |= 0x80
    return groups


def constant(data: bytes) -> MessagePattern:
    return MessagePattern(data)


def number(field: int) -> MessagePattern:
    return MessagePattern(varint(field << 3 | _DOUBLE) + bytes(8), (1,))


def time(field: int) -> MessagePattern:
    """A `google.protobuf.Timestamp`."""
    content = b"".join(varint(k << 3 | _VARINT) + bytes(_GROUPS) for k in (1, 2))
    head = part(field, content)[: -len(content)]
    return MessagePattern(head + content, (), (len(head),))


def within(field: int, *patterns: MessagePattern) -> MessagePattern:
    """A message as a field of another one."""
    inner = joined(*patterns)
    return joined(constant(part(field, inner.data)[: -len(inner.data)]), inner)


def joined(*patterns: MessagePattern) -> MessagePattern:
    data, numbers, times = b"", [], []
    for pattern in patterns:
        numbers += [len(data) + place for place in pattern.numbers]
        times += [len(data) + place for place in pattern.times]
        data += pattern.data
    return MessagePattern(data, tuple(numbers), tuple(times))


def doubles(*values: float) -> bytes:
    """The fields 1, 2, … of a message."""
    return b"".join(bytes([k << 3 | _DOUBLE]) + struct.pack("<d", value) for k, value in enumerate(values, 1))
