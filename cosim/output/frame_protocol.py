"""Frames between a run and its recorder process: layout, encoding and decoding.

A frame is `HEADER` and a body. The body of a batch is arrays in memory layout; other bodies are msgpack.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import Any

import numpy as np

from cosim.errors import InputError, RunError


class FrameKind(IntEnum):
    """Requests to the recorder process: START to END. Replies: READY (all sinks open), FAILED, DONE (all closed)."""

    START, BATCH, EVENT, FAULT, END, READY, FAILED, DONE = range(8)


HEADER = struct.Struct("<BQ")  # kind, size of the body in bytes
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


def decode_batch(body: bytes, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """t_ns (k,) int64 and values (k, columns) of the body of a batch, which is one array after the other."""
    k = len(body) // (8 * (1 + columns))
    return np.frombuffer(body, np.int64, k), np.frombuffer(body, float, offset=8 * k).reshape(k, columns)


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
