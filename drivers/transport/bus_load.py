"""The time of frames and bytes on the wire, and the bus load of a cycle of them.

Fields of the frames: ISO 11898-1:2015 (classic CAN also Bosch, CAN Specification 2.0, 1991). After five equal bits a
frame has a stuff bit, which begins the next run: at most one for the first five bits and one for every four more.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple, cast

from cosim.plugins.drivers.transport.connection import CanFrame
from cosim.plugins.drivers.transport.connection_params import CanParams, SerialParams

BYTE_BITS = 10  # start, eight bits of data, stop
INTERMISSION = 3
FD_LENGTHS = (*range(9), 12, 16, 20, 24, 32, 48, 64)  # bytes of data that a CAN FD frame may have

_CRC15 = 0x4599
_TAIL = 1 + 1 + 1 + 7 + INTERMISSION  # CRC delimiter, acknowledgement and its delimiter, end of frame
_MOST_BYTES = FD_LENGTHS[-1]


class Traffic(NamedTuple):
    """What one cycle sends and receives: CanFrames or bytes."""

    out: Sequence[CanFrame | bytes]
    back: Sequence[CanFrame | bytes]

    def load(self, params: CanParams | SerialParams, period: float) -> float:
        """See `estimate`."""
        return estimate(self, params, period)


def estimate(traffic: Traffic, params: CanParams | SerialParams, period: float) -> float:
    """The largest bus load of a cycle of `period` [s]; above 1 the cycle does not fit.

    Both directions together: frames share a bus, and bytes a half-duplex serial link.
    """
    return sum(seconds(item, params) for item in (*traffic.out, *traffic.back)) / period


def seconds(item: CanFrame | bytes, params: CanParams | SerialParams) -> float:
    """Time on the wire [s], with the intermission after a frame and the largest number of stuff bits."""
    if isinstance(item, CanFrame):
        bus = cast(CanParams, params)
        return frame_weight(item, weights(bus.bitrate, bus.data_bitrate)) / bus.bitrate
    return BYTE_BITS * len(item) / cast(SerialParams, params).baudrate


# --- frames -------------------------------------------------------------------------------------

Weights = tuple[tuple[float, ...], ...]  # by kind of frame and bytes of data


@cache
def weights(bitrate: float, data_bitrate: float | None) -> Weights:
    """The largest numbers of bits of frames, in bits of `bitrate` [bit/s]; bits at the data rate count for less."""
    faster = bitrate / (data_bitrate or bitrate)
    table = []
    for kind in range(8):
        rows = [worst_bits(length, bool(kind & 1), bool(kind & 2), bool(kind & 4)) for length in range(_MOST_BYTES + 1)]
        table.append(tuple(slow + fast * faster for slow, fast in rows))
    return tuple(table)


def frame_weight(frame: CanFrame, table: Weights) -> float:
    """The weight of a frame in a table of `weights`."""
    length = 0 if frame.remote else min(len(frame.data), _MOST_BYTES)
    return table[frame.extended + 2 * frame.fd + 4 * frame.switched][length]


def worst_bits(length: int, extended: bool = False, fd: bool = False, switched: bool = False) -> tuple[int, int]:
    """The largest numbers of bits of a frame with `length` bytes of data: (at the nominal rate, at the data rate)."""
    if not fd:
        covered = (54 if extended else 34) + 8 * length  # from start of frame to CRC
        return covered + _stuff_bits_max(covered) + _TAIL, 0
    length = next((size for size in FD_LENGTHS if size >= length), _MOST_BYTES)
    head = 36 if extended else 17  # from start of frame to the bit that switches the rate
    covered = head + 1 + 4 + 8 * length  # error state, length code, data
    # count of stuff bits with its parity and CRC, with a fixed stuff bit before every four of them
    check = 4 + (17 if length <= 16 else 21)
    early = _stuff_bits_max(head)
    slow = head + early + _TAIL - 1  # the CRC delimiter is still at the data rate
    fast = covered - head + _stuff_bits_max(covered) - early + check + -(-check // 4) + 1
    return (slow, fast) if switched else (slow + fast, 0)


def exact_bits(frame: CanFrame) -> int:
    """Bits of a classic frame with its actual stuff bits and the intermission."""
    covered = _stuffed_part(frame)
    stuffed, run, last = 0, 0, -1
    for bit in covered:
        run = run + 1 if bit == last else 1
        last = bit
        if run == 5:
            stuffed, run, last = stuffed + 1, 1, 1 - bit
    return len(covered) + stuffed + _TAIL


def _stuff_bits_max(bits: int) -> int:
    return (bits - 1) // 4


def _stuffed_part(frame: CanFrame) -> list[int]:
    """The bits of a classic frame from start of frame to CRC."""
    remote = int(frame.remote)
    if frame.extended:
        fields = [(0, 1), (frame.id >> 18, 11), (1, 1), (1, 1), (frame.id & 0x3FFFF, 18), (remote, 1), (0, 2)]
    else:
        fields = [(0, 1), (frame.id, 11), (remote, 1), (0, 2)]
    fields.append((min(len(frame.data), 8), 4))
    fields.extend((byte, 8) for byte in (b"" if frame.remote else frame.data))
    bits = [value >> place & 1 for value, width in fields for place in reversed(range(width))]
    crc = 0
    for bit in bits:
        crc = (crc << 1 & 0x7FFF) ^ (_CRC15 if bit ^ crc >> 14 else 0)
    return bits + [crc >> place & 1 for place in reversed(range(15))]
