"""The cycle of VESCs; see `drivers/common/cycle.py` and `VescDriver`.

Its frames are those on CAN, where an answer comes in parts: seven bytes of content each, then how many they are and
their checksum. On a UART the same content is in one packet (`wires`).
"""

from __future__ import annotations

import math
from binascii import crc_hqx
from collections.abc import Iterator, Sequence

from cosim.plugins.drivers.common.cycle import (
    EFFORT,
    FAULTY,
    POSITION,
    SCALE,
    STATE_EFFORT,
    STATE_POSITION,
    STATE_TEMPERATURE,
    STATE_VELOCITY,
    VELOCITY,
    ZERO,
    Numbers,
    Reception,
    Transmission,
    clipped,
    effort_of_motor,
    nearest,
    requested_effort,
)
from cosim.plugins.drivers.common.frame_layout import FrameField, Kind, ReceivedFrame, Role, SentFrame
from cosim.plugins.drivers.transport import CanFrame
from cosim.plugins.drivers.transport.content_packets import FILL, PROCESS, extended_frame
from cosim.plugins.drivers.vesc import codec

# settings: rpm of the field per rad/s; N·m/A; the position of the last state, of which only the turn matters
SPEED, CONSTANT, LAST = range(3)
# numbers received: the bytes of the content, in parts; how many they are, and their checksum
WIDTH = 7  # bytes of a part
CONTENT = 5 + codec.LAYOUTS[codec.VALUES].size
SIZE, CRC = CONTENT, CONTENT + 1
# where they begin: °C/10 i16, A/100 i32, rpm i32, code u8, degrees/10⁶ i32, status u8
_TEMPERATURE, _CURRENT, _ERPM, FAULT, _ANGLE, STATUS = 5, 7, 11, 15, 16, 20
_HEAD = bytes([codec.GET_VALUES_SELECTIVE]) + codec.VALUES.to_bytes(4, "big")
_COMMAND, _MASK = float(_HEAD[0]), float(codec.VALUES)
_CRC_OF_HEAD, _CRC_OF = crc_hqx(_HEAD, 0), tuple(crc_hqx(bytes([byte]), 0) for byte in range(256))
TURN = 2 * math.pi
LARGEST_TURN = 0.9 * math.pi  # rad from the measured angle; beyond half a turn a target would be reached the other way
_LARGEST_FIELD = 2e9  # of a field with 32 bits
_STEPS = {mode: steps for mode, (_, _, steps) in codec.SETPOINTS.items()}
_PER_AMPERE, _PER_RPM, _PER_DEGREE = _STEPS["effort"], _STEPS["velocity"], _STEPS["position"]
_RADIAN, _DEGREE = 180.0 / math.pi, math.pi / 180.0


def _word(r: Numbers, at: int) -> float:
    """A number of four bytes, with its sign."""
    word = ((r[at] * 256.0 + r[at + 1]) * 256.0 + r[at + 2]) * 256.0 + r[at + 3]
    return word - 4294967296.0 if r[at] >= 128.0 else word


def _whole(s: Numbers, c: Numbers, r: Numbers, result: Numbers) -> None:
    """Whether the parts are an answer with the measured values; answers to other requests have other sizes."""
    result[0] = -1.0
    if r[SIZE] == CONTENT:
        crc, mask = _CRC_OF_HEAD, ((r[1] * 256.0 + r[2]) * 256.0 + r[3]) * 256.0 + r[4]
        for byte in r[_TEMPERATURE:CONTENT]:
            crc = crc << 8 & 0xFFFF ^ _CRC_OF[crc >> 8 ^ int(byte)]
        result[0] = 1.0 if r[0] == _COMMAND and mask == _MASK and r[CRC] == crc else 0.0


def _in_effort_mode(s: Numbers, c: Numbers, r: Numbers, sent: Numbers) -> None:
    effort = requested_effort(c)
    sent[0] = nearest(effort_of_motor(c, effort) / s[CONSTANT] * _PER_AMPERE, -_LARGEST_FIELD, _LARGEST_FIELD)
    sent[1] = effort


def _in_velocity_mode(s: Numbers, c: Numbers, r: Numbers, sent: Numbers) -> None:
    sent[0] = nearest(c[SCALE] * c[VELOCITY] * s[SPEED] * _PER_RPM, -_LARGEST_FIELD, _LARGEST_FIELD)
    sent[1] = c[EFFORT]


def _in_position_mode(s: Numbers, c: Numbers, r: Numbers, sent: Numbers) -> None:
    target = clipped(c[SCALE] * (c[POSITION] - c[ZERO]), s[LAST] - LARGEST_TURN, s[LAST] + LARGEST_TURN)
    sent[0] = nearest(target * _RADIAN % 360.0 * _PER_DEGREE, -_LARGEST_FIELD, _LARGEST_FIELD)
    sent[1] = c[EFFORT]


def _state(s: Numbers, c: Numbers, r: Numbers, state: Numbers) -> None:
    """Its position is an angle: turns are counted here, from one state to the next."""
    angle = _word(r, _ANGLE) / 1e6 * _DEGREE
    s[LAST] = angle + TURN * nearest((s[LAST] - angle) / TURN, -1e15, 1e15)
    state[STATE_POSITION], state[STATE_VELOCITY] = s[LAST], _word(r, _ERPM) / s[SPEED]
    state[STATE_EFFORT] = _word(r, _CURRENT) / 100.0 * s[CONSTANT]
    temperature = r[_TEMPERATURE] * 256.0 + r[_TEMPERATURE + 1]
    state[STATE_TEMPERATURE] = (temperature - 65536.0 if temperature >= 32768.0 else temperature) / 10.0
    state[FAULTY] = 1.0 if r[FAULT] != 0.0 or int(r[STATUS]) & 1 else 0.0


_COMMANDS = {"effort": _in_effort_mode, "velocity": _in_velocity_mode, "position": _in_position_mode}


def reception(ids: Sequence[int], answers: int, gap_ns: int) -> Reception:
    """answers: what is added to an id to be the receiver of its answers; gap_ns: between two of them, after which a
    drive may have restarted."""
    frames = [frame for k, id in enumerate(ids) for frame in _received(k, id + answers, gap_ns)]
    return Reception(_state, frames, (0.0,) * (CRC + 1), _whole)


def _received(k: int, receiver: int, gap_ns: int) -> Iterator[ReceivedFrame]:
    for at in range(0, CONTENT, WIDTH):
        fields = tuple(FrameField(1 + j, Kind.UINT8, at + j) for j in range(WIDTH))
        data = bytes([at]).ljust(1 + WIDTH, b"\0")
        yield ReceivedFrame(extended_frame(FILL, receiver, data), k, fields, Role.NOTICE, own=0xFF)
    fields = FrameField(2, Kind.UINT16_BIG, SIZE), FrameField(4, Kind.UINT16_BIG, CRC)
    yield ReceivedFrame(extended_frame(PROCESS, receiver, bytes(6)), k, fields, exact=True, longest_gap_ns=gap_ns)


def transmission(mode: str, ids: Sequence[int], requests: Sequence[CanFrame]) -> Transmission:
    """requests: for the measured values, by drive."""
    field = FrameField(0, Kind.INT32_BIG, 0)
    sent = [SentFrame(codec.setpoint_frame(id, mode), k, (field,)) for k, id in enumerate(ids)]
    return Transmission(_COMMANDS[mode], [*sent, *map(SentFrame, requests)])
