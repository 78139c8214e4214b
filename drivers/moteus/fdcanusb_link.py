"""The lines of an fdcanusb in machine code; see `fdcanusb`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cosim.core.machine_code import array_at, entry, i64, machine_code, now
from cosim.core.types import Array
from cosim.plugins.drivers.moteus import fdcanusb
from cosim.plugins.drivers.moteus.fdcanusb import MAX_LENGTH, AdapterHost, send_line
from cosim.plugins.drivers.transport import CanFrame, SerialPort
from cosim.plugins.drivers.transport.byte_stream import BUFFER_SIZE, SerialLink, read_some, sender, streams_at
from cosim.plugins.drivers.transport.compiled_link import (
    EXTENDED,
    FRAME,
    INVALID,
    ITEM_WORDS,
    PLACES,
    arrivals_at,
    bytes_at,
)

# dropping: the end of a line whose beginning was dropped is to come
LINES = np.dtype([(name, "i8") for name in ("stream", "arrivals", "checksums", "dropping")])
HEAD, HEAD_SIZE, DATA, DATA_SIZE, TAIL, TAIL_SIZE = range(6)  # words of an item
_IGNORED = -1

lines_at = array_at(LINES)
_CRC = np.array(fdcanusb.CRC, np.uint8)
_DIGITS = np.frombuffer(b"0123456789ABCDEF", np.uint8)
_OK, _ERROR, _RECEIVED, _CHECKSUM = (
    np.frombuffer(text, np.uint8) for text in (fdcanusb.OK, b"ERR", b"rcv ", b"checksum")
)
_SPACE, _STAR, _RETURN, _NEWLINE, _EXTENDED, _REMOTE = b" *\r\nER"


# --- lines to the adapter ---


@machine_code
def _copy(data: Array, at: int, source: int, size: int) -> int:
    """Copy bytes from an address; where they end."""
    copied = bytes_at(source, size)
    for k in range(size):
        data[at + k] = copied[k]
    return at + size


@machine_code
def _put_line(address: int, data: Array, at: int, item: Array) -> int:
    """Append the line of an item; where it ends."""
    checksums = lines_at(address, 1)[0].checksums
    end = _copy(data, at, item[HEAD], item[HEAD_SIZE])
    source = bytes_at(item[DATA], item[DATA_SIZE])
    for k in range(item[DATA_SIZE]):
        data[end], data[end + 1] = _DIGITS[source[k] >> 4], _DIGITS[source[k] & 15]
        end += 2
    end = _copy(data, end, item[TAIL], item[TAIL_SIZE])
    if checksums != 0:
        data[end] = _SPACE
        crc = _checksum(data, at, end + 1)
        data[end + 1], data[end + 2], data[end + 3] = _STAR, _DIGITS[crc >> 4], _DIGITS[crc & 15]
        end += 4
    data[end], data[end + 1] = _RETURN, _NEWLINE
    return end + 2


@machine_code
def _checksum(data: Array, at: int, end: int) -> int:
    crc = 0
    for k in range(at, end):
        crc = int(_CRC[crc ^ data[k]])
    return crc


send = sender(_put_line)


# --- lines from the adapter ---


@machine_code
def _digit(byte: int) -> int:
    """The value of a hexadecimal digit; negative for another character."""
    if 48 <= byte <= 57:
        return byte - 48
    letter = byte | 32
    return letter - 87 if 97 <= letter <= 102 else -1


@machine_code
def _begins(data: Array, at: int, end: int, text: Array) -> bool:
    if end - at < len(text):
        return False
    for k in range(len(text)):  # noqa: SIM110  (Numba has no generators here)
        if data[at + k] != text[k]:
            return False
    return True


@machine_code
def _without_checksum(data: Array, at: int, end: int) -> tuple[int, int]:
    """(where the text ends without its checksum, whether that is valid: 1, not: 0; -1 without one)."""
    if end - at < 3 or data[end - 3] != _STAR:
        return end, -1
    high, low = _digit(int(data[end - 2])), _digit(int(data[end - 1]))
    if high < 0 or low < 0:
        return end, -1
    valid = int(high << 4 | low == _checksum(data, at, end - 3))
    end -= 3
    while end > at and data[end - 1] == _SPACE:
        end -= 1
    return end, valid


@machine_code
def _take_line(lines: np.record, data: Array, at: int, end: int, arrived: np.record) -> int:
    """What a line is: FRAME, INVALID or _IGNORED; the data of a frame take the place of their digits."""
    end, valid = _without_checksum(data, at, end)
    if _begins(data, at, end, _ERROR):
        for k in range(at, end):
            if _begins(data, k, end, _CHECKSUM):
                lines.checksums = 1
        return INVALID
    if valid == 0 or (lines.checksums != 0 and valid < 0):
        return INVALID
    if end - at == len(_OK) and _begins(data, at, end, _OK):
        return _IGNORED
    if not _begins(data, at, end, _RECEIVED):
        return INVALID
    at += len(_RECEIVED)
    number, first = 0, at
    while at < end and data[at] != _SPACE:
        digit = _digit(int(data[at]))
        if digit < 0 or number >= 1 << 25:
            return INVALID
        number, at = number << 4 | digit, at + 1
    if at == first:
        return INVALID
    start = at = at + 1
    size = 0
    while at < end and data[at] != _SPACE:
        high = _digit(int(data[at]))
        low = _digit(int(data[at + 1])) if at + 1 < end else -1
        if high < 0 or low < 0 or size == 64:
            return INVALID
        data[start + size] = high << 4 | low
        size, at = size + 1, at + 2
    extended, remote = number > 0x7FF, False
    for k in range(at, end):
        if data[k] > 0x7F:
            return INVALID
        if data[k - 1] == _SPACE and (k + 1 == end or data[k + 1] == _SPACE):  # a flag
            extended, remote = extended or data[k] == _EXTENDED, remote or data[k] == _REMOTE
    if remote:
        return _IGNORED
    arrived.id, arrived.address, arrived.length = number | (EXTENDED if extended else 0), start, size
    return FRAME


@entry(i64, i64, i64, i64, i64)
def receive(address: int, _unused: int, _unused_too: int, _nor_this: int) -> int:
    """See `compiled_link`."""
    lines = lines_at(address, 1)[0]
    stream = streams_at(lines.stream, 1)[0]
    found = read_some(stream)
    if found < 0:
        return found
    data, t_ns, count = bytes_at(stream.incoming, BUFFER_SIZE), now(stream.scratch), 0
    arrivals = arrivals_at(lines.arrivals, PLACES)
    at = stream.begin
    while at < stream.end and count < PLACES:
        if data[at] != _RETURN and data[at] != _NEWLINE:
            at += 1
            continue
        begin, whole = stream.begin, lines.dropping == 0
        stream.begin, lines.dropping = at + 1, 0
        if whole and 0 < at - begin < MAX_LENGTH:
            what = _take_line(lines, data, begin, at, arrivals[count])
            if what != _IGNORED:
                arrivals[count].what, arrivals[count].t_ns = what, t_ns
                arrivals[count].address += stream.incoming  # it was a place in it
                count += 1
        at += 1
    if stream.end - stream.begin >= MAX_LENGTH and count < PLACES:
        stream.begin, lines.dropping = stream.end, 1
    return count


class FdcanusbLink(SerialLink):
    """The program's end of an fdcanusb, or of a drive's own UART. Satisfies `CompiledLink`."""

    send, receive, settle = send.address, receive.address, 0

    def __init__(self, adapter: AdapterHost) -> None:
        assert isinstance(adapter.serial, SerialPort)
        super().__init__(adapter.serial)
        self._adapter, self._lines = adapter, np.zeros(1, LINES)
        self._lines[0] = self._stream.ctypes.data, self.arrivals.ctypes.data, adapter.checksums, 0
        self.context = self._lines.ctypes.data

    def items(self, frames: Sequence[CanFrame]) -> tuple[Array, list[int]]:
        """See `CompiledLink`."""
        rows, places = np.zeros((len(frames), ITEM_WORDS), np.int64), []
        for row, frame in zip(rows, frames, strict=True):
            line, digits = send_line(frame), 2 * len(frame.data)
            start = line.rindex(b" ") - digits
            parts = line[:start], frame.data, line[start + digits :]
            row[:6] = [word for part in parts for word in self._keep(part)]
            places.append(int(row[DATA]))
        return rows, places

    def count(self, traffic: Sequence[tuple[Any, int, int]], errors: int) -> None:
        """See `CompiledLink`."""
        super().count(traffic, errors)
        self._adapter.checksums = bool(self._lines["checksums"][0])
