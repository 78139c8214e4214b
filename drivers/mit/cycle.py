"""The cycle of drives with the Mini Cheetah protocol; see `drivers/common/cycle.py`, `codec` and `MitDriver`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from cosim.plugins.drivers.common.cycle import (
    EFFORT,
    FAULTY,
    KD,
    KP,
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
)
from cosim.plugins.drivers.common.frame_layout import FrameField, Kind, ReceivedFrame, SentFrame
from cosim.plugins.drivers.mit import codec
from cosim.plugins.drivers.transport import CanFrame

# settings: ranges of the drive; limit of its effort, and gains, in its own loops; whether it is a Damiao drive
MAX_POSITION, MAX_VELOCITY, MAX_EFFORT, MAX_KP, MAX_KD, EFFORT_LIMIT, OWN_KP, OWN_KD, DAMIAO = range(9)
# numbers received: state of a Damiao drive; motion; the last two bytes: temperatures of a Damiao drive, of others
# temperature and error, which some do not send
STATE, PLACE, SPEED, TORQUE, FIRST, SECOND = range(6)
_WIDE, _MAX_U12, _ON, _ZERO_DEGREES = 65535.0, float(codec.MAX_U12), 1.0, 40.0

_COMMAND_FIELDS = (
    FrameField(0, Kind.UINT16_BIG, 0),
    FrameField(2, Kind.UPPER12, 1),
    FrameField(3, Kind.LOWER12, 2),
    FrameField(5, Kind.UPPER12, 3),
    FrameField(6, Kind.LOWER12, 4),
)
_MOTION = FrameField(1, Kind.UINT16_BIG, PLACE), FrameField(3, Kind.UPPER12, SPEED), FrameField(4, Kind.LOWER12, TORQUE)
_TAIL = FrameField(6, Kind.UINT8, FIRST), FrameField(7, Kind.UINT8, SECOND)


def _code(value: float, high: float, full: float) -> float:
    """The nearest code of a value in ±high; of two the lower one, which the drives' own tools send for 0."""
    place = clipped(0.5 + 0.5 * value / high, 0.0, 1.0) * full
    code = nearest(place, 0.0, full)
    return code - 1.0 if code - place >= 0.5 else code


def _measured(code: float, high: float, full: float) -> float:
    """Drives round down."""
    return high * (2.0 * (code + 0.5) / full - 1.0)


def _within_reach(target: float, measured: float, effort: float, gain: float) -> float:
    """A target no farther than an effort reaches with a gain."""
    if gain <= 0.0:
        return target
    reach = effort / gain
    return clipped(target, measured - reach, measured + reach)


def _put(s: Numbers, sent: Numbers, position: float, velocity: float, kp: float, kd: float, effort: float) -> None:
    """Values beyond the ranges are clipped."""
    sent[0], sent[1] = _code(position, s[MAX_POSITION], _WIDE), _code(velocity, s[MAX_VELOCITY], _MAX_U12)
    sent[2] = _code(2.0 * kp - s[MAX_KP], s[MAX_KP], _MAX_U12)
    sent[3] = _code(2.0 * kd - s[MAX_KD], s[MAX_KD], _MAX_U12)
    sent[4] = _code(effort, s[MAX_EFFORT], _MAX_U12)


def _in_effort_mode(s: Numbers, c: Numbers, r: Numbers, sent: Numbers) -> None:
    """The gains go to the drive, rounded to its steps; the rest of them is closed here."""
    scale, square = c[SCALE], c[SCALE] * c[SCALE]
    position, velocity = scale * (c[POSITION] - c[ZERO]), scale * c[VELOCITY]
    kp_step, kd_step, asked_kp, asked_kd = s[MAX_KP] / _MAX_U12, s[MAX_KD] / _MAX_U12, c[KP] / square, c[KD] / square
    kp, kd = kp_step * nearest(asked_kp / kp_step, 0.0, _MAX_U12), kd_step * nearest(asked_kd / kd_step, 0.0, _MAX_U12)
    loop = (asked_kp - kp) * (position - _measured(r[PLACE], s[MAX_POSITION], _WIDE))
    loop = loop + (asked_kd - kd) * (velocity - _measured(r[SPEED], s[MAX_VELOCITY], _MAX_U12))
    effort = c[EFFORT] + loop * scale
    _put(s, sent, position, velocity, kp, kd, effort_of_motor(c, effort))
    sent[5] = effort


