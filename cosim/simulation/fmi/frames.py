"""Messages between a run and the process of an FMU: a length, and pickled plain data; signals as bytes.

Where the length is 0, numbers follow, as many as both sides have agreed on: the numbers of a step are one vector there,
and one back.
"""

from __future__ import annotations

import math
import pickle
import socket
import struct
from collections.abc import Mapping
from typing import Any, NamedTuple

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


class _SignalPlace(NamedTuple):
    """A signal in a vector of all elements. where: its index, a number for a scalar."""

    name: str
    where: int | slice
    shape: tuple[int, ...]


class StepFrames:
    """Vectors of a step. Inputs are polynomials (rows, ...); the same arguments on both sides. given, results: the
    lengths of both vectors."""

    def __init__(self, inputs: Signals, outputs: Signals, rows: int) -> None:
        self._rows = rows
        self._inputs, elements = _places(inputs)
        self._outputs, self.results = _places(outputs)
        self.given = 2 + elements * rows

    def pack_inputs(self, t: float, h: float, inputs: Mapping[str, Array]) -> Array:
        """(given,) from the time and the length of the step [s] and the inputs; with fewer rows where their last
        coefficients are 0."""
        vector = np.empty(self.given)
        vector[:2] = t, h
        columns = vector[2:].reshape(-1, self._rows)
        for name, index, shape in self._inputs:
            values = inputs[name]
            if len(values) < self._rows:
                values = np.concatenate([values, np.zeros((self._rows - len(values), *shape))])
            columns[index] = values.reshape(self._rows, -1).T if shape else values
        return vector

    def unpack_inputs(self, vector: Array) -> tuple[float, float, dict[str, Array]]:
        """What `pack_inputs` has packed."""
        columns = vector[2:].reshape(-1, self._rows)
        inputs = {name: columns[i].T.reshape(-1, *shape) if shape else columns[i] for name, i, shape in self._inputs}
        return float(vector[0]), float(vector[1]), inputs

    def pack_outputs(self, outputs: Mapping[str, Array]) -> Array:
        """(results,)"""
        vector = np.empty(self.results)
        for name, index, shape in self._outputs:
            vector[index] = outputs[name].reshape(-1) if shape else outputs[name]
        return vector

    def unpack_outputs(self, vector: Array) -> dict[str, Array]:
        """What `pack_outputs` has packed."""
        return {name: vector[i].reshape(shape) if shape else vector[i, ...] for name, i, shape in self._outputs}


def _places(signals: Signals) -> tuple[list[_SignalPlace], int]:
    """The places of all signals, and the number of their elements."""
    places: list[_SignalPlace] = []
    start = 0
    for name, signal in signals.items():
        size = math.prod(signal.shape)
        places.append(_SignalPlace(name, slice(start, start + size) if signal.shape else start, signal.shape))
        start += size
    return places, start
