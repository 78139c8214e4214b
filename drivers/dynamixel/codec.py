"""Packets of Robotis' Dynamixel Protocol 2.0: bytes and their meaning, without I/O and time.

A packet is FF FF FD 00, id, length (2), instruction, parameters, CRC (2); numbers are little-endian. Within instruction
and parameters FF FF FD is followed by a further FD (byte stuffing), so that the header occurs nowhere else; length and
CRC are of the stuffed bytes. Source: Robotis e-Manual, "DYNAMIXEL Protocol 2.0" and "CRC Calculation".
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

HEADER = b"\xff\xff\xfd\x00"
BROADCAST = 0xFE
MAX_ID = 252

# instructions
PING, READ, WRITE, REG_WRITE, ACTION, FACTORY_RESET, REBOOT, CLEAR = 1, 2, 3, 4, 5, 6, 8, 0x10
SYNC_READ, SYNC_WRITE, FAST_SYNC_READ = 0x82, 0x83, 0x8A
BULK_READ, BULK_WRITE, FAST_BULK_READ = 0x92, 0x93, 0x9A
STATUS = 0x55
DAMAGED = 0  # not an instruction of the protocol: a packet with a wrong CRC

# error byte of a status packet: a number, and a bit that is set if the hardware error status is not 0
RESULT_FAIL, BAD_INSTRUCTION, BAD_CRC, BAD_RANGE, BAD_LENGTH, BEYOND_LIMIT, NO_ACCESS = range(1, 8)
ALERT = 0x80
ERRORS = {
    RESULT_FAIL: "instruction failed",
    BAD_INSTRUCTION: "unknown instruction",
    BAD_CRC: "packet damaged",
    BAD_RANGE: "value out of range",
    BAD_LENGTH: "data too short for the register",
    BEYOND_LIMIT: "value beyond the drive's own limit",
    NO_ACCESS: "register cannot be accessed",
}

MULTI_TURN = b"\x01DXL\x22"  # parameters of Clear that reset the number of turns
RESET_ALL = b"\xff"  # parameter of Factory Reset: the id too, not for all drives at once

MAX_LENGTH = 8192  # bytes after the length field: 252 drives that answer in one chain with 28 bytes each
_MARK, _STUFFED = b"\xff\xff\xfd", b"\xff\xff\xfd\xfd"
_HEAD = struct.Struct("<4sBHB")
_SPAN, _LENGTHS = struct.Struct("<HH"), struct.Struct("<BHH")
_OVERHEAD = 7  # bytes before those included in the length


class Packet(NamedTuple):
    """A received packet: parameters without stuffing; in a status packet they begin with its error byte.

    Chained answers of several drives (from BROADCAST) keep the CRC at their end, so that all blocks have the same form.
    """

    id: int
    instruction: int
    params: bytes


class RegisterBlock(NamedTuple):
    """The part of one drive in a chained answer."""

    error: int
    id: int
    data: bytes


class BusPacket(NamedTuple):
    """A packet as a frame of a cycle. id: of the drive or BROADCAST; data: to it the instruction and its parameters;
    from it the error byte and the registers that were requested."""

    id: int
    data: bytes
    t_ns: int = 0
    extended = remote = False  # as CAN frames may be

    @classmethod
    def of(cls, packet: bytes) -> BusPacket:
        """Of a packet to drives."""
        (found,) = Decoder().feed(packet)
        return cls(found.id, bytes((found.instruction,)) + found.params)

    def packed(self) -> bytes:
        """The packet to drives."""
        return packet(self.id, self.data[0], self.data[1:])


# --- CRC ----------------------------------------------------------------------------------------


def _table() -> list[int]:
    """The CRC of every 16-bit word, to process two bytes per step."""
    crc = np.arange(0x10000, dtype=np.uint32)
    for _ in range(16):
        crc = np.where(crc & 0x8000, crc << 1 ^ 0x8005, crc << 1) & 0xFFFF
    return crc.tolist()


_CRC = _table()


def crc16(data: bytes) -> int:
    """x¹⁶ + x¹⁵ + x² + 1, most significant bit first, from 0."""
    if len(data) & 1:
        data = b"\0" + data  # leading zeros do not change the CRC
    crc, table = 0, _CRC
    for word in struct.unpack(f">{len(data) >> 1}H", data):
        crc = table[crc ^ word]
    return crc


# --- encoding -----------------------------------------------------------------------------------


def packet(id: int, instruction: int, params: bytes = b"") -> bytes:
    """The bytes of any packet."""
    if _MARK in params:
        params = params.replace(_MARK, _STUFFED)
    return _with_crc(_HEAD.pack(HEADER, id, len(params) + 3, instruction) + params)


def with_valid_checksum(data: bytes) -> bytes:
    """The bytes of a packet with a valid length and CRC, whatever else they are; other bytes as they are."""
    if len(data) < _OVERHEAD + 3 or not data.startswith(HEADER):
        return data
    return _with_crc(data[:5] + (len(data) - _OVERHEAD).to_bytes(2, "little") + data[7:-2])


def read(id: int, address: int, size: int) -> bytes:
    return packet(id, READ, _SPAN.pack(address, size))


def write(id: int, address: int, data: bytes) -> bytes:
    return packet(id, WRITE, address.to_bytes(2, "little") + data)


def reg_write(id: int, address: int, data: bytes) -> bytes:
    """A write that is executed at the next Action."""
    return packet(id, REG_WRITE, address.to_bytes(2, "little") + data)


def sync_read(address: int, size: int, ids: Iterable[int], fast: bool = False) -> bytes:
    """The same registers of several drives; `fast`: they answer with one chained packet."""
    return packet(BROADCAST, FAST_SYNC_READ if fast else SYNC_READ, _SPAN.pack(address, size) + bytes(ids))


def sync_write(address: int, size: int, rows: bytes) -> bytes:
    """rows: for each drive its id and `size` bytes. Not answered."""
    return packet(BROADCAST, SYNC_WRITE, _SPAN.pack(address, size) + rows)


def bulk_read(spans: Iterable[tuple[int, int, int]], fast: bool = False) -> bytes:
    """spans: (id, address, size) of several drives."""
    params = b"".join(_LENGTHS.pack(*span) for span in spans)
    return packet(BROADCAST, FAST_BULK_READ if fast else BULK_READ, params)


def bulk_write(rows: Iterable[tuple[int, int, bytes]]) -> bytes:
    """rows: (id, address, data) of several drives. Not answered."""
    params = b"".join(_LENGTHS.pack(id, address, len(data)) + data for id, address, data in rows)
    return packet(BROADCAST, BULK_WRITE, params)


def status(id: int, error: int, data: bytes = b"") -> bytes:
    """The answer of one drive."""
    return packet(id, STATUS, bytes((error,)) + data)


def chained(blocks: Sequence[RegisterBlock], whole: int) -> bytes:
    """The chained answer to a fast read, with the blocks of the drives that answer; whole: its announced length.

    Each drive ends its block with the CRC of all bytes before. Such answers are not stuffed.
    """
    answer = _HEAD.pack(HEADER, BROADCAST, whole + 1, STATUS)
    for block in blocks:
        answer = _with_crc(answer + bytes((block.error, block.id)) + block.data)
    return answer


def _with_crc(head: bytes) -> bytes:
    return head + crc16(head).to_bytes(2, "little")


# --- decoding -----------------------------------------------------------------------------------


class Decoder:
    """Packets from chunks of bytes; resynchronises after damage. lost: pieces that were not a packet."""

    def __init__(self) -> None:
        self.rest = b""  # the beginning of an incomplete packet
        self.lost = 0

    def clear(self) -> None:
        self.rest = b""

    def feed(self, chunk: bytes) -> list[Packet]:
        """The packets that the chunk completes; those with a wrong CRC as DAMAGED, without parameters."""
        data, start, in_damage = self.rest + chunk if self.rest else chunk, 0, False
        packets: list[Packet] = []
        while (head := data.find(HEADER, start)) >= 0:
            self.lost += head > start and not in_damage
            start, in_damage = head, False
            if len(data) < head + _HEAD.size:
                break
            _, id, length, instruction = _HEAD.unpack_from(data, head)
            end = head + _OVERHEAD + length
            if not 3 <= length <= MAX_LENGTH or (id > MAX_ID and id != BROADCAST):
                self.lost += 1
                start, in_damage = head + len(HEADER), True
                continue
            chain = instruction == STATUS and id == BROADCAST
            # a header within a stuffed packet means that the packet was truncated or its length damaged
            inner = -1 if chain else data.find(HEADER, head + len(HEADER), end - 2)
            if inner >= 0:
                self.lost += 1
                start = inner
                continue
            if len(data) < end:
                break
            if crc16(data[head : end - 2]) != data[end - 2] | data[end - 1] << 8:
                self.lost += 1
                packets.append(Packet(id, DAMAGED, b""))
                start, in_damage = head + len(HEADER), True
                continue
            params = data[head + _HEAD.size : end if chain else end - 2]
            if not chain and _STUFFED in params:
                params = params.replace(_STUFFED, _MARK)
            packets.append(Packet(id, instruction, params))
            start = end
            if end == len(data):
                break
        else:  # keep at most the beginning of a header
            keep = next((n for n in (3, 2, 1) if data.endswith(HEADER[:n], start)), 0)
            self.lost += len(data) - keep > start and not in_damage
            start = len(data) - keep
        self.rest = data[start:]
        return packets


def complete_blocks(rest: bytes, size: int) -> list[RegisterBlock]:
    """The complete blocks, with `size` bytes of data each, of an incomplete chained answer (`Decoder.rest`)."""
    blocks, at = [], _HEAD.size
    if len(rest) < at or not rest.startswith(HEADER) or (rest[4], rest[7]) != (BROADCAST, STATUS):
        return blocks
    while (crc_at := at + 2 + size) + 2 <= len(rest) and crc16(rest[:crc_at]) == rest[crc_at] | rest[crc_at + 1] << 8:
        blocks.append(RegisterBlock(rest[at], rest[at + 1], rest[at + 2 : crc_at]))
        at = crc_at + 2
    return blocks


def spans(params: bytes) -> list[tuple[int, int, int]] | None:
    """(id, address, size) of a bulk read; None if the parameters are no such list."""
    return list(_LENGTHS.iter_unpack(params)) if params and len(params) % _LENGTHS.size == 0 else None


def sync_span(params: bytes) -> tuple[int, int, bytes] | None:
    """(address, size, the rest) of a read or a sync instruction; None if there are too few parameters."""
    return (*_SPAN.unpack_from(params), params[_SPAN.size :]) if len(params) >= _SPAN.size else None


def bulk_rows(params: bytes) -> list[tuple[int, int, bytes]] | None:
    """(id, address, data) of a bulk write; None if the parameters are no such list."""
    rows, at = [], 0
    while at < len(params):
        if len(params) < at + _LENGTHS.size:
            return None
        id, address, size = _LENGTHS.unpack_from(params, at)
        at += _LENGTHS.size
        if size == 0 or len(params) < at + size:
            return None
        rows.append((id, address, params[at : at + size]))
        at += size
    return rows or None
