"""The bytes of a serial port in machine code: what has come, and what is to be sent."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from cosim.core.machine_code import array_at, entry_of, external, given_function, i32, i64, machine_code, now, words_at
from cosim.plugins.drivers.transport.bus_load import BYTE_BITS
from cosim.plugins.drivers.transport.compiled_link import (
    AGAIN,
    ARRIVAL,
    FULL,
    INTERRUPTED,
    ITEM_SIZE,
    ITEM_WORDS,
    PLACES,
    READABLE,
    SENT,
    WRITABLE,
    bytes_at,
    poll,
    system_error,
)
from cosim.plugins.drivers.transport.connection import ConnectionLost
from cosim.plugins.drivers.transport.serial import SerialPort

BUFFER_SIZE = 16384  # bytes of each of both buffers
LONGEST_ITEM = 4096  # bytes of what is sent or received together, more than a packet to 252 drives has

STREAM = np.dtype(
    [
        *[(name, "i8") for name in ("descriptor", "scratch")],  # scratch: address of 4 words
        *[(name, "i8") for name in ("incoming", "begin", "end")],  # address; the bytes that are not used yet
        *[(name, "i8") for name in ("outgoing", "filled")],  # address, number of bytes to send
        *[(name, "i8") for name in ("reads", "bytes_in", "writes", "bytes_out")],
    ]
)
streams_at = array_at(STREAM)

_REMOVED = errno.ENODEV
_read = external("read", i64, i32, i64, i64)
_write = external("write", i64, i32, i64, i64)


@machine_code
def read_some(stream: np.record) -> int:
    """Append what has come to the bytes that are not used yet; how many, or minus the number of an error."""
    data, rest = bytes_at(stream.incoming, BUFFER_SIZE), stream.end - stream.begin
    if stream.begin > 0:
        for k in range(rest):
            data[k] = data[stream.begin + k]
        stream.begin, stream.end = 0, rest
    if stream.end == BUFFER_SIZE:
        return 0
    found = poll(stream.descriptor, READABLE, 0, stream.scratch)
    if found <= 0:
        return found
    count = _read(stream.descriptor, stream.incoming + stream.end, BUFFER_SIZE - stream.end)
    if count < 0:
        error = system_error()
        return 0 if error in (AGAIN, INTERRUPTED) else -error
    if count == 0:  # a removed port is always readable, without data
        return -_REMOVED
    stream.end += count
    stream.reads += 1
    stream.bytes_in += count
    return count


@machine_code
def write_all(stream: np.record, deadline: int) -> int:
    """Send the bytes of `outgoing` by the deadline [ns]; SENT, FULL, or the number of an error."""
    done, size = 0, stream.filled
    stream.filled = 0
    stream.writes += 1
    stream.bytes_out += size
    while done < size:
        count = _write(stream.descriptor, stream.outgoing + done, size - done)
        if count > 0:
            done += count
            continue
        error = system_error()
        if count < 0 and error not in (AGAIN, INTERRUPTED):
            return error
        rest = deadline - now(stream.scratch)
        if rest <= 0:
            return FULL
        found = poll(stream.descriptor, WRITABLE, rest, stream.scratch)
        if found < 0:
            return -found
    return SENT


def sender(put: Any) -> Any:
    """The entry `send` of a link whose record begins with the address of its STREAM.

    put(address of the record, bytes, place, item): append the bytes of an item, at most LONGEST_ITEM; where they end.
    """

    return entry_of(put, i64, i64, i64, i64, i64)(_send)


def _send(address: int, items: int, count: int, deadline: int) -> int:
    stream = streams_at(words_at(address, 1)[0], 1)[0]
    data, result = bytes_at(stream.outgoing, BUFFER_SIZE), SENT
    for k in range(count):
        stream.filled = given_function(address, data, stream.filled, words_at(items + k * ITEM_SIZE, ITEM_WORDS))
        if stream.filled > BUFFER_SIZE - LONGEST_ITEM or k == count - 1:
            result = write_all(stream, deadline)
            if result != SENT:
                break
    return result


class SerialLink:
    """An open serial port in machine code, base of the links that know how its bytes are parted. Satisfies
    `CompiledLink` with what these add."""

    def __init__(self, port: SerialPort) -> None:
        self._port, self.descriptor = port, port.descriptor
        self._buffers = np.zeros((2, BUFFER_SIZE), np.uint8)
        self._scratch = np.zeros(4, np.int64)
        self.arrivals, self._stream = np.zeros(PLACES, ARRIVAL), np.zeros(1, STREAM)
        for name, value in (
            ("descriptor", port.descriptor),
            ("scratch", self._scratch.ctypes.data),
            ("incoming", self._buffers[0].ctypes.data),
            ("outgoing", self._buffers[1].ctypes.data),
        ):
            self._stream[name] = value
        self._kept: list[np.ndarray] = []  # bytes that items refer to

    def _keep(self, data: bytes) -> tuple[int, int]:
        """(address, size) of these bytes."""
        self._kept.append(np.frombuffer(data or b"\0", np.uint8).copy())
        return self._kept[-1].ctypes.data, len(data)

    def count(self, traffic: Sequence[tuple[Any, int, int]], errors: int) -> None:
        """See `CompiledLink`; a serial port counts what it reads and writes."""
        meter, stream = self._port.meter, self._stream[0]
        meter.errors += errors
        meter.items_out, meter.bits_out = meter.items_out + int(stream["writes"]), meter.bits_out + _bits(stream, "out")
        meter.items_in, meter.bits_in = meter.items_in + int(stream["reads"]), meter.bits_in + _bits(stream, "in")
        for name in ("reads", "bytes_in", "writes", "bytes_out"):
            self._stream[name] = 0

    def lost(self, error: int) -> ConnectionLost:
        """See `CompiledLink`."""
        return self._port.connection_failed(OSError(error, os.strerror(error)))

    def bus_off(self) -> ConnectionLost:
        """See `CompiledLink`; there is none on a serial port."""
        raise NotImplementedError

    def not_sent(self) -> ConnectionLost:
        """See `CompiledLink`."""
        return self._port.not_sent()


def _bits(stream: np.record, direction: str) -> float:
    return BYTE_BITS * int(stream[f"bytes_{direction}"])
