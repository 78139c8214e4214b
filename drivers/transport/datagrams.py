"""CAN frames on sockets in machine code: many in one call of the system, with the kernel's time stamps.

A message is a CAN frame as Linux' raw CAN sockets have it, or as python-can's `udp_multicast` packs it (MessagePack).
The arrays below belong to `sendmmsg` and `recvmmsg`. Sources: man pages sendmmsg(2), recvmmsg(2), cmsg(3);
linux/can.h; the MessagePack specification; python-can, interfaces/udp_multicast/utils.py.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Sequence

import numpy as np

from cosim.core.machine_code import WALL, array_at, clock, entry, external, i32, i64, machine_code, now, words_at
from cosim.core.types import Array
from cosim.plugins.drivers.transport.arrival import AT_ONCE_NS, CLOCK_SET_NS, MAX_AGE_NS, TRIES
from cosim.plugins.drivers.transport.arrival import both_clocks as clocks_now
from cosim.plugins.drivers.transport.compiled_link import (
    AGAIN,
    ARRIVAL,
    ERROR_FRAME,
    EXTENDED,
    FOREIGN,
    FRAME,
    FULL,
    INTERRUPTED,
    INVALID,
    PLACES,
    SENT,
    arrivals_at,
    bytes_at,
    pause,
    system_error,
)

RAW_CAN, UDP_MULTICAST = 0, 1  # how a message carries a frame

# a message of sendmmsg and recvmmsg: struct mmsghdr with its padding, and struct iovec
MESSAGE = np.dtype(
    [(name, "i8") for name in ("name", "name_size", "parts", "part_count")]
    + [(name, "i8") for name in ("control", "control_size", "flags", "size")]
)
PART = np.dtype([("address", "i8"), ("size", "i8")])
CONTROL_SIZE = 64  # bytes for the time stamp of a message
BUFFER_SIZE = 512  # bytes of a message

SOCKET = np.dtype(
    [
        ("descriptor", "i8"),
        ("wire", "i8"),  # RAW_CAN or UDP_MULTICAST
        ("messages", "i8"),  # address of PLACES messages
        ("buffers", "i8"),  # … and of their bytes
        ("controls", "i8"),
        ("arrivals", "i8"),
        ("mark", "i8"),  # address of the text by which own messages are recognised
        ("mark_size", "i8"),
        ("scratch", "i8"),  # address of 4 words
        ("offset", "i8"),  # of the wall clock from the monotonic one at the last time stamp [ns]
        ("heard", "i8"),  # when the last message came [ns]
    ]
)

_DONT_WAIT = int(getattr(socket, "MSG_DONTWAIT", 0x40))
_STAMP_LEVEL, _STAMP_TYPE = 1, 35  # SOL_SOCKET, SCM_TIMESTAMPNS
_PAUSE = 50_000  # ns between attempts to send while the queue is full
_NO_BUFFERS, _TIMED_OUT = errno.ENOBUFS, errno.ETIMEDOUT
_REMOTE, _ERROR, _ID_MASK = 0x40000000, 0x20000000, 0x1FFFFFFF

_sendmmsg = external("sendmmsg", i32, i32, i64, i32, i32)
_recvmmsg = external("recvmmsg", i32, i32, i64, i32, i32, i64)
messages_at, sockets_at = array_at(MESSAGE), array_at(SOCKET)


@machine_code
def send_all(descriptor: int, messages: int, count: int, deadline: int, scratch: int) -> int:
    """Send all messages by the deadline [ns]; SENT, FULL, or the number of an error."""
    done = 0
    while done < count:
        sent = _sendmmsg(descriptor, messages + done * 64, count - done, _DONT_WAIT)
        if sent > 0:
            done += sent
            continue
        error = system_error()
        if error == INTERRUPTED:
            continue
        if error != AGAIN and error != _NO_BUFFERS and error != _TIMED_OUT:
            return error
        if now(scratch) >= deadline:
            return FULL
        pause(_PAUSE, scratch)
    return SENT


@machine_code
def receive_messages(link: np.record) -> int:
    """The number of messages that have come, at most PLACES, or minus the number of an error."""
    messages = messages_at(link.messages, PLACES)
    for k in range(PLACES):
        if messages[k].control_size == CONTROL_SIZE:
            break
        messages[k].control_size = CONTROL_SIZE
    count = _recvmmsg(link.descriptor, link.messages, PLACES, _DONT_WAIT, 0)
    if count >= 0:
        return count
    error = system_error()
    return 0 if error in (AGAIN, INTERRUPTED) else -error


@machine_code
def both_clocks(scratch: int) -> tuple[int, int]:
    """See `arrival.both_clocks`."""
    at = wall = 0
    for _ in range(TRIES):
        at, wall = now(scratch), clock(WALL, scratch)
        if now(scratch) - at < AT_ONCE_NS:
            break
    return at, wall


@machine_code
def arrival(link: np.record, place: int, taken: int, wall: int) -> int:
    """When a message came [ns], on the monotonic clock, which shows `taken` when the wall clock shows `wall`; see
    `ArrivalTimes`."""
    message = messages_at(link.messages, PLACES)[place]
    if message.control_size < 32:
        return taken
    control = words_at(message.control, 4)
    if control[1] != _STAMP_LEVEL | _STAMP_TYPE << 32:
        return taken
    waited = wall - (control[2] * 1_000_000_000 + control[3])
    was_set = abs(wall - taken - link.offset) > CLOCK_SET_NS
    link.offset = wall - taken
    came = taken - waited if not was_set and 0 <= waited < MAX_AGE_NS else taken
    link.heard = max(came, link.heard)
    return link.heard


# --- the frame in a message: (what it is, its identifier, where its data begin, their size) ----------------------


@machine_code
def frame_of(link: np.record, place: int) -> tuple[int, int, int, int]:
    """The frame in a received message; data are counted from the beginning of its bytes."""
    message = messages_at(link.messages, PLACES)[place]
    data = bytes_at(link.buffers + place * BUFFER_SIZE, BUFFER_SIZE)
    if link.wire == RAW_CAN:
        return _raw_frame(data, message.size)
    return _packed_frame(data, min(message.size, BUFFER_SIZE), bytes_at(link.mark, link.mark_size))


@machine_code
def _raw_frame(data: Array, size: int) -> tuple[int, int, int, int]:
    """struct can_frame or canfd_frame."""
    if size < 16 or data[4] > size - 8:
        return INVALID, 0, 0, 0
    word = int(data[0]) | int(data[1]) << 8 | int(data[2]) << 16 | int(data[3]) << 24
    if word & _ERROR:
        return ERROR_FRAME, word & _ID_MASK, 8, int(data[4])
    if word & _REMOTE:
        return FOREIGN, 0, 0, 0
    return FRAME, word & (_ID_MASK | EXTENDED), 8, int(data[4])


_NIL, _FALSE, _TRUE, _BYTES, _TEXT = 0xC0, 0xC2, 0xC3, 0xC4, 0xD9
_KEYS = (b"arbitration_id", b"dlc", b"data", b"is_extended_id", b"is_remote_frame", b"is_error_frame", b"is_fd")
_KEY_ID, _KEY_SIZE, _KEY_DATA, _KEY_EXTENDED, _KEY_REMOTE, _KEY_ERROR, _KEY_FD = (
    np.frombuffer(text, np.uint8) for text in _KEYS
)
_KEY_SWITCHED, _KEY_INDICATOR, _KEY_CHANNEL, _KEY_STAMP = (
    np.frombuffer(text, np.uint8) for text in (b"bitrate_switch", b"error_state_indicator", b"channel", b"timestamp")
)


@machine_code
def _is(data: Array, at: int, size: int, text: Array) -> bool:
    if size != len(text):
        return False
    for k in range(size):  # noqa: SIM110  (Numba has no generators here)
        if data[at + k] != text[k]:
            return False
    return True


@machine_code
def _item(data: Array, at: int, end: int) -> tuple[int, int, int]:
    """Of the MessagePack item at `at`: (where its content begins, size of the content, a small whole number as it is);
    a negative size for one that is cut or of another kind."""
    if at >= end:
        return at, -1, 0
    kind = int(data[at])
    if kind < 0x80 or kind >= 0xE0 or kind == 0xC0 or kind == 0xC2 or kind == 0xC3:
        return at + 1, 0, kind
    if 0xA0 <= kind < 0xC0:
        return _content(at + 1, kind - 0xA0, end)
    if 0xCA <= kind <= 0xCB:
        return _content(at + 1, 4 << (kind - 0xCA), end)
    if 0xCC <= kind <= 0xCF:
        return _content(at + 1, 1 << (kind - 0xCC), end)
    if 0xD0 <= kind <= 0xD3:
        return _content(at + 1, 1 << (kind - 0xD0), end)
    if (kind == 0xC4 or kind == 0xD9) and at + 1 < end:
        return _content(at + 2, int(data[at + 1]), end)
    return at, -1, 0


@machine_code
def _content(at: int, size: int, end: int) -> tuple[int, int, int]:
    return (at, size, -1) if at + size <= end else (at, -1, 0)


@machine_code
def _whole(data: Array, head: int, at: int, size: int) -> int:
    """The whole number of an item that begins at `head`, its content at `at`; negative for another item."""
    kind, value = int(data[head]), 0
    if kind < 0x80:
        return kind
    if kind < 0xCC or kind > 0xD3 or (kind >= 0xD0 and data[at] & 0x80):
        return -1
    for k in range(size):
        value = value << 8 | int(data[at + k])
    return value


@machine_code
def _packed_frame(data: Array, size: int, mark: Array) -> tuple[int, int, int, int]:
    """A map with text as keys. Whatever `MulticastInbox` would not take is invalid: other keys, bytes behind the map,
    items of another kind, lengths and identifiers that no frame has."""
    if size < 1 or data[0] & 0xF0 != 0x80:
        return INVALID, 0, 0, 0
    at, identifier, length, start, count = 1, -1, -1, 0, -1
    extended = remote = error = fd = switched = False
    for _ in range(int(data[0]) & 0x0F):
        key, key_size, _ = _item(data, at, size)
        if key_size < 0 or data[at] & 0xE0 != 0xA0:
            return INVALID, 0, 0, 0
        head = key + key_size
        value, value_size, small = _item(data, head, size)
        if value_size < 0:
            return INVALID, 0, 0, 0
        kind, true, is_flag = int(data[head]), small == _TRUE, small in (_TRUE, _FALSE)
        if _is(data, key, key_size, _KEY_ID):
            identifier = _whole(data, head, value, value_size)
        elif _is(data, key, key_size, _KEY_SIZE):
            length = _whole(data, head, value, value_size)
        elif _is(data, key, key_size, _KEY_DATA):
            start, count = value, value_size if kind == _BYTES else -1
        elif _is(data, key, key_size, _KEY_CHANNEL):
            if len(mark) and _is(data, value, value_size, mark):
                return FOREIGN, 0, 0, 0
            if kind & 0xE0 != 0xA0 and kind not in (_NIL, _TEXT):
                return INVALID, 0, 0, 0
        elif _is(data, key, key_size, _KEY_STAMP):
            if 0x7F < kind < 0xCA or 0xD3 < kind < 0xE0:
                return INVALID, 0, 0, 0
        elif not is_flag:
            return INVALID, 0, 0, 0
        elif _is(data, key, key_size, _KEY_EXTENDED):
            extended = true
        elif _is(data, key, key_size, _KEY_REMOTE):
            remote = true
        elif _is(data, key, key_size, _KEY_ERROR):
            error = true
        elif _is(data, key, key_size, _KEY_FD):
            fd = true
        elif _is(data, key, key_size, _KEY_SWITCHED) or _is(data, key, key_size, _KEY_INDICATOR):
            switched = switched or true
        else:
            return INVALID, 0, 0, 0
        at = value + value_size
    if (
        at != size
        or (count != length and not remote)
        or length < 0
        or length > (64 if fd else 8)
        or (switched and not fd)
    ):
        return INVALID, 0, 0, 0
    if identifier < 0 or identifier > (_ID_MASK if extended else 0x7FF) or (remote and (error or fd)):
        return INVALID, 0, 0, 0
    if error:
        return ERROR_FRAME, identifier, start, count
    return (FOREIGN if remote else FRAME), identifier | (EXTENDED if extended else 0), start, count


# --- the functions of a link ------------------------------------------------------------------------------------


@entry(i64, i64, i64, i64, i64)
def send(address: int, messages: int, count: int, deadline: int) -> int:
    """See `compiled_link`."""
    link = sockets_at(address, 1)[0]
    return send_all(link.descriptor, messages, count, deadline, link.scratch)


@entry(i64, i64, i64, i64, i64)
def receive(address: int, _unused: int, _unused_too: int, _nor_this: int) -> int:
    """See `compiled_link`."""
    link = sockets_at(address, 1)[0]
    count = receive_messages(link)
    if count <= 0:
        return count
    taken, wall = both_clocks(link.scratch)
    arrivals = arrivals_at(link.arrivals, PLACES)
    for place in range(count):
        what, identifier, start, size = frame_of(link, place)
        arrived = arrivals[place]
        arrived.what, arrived.id = what, identifier
        arrived.address, arrived.length = link.buffers + place * BUFFER_SIZE + start, size
        arrived.t_ns = arrival(link, place, taken, wall) if what == FRAME else taken
    return count


# --- the arrays of a socket -----------------------------------------------------------------------------------


class SocketMemory:
    """The memory of a socket for these functions. `record` (1,) of SOCKET; must stay referenced while it is used."""

    def __init__(self, descriptor: int, wire: int, mark: bytes = b"", destination: bytes = b"") -> None:
        """mark: of own messages; destination: struct sockaddr, where the socket is not connected."""
        self.destination = np.frombuffer(destination, np.uint8).copy()
        self._mark = np.frombuffer(mark + b"\0", np.uint8).copy()
        self._buffers = np.zeros((PLACES, BUFFER_SIZE), np.uint8)
        self._controls = np.zeros((PLACES, CONTROL_SIZE), np.uint8)
        self._scratch = np.zeros(4, np.int64)
        self._parts_to_send: list[np.ndarray] = []
        self._messages, self._parts = self._array(self._buffers, self._controls)
        self.arrivals, self.record = np.zeros(PLACES, ARRIVAL), np.zeros(1, SOCKET)
        at, wall = clocks_now()
        self.record[0] = (
            *(descriptor, wire, self._messages.ctypes.data, self._buffers.ctypes.data, self._controls.ctypes.data),
            *(self.arrivals.ctypes.data, self._mark.ctypes.data, len(mark), self._scratch.ctypes.data),
            *(wall - at, 0),
        )

    @staticmethod
    def _array(buffers: np.ndarray, controls: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        messages, parts = np.zeros(PLACES, MESSAGE), np.zeros(PLACES, PART)
        for k in range(PLACES):
            parts[k] = buffers[k].ctypes.data, BUFFER_SIZE
            messages[k] = 0, 0, parts[k : k + 1].ctypes.data, 1, controls[k].ctypes.data, CONTROL_SIZE, 0, 0
        return messages, parts

    def messages_to_send(self, wires: Sequence[np.ndarray]) -> np.ndarray:
        """The messages that send these bytes, in this order; valid as long as this memory."""
        messages, parts = np.zeros(len(wires), MESSAGE), np.zeros(len(wires), PART)
        name = (self.destination.ctypes.data, len(self.destination)) if len(self.destination) else (0, 0)
        for k, wire in enumerate(wires):
            parts[k] = wire.ctypes.data, len(wire)
            messages[k] = *name, parts[k : k + 1].ctypes.data, 1, 0, 0, 0, 0
        self._parts_to_send.append(parts)
        return messages
