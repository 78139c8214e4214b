"""Messages between a run and the process of an FMU: a length, and pickled plain data; signals as bytes.

Where the length is 0, numbers follow, as many as both sides have agreed on.
"""

from __future__ import annotations

import pickle
import socket
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

from cosim.core.types import Array, Signals

LENGTH = struct.Struct("<Q")
NUMBERS = LENGTH.pack(0)
CHUNK = 1 << 16


def send(connection: socket.socket, message: object) -> None:
    data = pickle.dumps(message, 5)
    connection.sendall(LENGTH.pack(len(data)) + data)


def send_numbers(connection: socket.socket, numbers: Array) -> None:
    connection.sendall(NUMBERS + numbers.tobytes())


def receive(connection: socket.socket, count: int = 0) -> Any:
    """The next message, or an array of `count` numbers. Raises EOFError when the other end is closed, TimeoutError
    after the timeout of the socket."""
    data = bytearray()
    wanted = LENGTH.size
    while len(data) < wanted:
        chunk = connection.recv(CHUNK)
        if not chunk:
            raise EOFError
        data += chunk
        if wanted == LENGTH.size and len(data) >= wanted:
            wanted += LENGTH.unpack_from(data)[0] or 8 * count
    if data.startswith(NUMBERS):
        return np.frombuffer(data, offset=LENGTH.size)
    return pickle.loads(memoryview(data)[LENGTH.size :])


def pack(values: Mapping[str, Array]) -> dict[str, bytes]:
    """Signals, or the coefficients of their polynomials."""
    return {name: np.asarray(value, float).tobytes() for name, value in values.items()}


def unpack(data: Mapping[str, bytes], signals: Signals) -> dict[str, Array]:
    """Signals of these shapes."""
    return {name: np.frombuffer(value).reshape(signals[name].shape) for name, value in data.items()}


def unpack_coefficients(data: Mapping[str, bytes], signals: Signals) -> dict[str, Array]:
    """Coefficients (k + 1, ...) of signals of these shapes; of unknown names as (k + 1,)."""
    return {
        name: np.frombuffer(value).reshape(-1, *(signals[name].shape if name in signals else ()))
        for name, value in data.items()
    }
