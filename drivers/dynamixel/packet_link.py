"""The packets of a half-duplex link in machine code; see `codec` and `sync_reader`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cosim.core.machine_code import array_at, entry, i64, machine_code, now
from cosim.core.types import Array
from cosim.plugins.drivers.dynamixel import codec
from cosim.plugins.drivers.dynamixel.codec import BROADCAST, MAX_ID, STATUS, BusPacket
from cosim.plugins.drivers.dynamixel.sync_reader import INCOMPLETE_NS, SILENT_NS
from cosim.plugins.drivers.transport import SerialPort
from cosim.plugins.drivers.transport.byte_stream import (
    BUFFER_SIZE,
    LONGEST_ITEM,
    SerialLink,
    read_some,
    sender,
    streams_at,
)
from cosim.plugins.drivers.transport.compiled_link import (
    DAMAGED,
    FRAME,
    ITEM_WORDS,
    PLACES,
    READABLE,
    arrivals_at,
    bytes_at,
    poll,
)

PACKETS = np.dtype(
    [
        *[(name, "i8") for name in ("stream", "arrivals")],
        ("block", "i8"),  # bytes of a drive in a chained answer
        *[(name, "i8") for name in ("expected", "wire_ns")],  # bytes of all answers; duration of a request and these
        *[(name, "i8") for name in ("asked_ns", "received")],  # the last request, bytes since then
        *[(name, "i8") for name in ("taken", "crc", "skipping")],  # of a chained answer: bytes; of the bytes before
    ]
)
ID, DATA, DATA_SIZE = range(3)  # words of an item
HEAD = 8  # bytes before the parameters
_FAILED = 0x7F  # bits of the error byte

packets_at = array_at(PACKETS)
_CRC = np.array([codec.crc16(bytes((0, byte))) for byte in range(256)], np.uint16)  # of a byte
_HEADER = np.frombuffer(codec.HEADER, np.uint8)
_FF, _FD = 0xFF, 0xFD
_IGNORED, _NOTHING = -1, -2


@machine_code
def _crc16(crc: int, data: Array, begin: int, end: int) -> int:
    """The CRC of the bytes after those whose CRC it is."""
    for k in range(begin, end):
        crc = (crc << 8 & 0xFFFF) ^ int(_CRC[crc >> 8 ^ data[k]])
    return crc


@machine_code
def _put_packet(address: int, data: Array, at: int, item: Array) -> int:
    """Append a packet; where it ends."""
    source, end = bytes_at(item[DATA], item[DATA_SIZE]), at + HEAD
    for k in range(4):
        data[at + k] = _HEADER[k]
    data[at + 4], data[at + 7] = item[ID], source[0]
    marks = 0  # bytes of a mark (FF FF FD) that were just copied
    for k in range(1, item[DATA_SIZE]):
        byte = source[k]
        data[end] = byte
        end += 1
        if byte == _FF:
            marks = min(marks + 1, 2)
        elif byte == _FD and marks == 2:
            data[end] = _FD
            end += 1
            marks = 0
        else:
            marks = 0
    length = end - at - 5
    data[at + 5], data[at + 6] = length & 0xFF, length >> 8
    crc = _crc16(0, data, at, end)
    data[end], data[end + 1] = crc & 0xFF, crc >> 8
    return end + 2


send = sender(_put_packet)


# --- answers -----------------------------------------------------------------------------------------


@machine_code
def _find_header(data: Array, at: int, end: int) -> int:
    """Where a whole header is; negative if there is none."""
    for k in range(at, end - 3):
        if data[k] == _FF and data[k + 1] == _FF and data[k + 2] == _FD and data[k + 3] == 0:
            return k
    return -1


@machine_code
def _unstuff(data: Array, begin: int, end: int) -> int:
    """Remove the FD after each FF FF FD; where the bytes end then."""
    to, marks, k = begin, 0, begin
    while k < end:
        byte = data[k]
        data[to] = byte
        to, k = to + 1, k + 1
        if byte == _FF:
            marks = min(marks + 1, 2)
        elif byte == _FD and marks == 2:
            k += k < end and data[k] == _FD
            marks = 0
        else:
            marks = 0
    return to


@machine_code
def _skip_to(packets: np.record, stream: np.record, place: int, found: int) -> int:
    """Skip bytes before a header (found) or at the end; DAMAGED once for each piece that was no packet."""
    what = _IGNORED if packets.skipping else DAMAGED
    stream.begin, packets.taken, packets.skipping = place, 0, 1 - found
    return what


@machine_code
def _damaged(packets: np.record, stream: np.record, head: int) -> int:
    """There is a header, but no packet: look for the next one."""
    stream.begin, packets.taken, packets.skipping = head + len(_HEADER), 0, 1
    return DAMAGED


@machine_code
def _take_block(packets: np.record, stream: np.record, data: Array, last: int, arrived: np.record) -> int:
    """The next part of a chained answer, which ends at `last`. Each part ends with the CRC of all bytes before."""
    head = stream.begin
    if packets.taken == 0:
        packets.taken, packets.crc = HEAD, _crc16(0, data, head, head + HEAD)
    at = head + packets.taken
    end = at + packets.block
    if end > last:
        return _damaged(packets, stream, head)
    if end > stream.end:
        return _NOTHING
    crc = _crc16(packets.crc, data, at, end - 2)
    if not _ends_with(data, end, crc):
        return _damaged(packets, stream, head)
    packets.taken, packets.crc = packets.taken + packets.block, _crc16(crc, data, end - 2, end)
    arrived.id = data[at + 1]
    data[at + 1] = data[at]  # the error byte before the data, as in the answer of a single drive
    arrived.address, arrived.length = at + 1, packets.block - 3
    if end == last:
        stream.begin, packets.taken = end, 0
    return FRAME


@machine_code
def _ends_with(data: Array, end: int, crc: int) -> bool:
    return int(data[end - 2]) | int(data[end - 1]) << 8 == crc


@machine_code
def _take_packet(packets: np.record, stream: np.record, data: Array, arrived: np.record) -> int:
    """The next of the bytes that have come: FRAME, DAMAGED, _IGNORED, or _NOTHING that is complete. As `Decoder`."""
    head = _find_header(data, stream.begin, stream.end)
    if head < 0:
        rest = max(stream.end - len(_HEADER) + 1, stream.begin)  # may be the beginning of a header
        return _skip_to(packets, stream, rest, 0) if rest > stream.begin else _NOTHING
    if head > stream.begin:
        return _skip_to(packets, stream, head, 1)
    packets.skipping = 0
    if stream.end - head < HEAD:
        return _NOTHING
    number, length, instruction = int(data[head + 4]), int(data[head + 5]) | int(data[head + 6]) << 8, data[head + 7]
    end = head + HEAD - 1 + length
    if length < 3 or length > LONGEST_ITEM or (number > MAX_ID and number != BROADCAST):
        return _damaged(packets, stream, head)
    if instruction == STATUS and number == BROADCAST:
        return _take_block(packets, stream, data, end, arrived)
    inner = _find_header(data, head + len(_HEADER), min(end - 2, stream.end))
    if inner >= 0:  # the packet was truncated, or its length is damaged
        stream.begin = inner
        return DAMAGED
    if end > stream.end:
        return _NOTHING
    if not _ends_with(data, end, _crc16(0, data, head, end - 2)):
        return _damaged(packets, stream, head)
    stream.begin = end
    if instruction != STATUS or length < 4:
        return _IGNORED
    arrived.id, arrived.address = number, head + HEAD
    arrived.length = _unstuff(data, head + HEAD, end - 2) - arrived.address
    return FRAME


@entry(i64, i64, i64, i64, i64)
def receive(address: int, _unused: int, _unused_too: int, _nor_this: int) -> int:
    """See `compiled_link`."""
    packets = packets_at(address, 1)[0]
    stream = streams_at(packets.stream, 1)[0]
    found = read_some(stream)
    if found < 0:
        return found
    packets.received += found
    data, t_ns, count = bytes_at(stream.incoming, BUFFER_SIZE), now(stream.scratch), 0
    arrivals = arrivals_at(packets.arrivals, PLACES)
    while count < PLACES:
        arrived = arrivals[count]
        what = _take_packet(packets, stream, data, arrived)
        if what == _NOTHING:
            break
        if what == _IGNORED:
            continue
        if what == FRAME and data[arrived.address] & _FAILED:
            what = DAMAGED
        arrived.what, arrived.t_ns, arrived.address = what, t_ns, arrived.address + stream.incoming
        count += 1
    return count


@entry(i64, i64, i64, i64, i64)
def settle(address: int, deadline: int, _unused: int, _unused_too: int) -> int:
    """See `compiled_link`."""
    packets = packets_at(address, 1)[0]
    stream = streams_at(packets.stream, 1)[0]
    until = 0
    if packets.received < packets.expected:
        until = packets.asked_ns + packets.wire_ns + (INCOMPLETE_NS if packets.received else SILENT_NS)
    while True:
        stream.begin = stream.end = 0
        found = read_some(stream)
        time = now(stream.scratch)
        if found < 0 or time >= deadline:
            return min(found, 0)
        if found == 0 and time >= until:
            break
        found = poll(stream.descriptor, READABLE, max(min(until, deadline) - time, 0), stream.scratch)
        if found < 0:
            return found
    packets.taken = packets.skipping = packets.received = stream.begin = stream.end = 0
    packets.asked_ns = now(stream.scratch)
    return 1


class PacketLink(SerialLink):
    """The program's end of a serial link whose drives answer one request together. Satisfies `CompiledLink`."""

    send, receive, settle = send.address, receive.address, settle.address

    def __init__(self, port: SerialPort, block: int, expected: int, wire_ns: int) -> None:
        """block: bytes of a drive in a chained answer; expected: bytes of all answers; wire_ns: duration of the request
        and of these."""
        super().__init__(port)
        self._packets = np.zeros(1, PACKETS)
        for name, value in (
            ("stream", self._stream.ctypes.data),
            ("arrivals", self.arrivals.ctypes.data),
            ("block", block),
            ("expected", expected),
            ("received", expected),  # no answer is late yet
            ("wire_ns", wire_ns),
        ):
            self._packets[name] = value
        self.context = self._packets.ctypes.data

    def items(self, frames: Sequence[BusPacket]) -> tuple[Array, list[int]]:
        """See `CompiledLink`."""
        rows = np.zeros((len(frames), ITEM_WORDS), np.int64)
        for row, frame in zip(rows, frames, strict=True):
            row[:3] = frame.id, *self._keep(frame.data)
        return rows, [int(row[DATA]) for row in rows]