def _in_velocity_mode(s: Numbers, c: Numbers, r: Numbers, sent: Numbers) -> None:
    position, velocity = c[SCALE] * (c[POSITION] - c[ZERO]), c[SCALE] * c[VELOCITY]
    velocity = _within_reach(velocity, _measured(r[SPEED], s[MAX_VELOCITY], _MAX_U12), s[EFFORT_LIMIT], s[OWN_KD])
    _put(s, sent, position, velocity, 0.0, s[OWN_KD], effort_of_motor(c, c[EFFORT]))
    sent[5] = c[EFFORT]


def _in_position_mode(s: Numbers, c: Numbers, r: Numbers, sent: Numbers) -> None:
    position, velocity = c[SCALE] * (c[POSITION] - c[ZERO]), c[SCALE] * c[VELOCITY]
    position = _within_reach(position, _measured(r[PLACE], s[MAX_POSITION], _WIDE), s[EFFORT_LIMIT], s[OWN_KP])
    _put(s, sent, position, velocity, s[OWN_KP], s[OWN_KD], effort_of_motor(c, c[EFFORT]))
    sent[5] = c[EFFORT]


def _state(s: Numbers, c: Numbers, r: Numbers, state: Numbers) -> None:
    state[STATE_POSITION] = _measured(r[PLACE], s[MAX_POSITION], _WIDE)
    state[STATE_VELOCITY] = _measured(r[SPEED], s[MAX_VELOCITY], _MAX_U12)
    state[STATE_EFFORT] = _measured(r[TORQUE], s[MAX_EFFORT], _MAX_U12)
    if s[DAMIAO] != 0.0:
        state[STATE_TEMPERATURE] = r[FIRST] if r[FIRST] > r[SECOND] else r[SECOND]
        state[FAULTY] = 0.0 if r[STATE] == _ON else 1.0
    else:
        state[STATE_TEMPERATURE] = r[FIRST] - _ZERO_DEGREES
        state[FAULTY] = 0.0 if r[SECOND] == 0.0 else 1.0


_COMMANDS = {"effort": _in_effort_mode, "velocity": _in_velocity_mode, "position": _in_position_mode}


class CycledNode(NamedTuple):
    """A drive as its frames depend on it. size: bytes of what it sends."""

    id: int
    master: int
    damiao: bool
    size: int


def reception(drives: Sequence[CycledNode]) -> Reception:
    numbers = (0.0, 0.0, 0.0, 0.0, math.nan, 0.0)
    return Reception(_state, [_received(k, drive) for k, drive in enumerate(drives)], numbers)


def _received(k: int, drive: CycledNode) -> ReceivedFrame:
    """Answers of several drives may have one identifier: the id is in the first byte."""
    fields, own = (*_MOTION, *_TAIL[: drive.size - 6]), 0xFF
    if drive.damiao:
        fields, own = (FrameField(0, Kind.UPPER4, STATE), *fields), 0x0F
    data = bytes((drive.id & own,)).ljust(drive.size, b"\0")
    return ReceivedFrame(CanFrame(drive.master, data), k, fields, exact=True, own=own)


def transmission(mode: str, drives: Sequence[CycledNode]) -> Transmission:
    return Transmission(_COMMANDS[mode], list(_sent(drives)))


def _sent(drives: Sequence[CycledNode]) -> Iterator[SentFrame]:
    """No frame requests the state of a drive that answers as a Mini Cheetah without commanding it."""
    for k, drive in enumerate(drives):
        yield SentFrame(CanFrame(drive.id, bytes(8)), k, _COMMAND_FIELDS, repeated=not drive.damiao)
