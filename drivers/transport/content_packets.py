"""Content of up to 512 bytes, a command or an answer, in a packet on a UART and in frames on CAN, as the firmware of
VESCs carries it (its comm/packet.c and comm/comm_can.c).

On a UART a packet is 2, length u8 (or 3, length u16), content, CRC-16/XMODEM of the content, 3. On CAN the frames have
29 bits of identifier, kind · 256 + receiver: short content, and content in parts.
"""

from __future__ import annotations

from binascii import crc_hqx
from collections.abc import Iterable
from typing import NamedTuple

from cosim.plugins.drivers.transport.connection import CanFrame

LONGEST_CONTENT = 512  # bytes of content
FILL, FILL_LONG, PROCESS, SHORT = 5, 6, 7, 8  # kinds of CAN frames, CAN_PACKET_ID
KINDS = (FILL, FILL_LONG, PROCESS, SHORT)
SHORT_SIZE = 6  # bytes of content of one frame
# content is to be answered, content is an answer, and content to be taken without an answer
ASK, TELL, SILENT = 0, 1, 2
ASK_AS_REQUEST = 3  # content is to be answered, by content that is marked ASK


# --- UART -----------------------------------------------------------------------------------------


def packet(content: bytes) -> bytes:
    size = len(content)
    head = bytes([2, size]) if size < 256 else b"\x03" + size.to_bytes(2, "big")
    return head + content + crc_hqx(content, 0).to_bytes(2, "big") + b"\x03"


def with_valid_checksum(data: bytes) -> bytes:
    """A packet of this content, whatever its length and checksum."""
    start = 3 if data[:1] == b"\x03" else 2
    return packet(data[start:-3]) if 0 < len(data) - start - 3 <= LONGEST_CONTENT else data


class PacketReader:
    """Finds packets in chunks of bytes. lost: counter of spoilt ones."""

    def __init__(self) -> None:
        self.lost, self._rest = 0, b""

    def feed(self, chunk: bytes) -> list[bytes]:
        """The contents that the chunk completes."""
        data, found, spoilt = self._rest + chunk, [], False
        while data:
            start = data[0]
            size = int.from_bytes(data[1:start], "big") if len(data) >= start else 1
            if start not in (2, 3) or not 0 < size <= LONGEST_CONTENT:
                data, spoilt = data[1:], True
                continue
            end = start + size + 3
            if len(data) < max(end, start):
                break
            content = data[start : start + size]
            good = data[start + size : end] == crc_hqx(content, 0).to_bytes(2, "big") + b"\x03"
            if good:
                found.append(content)
            data, spoilt = data[end if good else 1 :], spoilt or not good
        self.lost, self._rest = self.lost + spoilt, data
        return found


# --- CAN ------------------------------------------------------------------------------------------


def extended_frame(kind: int, receiver: int, data: bytes) -> CanFrame:
    return CanFrame(kind << 8 | receiver, data, extended=True)


def identifiers(receivers: Iterable[int]) -> set[int]:
    """Of the frames with content for these receivers."""
    return {kind << 8 | receiver for receiver in receivers for kind in KINDS}


def frames(receiver: int, sender: int, content: bytes, what: int) -> list[CanFrame]:
    """Content in one frame or in parts; what: ASK or TELL."""
    head, size = bytes([sender, what]), len(content)
    if size <= SHORT_SIZE:
        return [extended_frame(SHORT, receiver, head + content)]
    parts, at = [], 0
    while at < size:
        kind, width, step = (FILL, 1, 7) if at < 256 else (FILL_LONG, 2, 6)
        parts.append(extended_frame(kind, receiver, at.to_bytes(width, "big") + content[at : at + step]))
        at += step
    tail = head + size.to_bytes(2, "big") + crc_hqx(content, 0).to_bytes(2, "big")
    return [*parts, extended_frame(PROCESS, receiver, tail)]


class Content(NamedTuple):
    """A command or an answer that the frames of a CAN bus have brought."""

    receiver: int
    sender: int
    what: int  # ASK, TELL, …
    data: bytes


class FrameReader:
    """Puts content together. lost: counter of what could not be."""

    def __init__(self) -> None:
        self.lost = 0
        self._parts: dict[int, bytearray] = {}  # by receiver

    def complete(self, frame: CanFrame) -> Content | None:
        """What the frame completes."""
        kind, receiver, data = frame.id >> 8, frame.id & 0xFF, frame.data
        if not frame.extended or frame.remote or kind not in KINDS:
            return None
        part = self._parts.setdefault(receiver, bytearray(LONGEST_CONTENT))
        if kind == SHORT and len(data) > 2:
            return Content(receiver, data[0], data[1], data[2:])
        if kind == PROCESS and len(data) == 6:
            content = bytes(part[: int.from_bytes(data[2:4], "big")])
            if content and crc_hqx(content, 0).to_bytes(2, "big") == data[4:]:
                return Content(receiver, data[0], data[1], content)
        width = {FILL: 1, FILL_LONG: 2}.get(kind, 8)
        at = int.from_bytes(data[:width], "big")
        if len(data) <= width or at + len(data) - width > LONGEST_CONTENT:
            self.lost += 1
        else:
            part[at : at + len(data) - width] = data[width:]
        return None
