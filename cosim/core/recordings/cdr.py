"""Messages of ROS 2 in CDR, little endian: what differs between messages of one layout are numbers and times alone, so
numpy fills in many of them together.

Encoding: DDS-RTPS 2.5, section 10, and DDS-XTypes 1.3, section 7.4.1 (plain CDR, version 1): every number is aligned to
its size, counted from behind the head; strings and sequences begin with their length.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

HEAD = b"\0\1\0\0"  # plain CDR, little endian
STAMP = np.dtype([("sec", "<i4"), ("nanosec", "<u4")])  # builtin_interfaces/Time


class Doubles(NamedTuple):
    """`size` numbers of `float64` one after the other, from a place of a message on."""

    place: int
    size: int


class CdrPattern(NamedTuple):
    """An encoded message with the places where its numbers and times are written. stamps: places of its times."""

    data: bytes
    doubles: tuple[Doubles, ...] = ()
    stamps: tuple[int, ...] = ()

    @property
    def numbers(self) -> int:
        """How many numbers it takes."""
        return sum(run.size for run in self.doubles)

    def filled(self, stamps_ns: np.ndarray, numbers: np.ndarray) -> list[bytes]:
        """k messages. stamps_ns: (k,) since 1970; numbers: (k, n), in the order of the message."""
        k = len(stamps_ns)
        data = np.tile(np.frombuffer(self.data, np.uint8), (k, 1))
        begin = 0
        for place, count in self.doubles:
            own = np.ascontiguousarray(numbers[:, begin : begin + count], "<f8")
            data[:, place : place + 8 * count] = own.view(np.uint8)
            begin += count
        for place in self.stamps:
            data[:, place : place + STAMP.itemsize] = stamps(stamps_ns).view(np.uint8).reshape(k, -1)
        return [row.tobytes() for row in data]


def stamps(times_ns: np.ndarray) -> np.ndarray:
    """(k,) `STAMP` of times (k,) since 1970."""
    found = np.empty(len(times_ns), STAMP)
    found["sec"], found["nanosec"] = times_ns // 10**9, times_ns % 10**9
    return found


class CdrWriter:
    """Writes a message field by field. Numbers and times that are open are 0 in it."""

    def __init__(self) -> None:
        self._data, self._doubles, self._stamps = bytearray(HEAD), list[Doubles](), list[int]()

    def whole(self, value: int, size: int = 4) -> CdrWriter:
        """An integer of `size` bytes; negative ones are signed."""
        self._align(size)
        self._data += value.to_bytes(size, "little", signed=value < 0)
        return self

    def text(self, text: str) -> CdrWriter:
        """A string, up to its first NUL, which would end it."""
        content = text.partition("\0")[0].encode()
        self.whole(len(content) + 1)
        self._data += content + b"\0"
        return self

    def texts(self, texts: Sequence[str]) -> CdrWriter:
        """A sequence of strings."""
        self.whole(len(texts))
        for text in texts:
            self.text(text)
        return self

    def values(self, values: Sequence[float]) -> CdrWriter:
        """Numbers of `float64` that are known."""
        if len(values):
            self._align(8)
            self._data += struct.pack(f"<{len(values)}d", *values)
        return self

    def open_values(self, count: int) -> CdrWriter:
        """Numbers of `float64` that are open."""
        if count:
            self._align(8)
            self._doubles.append(Doubles(len(self._data), count))
            self._data += bytes(8 * count)
        return self

    def stamp(self, t_ns: int | None = None) -> CdrWriter:
        """A time since 1970; None: it is open."""
        self._align(4)
        if t_ns is None:
            self._stamps.append(len(self._data))
        seconds, nanoseconds = divmod(t_ns or 0, 10**9)
        return self.whole(seconds).whole(nanoseconds)

    def header(self, frame: str = "", t_ns: int | None = None) -> CdrWriter:
        """std_msgs/Header"""
        return self.stamp(t_ns).text(frame)

    @property
    def pattern(self) -> CdrPattern:
        return CdrPattern(bytes(self._data), tuple(self._doubles), tuple(self._stamps))

    @property
    def message(self) -> bytes:
        return bytes(self._data)

    def _align(self, size: int) -> None:
        self._data += bytes(-(len(self._data) - len(HEAD)) % size)


class CdrReader:
    """Reads a message field by field. Raises ValueError for one that is too short or of another encoding."""

    def __init__(self, data: bytes) -> None:
        if data[: len(HEAD)] != HEAD:
            raise ValueError("no CDR of little endian")
        self._data, self._at = data, len(HEAD)

    def whole(self, size: int = 4) -> int:
        """An unsigned integer."""
        return int.from_bytes(self._taken(size, size), "little")

    def text(self) -> str:
        return self._taken(self.whole(), 1)[:-1].decode()

    def values(self, count: int) -> list[float]:
        """Numbers of `float64`."""
        return list(struct.unpack(f"<{count}d", self._taken(8 * count, 8))) if count else []

    def stamp(self) -> int:
        """A time since 1970 [ns]."""
        seconds = int.from_bytes(self._taken(4, 4), "little", signed=True)
        return seconds * 10**9 + self.whole()

    def _taken(self, length: int, size: int) -> bytes:
        begin = self._at + -(self._at - len(HEAD)) % size
        self._at = begin + length
        if self._at > len(self._data):
            raise ValueError(f"a message of {len(self._data)} bytes, of which {self._at} are needed")
        return self._data[begin : self._at]
