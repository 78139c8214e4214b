"""Modbus RTU: requests and answers of the functions 3, 4, 6, 16 and 23, exceptions, and values in 16 bit registers.

Source: MODBUS Application Protocol Specification V1.1b3, and MODBUS over Serial Line V1.02 for frames and CRC. A frame
is node, function, data and CRC. Where it ends follows from its function, so that no pause has to be measured.
The functions make up a protocol for a half-duplex link (`transport/half_duplex.py`).
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Sequence
from typing import NamedTuple

READ, READ_INPUTS, WRITE_ONE, WRITE, READ_WRITE, FAILED = 3, 4, 6, 16, 23, 0x80
ILLEGAL_FUNCTION, ILLEGAL_ADDRESS, ILLEGAL_VALUE = 1, 2, 3
EXCEPTIONS = {
    ILLEGAL_FUNCTION: "illegal function",
    ILLEGAL_ADDRESS: "illegal data address",
    ILLEGAL_VALUE: "illegal data value",
    4: "server device failure",
    6: "server device busy",
}
MAX_FRAME = 256  # bytes
MAX_READ, MAX_WRITE, MAX_WRITE_OF_BOTH = 125, 123, 121  # registers; the last one of function 23
BROADCAST = 0  # the node of requests to all, which are not answered
SILENCE = 3.5 * 11  # bits: characters between two frames
FAST_SILENCE = 1.75e-3  # s, the same above 19200 bit/s (MODBUS over Serial Line V1.02, 2.5.1.1)
TYPES = {  # format, smallest and largest value
    "int16": (">h", -0x8000, 0x7FFF),
    "uint16": (">H", 0, 0xFFFF),
    "int32": (">i", -0x8000_0000, 0x7FFF_FFFF),
    "uint32": (">I", 0, 0xFFFF_FFFF),
    "float32": (">f", -3.4e38, 3.4e38),
}
_HEADS = {READ: 6, READ_INPUTS: 6, WRITE_ONE: 6, WRITE: 7, READ_WRITE: 11}  # bytes of a request before its values
FUNCTIONS = frozenset(_HEADS)
_CRC_TABLE: list[int] = []
for _byte in range(256):
    for _ in range(8):
        _byte = _byte >> 1 ^ (0xA001 if _byte & 1 else 0)
    _CRC_TABLE.append(_byte)


def silence(baudrate: float) -> float:
    """The pause [s] between two frames."""
    return max(SILENCE / baudrate, FAST_SILENCE) if baudrate > 19200 else SILENCE / baudrate


class RtuRequest(NamedTuple):
    """A request to read or write registers. quantity: of registers that are read from `register` on; words are written
    from `at` on."""

    node: int
    function: int
    register: int = 0
    quantity: int = 0
    at: int = 0
    words: tuple[int, ...] = ()


def crc(data: bytes) -> int:
    """CRC-16 with the polynomial 8005h, reflected, beginning with FFFFh; it follows a frame with its low byte first."""
    value = 0xFFFF
    for byte in data:
        value = value >> 8 ^ _CRC_TABLE[(value ^ byte) & 0xFF]
    return value


def checked(body: bytes) -> bytes:
    """The frame of a body: with its CRC."""
    return body + crc(body).to_bytes(2, "little")


def with_valid_checksum(data: bytes) -> bytes:
    return checked(data[:-2])


def encode(request: RtuRequest) -> bytes:
    """The frame of a request."""
    node, function, register, count, at, words = request
    body = struct.pack(">BB", node, function)
    if count:
        body += struct.pack(">HH", register, count)
    if function == WRITE_ONE:
        body += struct.pack(">HH", at, words[0])
    elif words:
        body += struct.pack(f">HHB{len(words)}H", at, len(words), 2 * len(words), *words)
    return checked(body)


def decode(frame: bytes) -> RtuRequest | None:
    """The request of a frame; None for one that is damaged or requests too much."""
    node, function = frame[:2] if len(frame) > 1 else (0, 0)
    if function not in _HEADS or _request_size(frame) != len(frame) or crc(frame):
        return None
    request = _fields(frame[2:-2], node, function)
    return None if request is None or mistake(request) else request


def mistake(request: RtuRequest) -> int:
    """The exception of a request of more registers than fit, or beyond the last address, in the order of the
    specification; 0 for none."""
    reads, writes = request.function in (READ, READ_INPUTS, READ_WRITE), request.function in (WRITE, READ_WRITE)
    most = MAX_WRITE_OF_BOTH if request.function == READ_WRITE else MAX_WRITE
    if (reads and not 1 <= request.quantity <= MAX_READ) or (writes and not 1 <= len(request.words) <= most):
        return ILLEGAL_VALUE
    last = max(request.register + request.quantity, request.at + len(request.words))
    return ILLEGAL_ADDRESS if last > 0x10000 else 0


def mistaken(frame: bytes) -> int:
    """The exception of a frame that is complete and that `decode` refuses; 0 where it does not."""
    request = _fields(frame[2:-2], frame[0], frame[1])
    return ILLEGAL_VALUE if request is None else mistake(request)


def _fields(body: bytes, node: int, function: int) -> RtuRequest | None:
    """Of the bytes between function and CRC; None where the numbers of registers and bytes to be written differ."""
    register, count = 0, 0
    if function in (READ, READ_INPUTS, READ_WRITE):
        register, count = struct.unpack_from(">HH", body)
        body = body[4:]
    if function == WRITE_ONE:
        at, word = struct.unpack(">HH", body)
        return RtuRequest(node, function, at=at, words=(word,))
    if not body:
        return RtuRequest(node, function, register, count)
    at, n, size = struct.unpack_from(">HHB", body)
    if size != 2 * n:
        return None
    return RtuRequest(node, function, register, count, at, struct.unpack(f">{n}H", body[5:]))


def split(data: bytes) -> tuple[list[bytes], bytes]:
    """(complete request frames, the rest that may become one); bytes in between are skipped."""
    return split_of(data, frozenset())


def split_of(data: bytes, nodes: Collection[int]) -> tuple[list[bytes], bytes]:
    """As `split`, with frames of any other function to these nodes too: they end where their CRC is right."""
    frames, begin, kept = [], 0, None
    while begin < len(data):
        size = _request_size(data[begin:])
        if begin + size > len(data) and size <= MAX_FRAME:
            break
        if not size and data[begin] in nodes:
            size = _size_by_crc(data[begin : begin + MAX_FRAME])
            if not size and kept is None and len(data) - begin < MAX_FRAME:
                kept = begin  # the beginning of one, unless a complete frame follows
        frame = data[begin : begin + size]
        if size and size <= MAX_FRAME and not crc(frame):
            frames.append(frame)
            begin, kept = begin + size, None
        else:
            begin += 1
    return frames, data[begin if kept is None else kept :]


def _size_by_crc(data: bytes) -> int:
    """Of the shortest frame with a right CRC that begins here; 0 for none."""
    value = 0xFFFF
    for size, byte in enumerate(data, 1):
        value = value >> 8 ^ _CRC_TABLE[(value ^ byte) & 0xFF]
        if not value and size >= 4:
            return size
    return 0


def answer(request: RtuRequest, words: Sequence[int] = ()) -> bytes:
    """The answer to a request, with the words that it reads."""
    head = struct.pack(">BB", request.node, request.function)
    if request.quantity:
        return checked(head + struct.pack(f">B{len(words)}H", 2 * len(words), *words))
    return checked(encode(request)[:6])


def answer_size(request: RtuRequest) -> int:
    """Bytes of the answer to a request."""
    return len(answer(request, (0,) * request.quantity))


def is_like_its_answer(request: RtuRequest) -> bool:
    """Whether the answer to a request is the request itself."""
    return request.function == WRITE_ONE


def refusal(request: RtuRequest, exception: int) -> bytes:
    """The answer to a request with an exception of EXCEPTIONS."""
    return refusal_of(request.node, request.function, exception)


def refusal_of(node: int, function: int, exception: int) -> bytes:
    """As `refusal`."""
    return checked(bytes((node, function | FAILED, exception)))


def find_answer(request: RtuRequest, data: bytes) -> bytes | None:
    """The first complete answer to a request in received bytes, or its refusal; None if there is none.

    What precedes it is skipped: damaged bytes, or an echo of a request that reads.
    """
    expected = answer(request, (0,) * request.quantity)
    head, size = expected[: 3 if request.quantity else 6], len(expected)
    failed = bytes((request.node, request.function | FAILED))
    for begin in range(len(data) - 4):
        for start, end in ((head, begin + size), (failed, begin + 5)):
            if data.startswith(start, begin) and len(data) >= end and not crc(data[begin:end]):
                return data[begin:end]
    return None


def read_words(answer: bytes) -> tuple[int, ...]:
    """The words of an answer to a request that reads; none of another one."""
    data = answer[3:-2]
    return struct.unpack(f">{len(data) // 2}H", data) if data and len(data) == answer[2] & ~1 else ()


def to_words(value: float, kind: str, low_first: bool = False) -> tuple[int, ...]:
    """The registers of a finite value of one of TYPES, clipped to its range; the high word is the first one."""
    layout, low, high = TYPES[kind]
    value = min(max(value, low), high)
    raw = struct.pack(layout, value if kind == "float32" else round(value))
    words = struct.unpack(f">{len(raw) // 2}H", raw)
    return words[::-1] if low_first else words


def from_words(words: Sequence[int], kind: str, low_first: bool = False) -> float:
    """The value of registers."""
    raw = struct.pack(f">{len(words)}H", *(reversed(words) if low_first else words))
    return struct.unpack(TYPES[kind][0], raw)[0]


def _request_size(data: bytes) -> int:
    """The size of the request frame that begins here as far as it is known, 0 for no request."""
    head = _HEADS.get(data[1] if len(data) > 1 else READ, 0)
    if head in (0, 6):
        return head and head + 2
    return head + 2 + (data[head - 1] if len(data) >= head else 0)
