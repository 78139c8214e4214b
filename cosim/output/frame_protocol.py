"""Frames between a run and its sink processes: layout, encoding and decoding.

A frame is `HEADER` and a body. The bodies of values and ticks are arrays in memory layout; other bodies are msgpack.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import Any

import numpy as np

from cosim.core.errors import InputError, RunError
from cosim.simulation.tick.tick_block import TickBlock


class FrameKind(IntEnum):
    """Requests to a sink process: START to END. Replies: READY (all sinks open), FAILED, DONE (all closed)."""

    START, VALUES, TICKS, EVENT, FAULT, CHANGE, MISSED, SCHEMA, TRAFFIC, END, READY, FAILED, DONE = range(13)


HEADER = struct.Struct("<BQ")  # kind, size of the body in bytes
SIZES = struct.Struct("<QQQQ")  # of a block: ticks, columns of rows and of stamps, elements of the start
ERROR_TYPES = {error.exit_code: error for error in (InputError, RunError)}


def encode_frame(kind: FrameKind, *parts: bytes) -> bytes:
    """A frame whose body is the concatenation of `parts`."""
    return b"".join((HEADER.pack(kind, sum(map(len, parts))), *parts))


def encode_fields(fields: Any) -> bytes:
    from msgpack import packb

    return packb(fields, unicode_errors="surrogateescape") or b""  # file names may be any bytes


def decode_fields(body: bytes) -> Any:
    from msgpack import unpackb

    return unpackb(body, use_list=False, unicode_errors="surrogateescape")


def decode_values(body: bytes, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """t_ns (k,) int64 and values (k, columns) of a body, which is one array after the other."""
    k = len(body) // (8 * (1 + columns))
    return np.frombuffer(body, np.int64, k), np.frombuffer(body, float, offset=8 * k).reshape(k, columns)


def encode_ticks(block: TickBlock) -> tuple[bytes, ...]:
    """The parts of the body of a block: sizes, arrays, messages."""
    (k, row), stamps = block.rows.shape, block.stamps.shape[1]
    sizes = SIZES.pack(k, row, stamps, len(block.bumpless_start))
    whole = [np.asarray(array, np.int64).tobytes() for array in (block.numbers, block.stamps)]
    real = [np.asarray(array, float).tobytes() for array in (block.rows, block.bumpless_start)]
    return sizes, *whole, *real, encode_fields(block.failures)


def decode_ticks(body: bytes) -> TickBlock:
    k, row, stamps, start = SIZES.unpack_from(body)
    at = SIZES.size

    def take(count: int, kind: type) -> np.ndarray:
        nonlocal at
        array = np.frombuffer(body, kind, count, at)
        at += array.nbytes
        return array

    numbers, stamped = take(k, np.int64), take(k * stamps, np.int64).reshape(k, stamps)
    rows, bumpless_start = take(k * row, float).reshape(k, row), take(start, float)
    return TickBlock(numbers, rows, stamped, bumpless_start, decode_fields(body[at:]))


class FrameDecoder:
    """Splits a byte stream into frames."""

    def __init__(self) -> None:
        self._pending = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[FrameKind, bytes]]:
        """(kind, body) of every frame that is complete with `data`."""
        self._pending += data
        while len(self._pending) >= HEADER.size:
            kind, size = HEADER.unpack_from(self._pending)
            end = HEADER.size + size
            if len(self._pending) < end:
                return
            body = bytes(self._pending[HEADER.size : end])
            del self._pending[:end]
            yield FrameKind(kind), body
