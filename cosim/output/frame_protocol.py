"""Frames between a run and its recorder process: their layout, encoding and decoding."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import Any

import numpy as np

from cosim.errors import InputError, RunError


class FrameKind(IntEnum):
    """Of a frame. Those to the neighbour: START to END; its answers: READY (all is open), FAILED, DONE (all closed)."""

    START, BATCH, EVENT, FAULT, END, READY, FAILED, DONE = range(8)


HEADER = struct.Struct("<BQ")  # kind, bytes that follow: words as msgpack, numbers as they lie in memory


ERROR_TYPES = {error.exit_code: error for error in (InputError, RunError)}


def encode_frame(kind: FrameKind, *parts: bytes) -> bytes:
    return b"".join((HEADER.pack(kind, sum(map(len, parts))), *parts))


def encode_fields(words: Any) -> bytes:
    from msgpack import packb

    return packb(words, unicode_errors="surrogateescape") or b""  # names of files may be any bytes


def decode_fields(body: bytes) -> Any:
    from msgpack import unpackb

    return unpackb(body, use_list=False, unicode_errors="surrogateescape")


def decode_batch(body: bytes, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """t_ns (k,) and values (k, columns) of a frame that holds first the one, then the other."""
    k = len(body) // (8 * (1 + columns))
    return np.frombuffer(body, np.int64, k), np.frombuffer(body, float, offset=8 * k).reshape(k, columns)


class FrameDecoder:
    """Takes bytes as they come, gives frames as they are complete."""

    def __init__(self) -> None:
        self._pending = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[FrameKind, bytes]]:
        self._pending += data
        while len(self._pending) >= HEADER.size:
            kind, size = HEADER.unpack_from(self._pending)
            end = HEADER.size + size
            if len(self._pending) < end:
                return
            body = bytes(self._pending[HEADER.size : end])
            del self._pending[:end]
            yield FrameKind(kind), body
