"""SDO transfers (CiA 301, 7.2.4.3) without a bus: requests and answers of eight bytes, expedited and segmented.

A transfer of the client is a generator: it yields requests, is sent the answers, and returns the data.
"""

from __future__ import annotations

from collections.abc import Generator
from struct import Struct

HEAD = Struct("<BHB")  # command, index, sub-index
_LONG = Struct("<BHBI")

# the upper three bits of the command: the request of the client
SEGMENT_DOWN, DOWNLOAD, UPLOAD, SEGMENT_UP, ABORT = 0x00, 0x20, 0x40, 0x60, 0x80
# and the answer of the server
SEGMENT_DOWN_ANSWER, DOWNLOAD_ANSWER, UPLOAD_ANSWER, SEGMENT_UP_ANSWER = 0x20, 0x60, 0x40, 0x00
KIND, TOGGLE, EXPEDITED, SIZED, LAST = 0xE0, 0x10, 0x02, 0x01, 0x01

# abort codes
TOGGLE_WRONG, COMMAND_UNKNOWN, OUT_OF_MEMORY = 0x05030000, 0x05040001, 0x05040005
NO_ACCESS, WRITE_ONLY, READ_ONLY, NO_OBJECT = 0x06010000, 0x06010001, 0x06010002, 0x06020000
NO_MAPPING, MAPPING_TOO_LONG, INCOMPATIBLE = 0x06040041, 0x06040042, 0x06040043
LENGTH_WRONG, TOO_LONG, TOO_SHORT = 0x06070010, 0x06070012, 0x06070013
NO_SUBINDEX, BAD_VALUE, TOO_HIGH, TOO_LOW = 0x06090011, 0x06090030, 0x06090031, 0x06090032
GENERAL, WRONG_STATE = 0x08000000, 0x08000022
ABORTS = {
    TOGGLE_WRONG: "toggle bit not alternated",
    COMMAND_UNKNOWN: "command unknown",
    OUT_OF_MEMORY: "out of memory",
    NO_ACCESS: "access not supported",
    WRITE_ONLY: "write-only object",
    READ_ONLY: "read-only object",
    NO_OBJECT: "no such object",
    NO_MAPPING: "the object cannot be mapped to a PDO",
    MAPPING_TOO_LONG: "the mapped objects exceed the PDO",
    INCOMPATIBLE: "incompatible parameters",
    LENGTH_WRONG: "wrong length",
    TOO_LONG: "length too high",
    TOO_SHORT: "length too low",
    NO_SUBINDEX: "no such sub-index",
    BAD_VALUE: "value out of range",
    TOO_HIGH: "value too high",
    TOO_LOW: "value too low",
    GENERAL: "general error",
    WRONG_STATE: "not possible in the present state of the drive",
}


class Aborted(Exception):
    """The other side aborted a transfer; `code`: the abort code."""

    def __init__(self, code: int) -> None:
        self.code = code
        super().__init__(f"{ABORTS.get(code, 'refused')} (abort code 0x{code:08X})")


Transfer = Generator[bytes, bytes, bytes]


def abort(index: int, sub: int, code: int) -> bytes:
    return _LONG.pack(ABORT, index, sub, code)


def expedited(kind: int, index: int, sub: int, data: bytes) -> bytes:
    """A request to download, or an answer to an upload, with one to four bytes."""
    command = kind | (4 - len(data)) << 2 | EXPEDITED | SIZED
    return HEAD.pack(command, index, sub) + data.ljust(4, b"\0")


def sized(kind: int, index: int, sub: int, size: int) -> bytes:
    """As `expedited`, for `size` bytes that follow in segments."""
    return _LONG.pack(kind | SIZED, index, sub, size)


def plain(kind: int, index: int, sub: int) -> bytes:
    """A request to upload, or the answer to a download."""
    return _LONG.pack(kind, index, sub, 0)


def segment(kind: int, toggle: int, data: bytes, last: bool) -> bytes:
    """One to seven bytes of a longer value."""
    return bytes((kind | toggle | (7 - len(data)) << 1 | last,)) + data.ljust(7, b"\0")


def segment_data(frame: bytes) -> bytes:
    return frame[1 : 8 - (frame[0] >> 1 & 7)]


def expedited_data(frame: bytes) -> bytes:
    """The data of an expedited request or answer; without a size all four bytes."""
    return frame[4 : 8 - (frame[0] >> 2 & 3)] if frame[0] & SIZED else frame[4:8]


def answers(request: bytes, frame: bytes) -> bool:
    """Whether a frame of the server can be the answer to a request, and not a late one to an earlier request."""
    if len(frame) != 8:
        return False
    kind = frame[0] & KIND
    if kind == ABORT:
        return request[0] & KIND in (SEGMENT_UP, SEGMENT_DOWN) or frame[1:4] == request[1:4]
    expected = (request[0] & KIND, kind)
    if expected in ((DOWNLOAD, DOWNLOAD_ANSWER), (UPLOAD, UPLOAD_ANSWER)):
        return frame[1:4] == request[1:4]
    return expected in ((SEGMENT_DOWN, SEGMENT_DOWN_ANSWER), (SEGMENT_UP, SEGMENT_UP_ANSWER))


def _checked(frame: bytes) -> bytes:
    if frame[0] & KIND == ABORT:
        raise Aborted(_LONG.unpack(frame)[3])
    return frame


def upload(index: int, sub: int) -> Transfer:
    """Read an object. Raises Aborted."""
    frame = _checked((yield plain(UPLOAD, index, sub)))
    if frame[0] & EXPEDITED:
        return expedited_data(frame)
    data, toggle = b"", 0
    while True:
        frame = _checked((yield bytes((SEGMENT_UP | toggle,)) + bytes(7)))
        if frame[0] & TOGGLE != toggle:
            raise Aborted(TOGGLE_WRONG)
        data += segment_data(frame)
        if frame[0] & LAST:
            return data
        toggle ^= TOGGLE


def download(index: int, sub: int, data: bytes) -> Transfer:
    """Write an object; returns nothing. Raises Aborted."""
    if 1 <= len(data) <= 4:
        _checked((yield expedited(DOWNLOAD, index, sub, data)))
        return b""
    _checked((yield sized(DOWNLOAD, index, sub, len(data))))
    toggle = 0
    for start in range(0, max(len(data), 1), 7):
        piece = data[start : start + 7]
        _checked((yield segment(SEGMENT_DOWN, toggle, piece, start + 7 >= len(data))))
        toggle ^= TOGGLE
    return b""
