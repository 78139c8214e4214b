"""The cycle of moteus drives: the numbers of a command, and the state in an answer; see `drivers/common/cycle.py`.

In effort mode the drive gets the part of the gains that it can take: its rate is higher, and its watchdog damps with
the kd that it has. The rest is closed here. Without kp the drive's setpoint is its measured position.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from cosim.core.units import TURN
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
)
from cosim.plugins.drivers.common.frame_layout import FrameField, Kind, ReceivedFrame, SentFrame
from cosim.plugins.drivers.moteus.codec import ServoFeedback, command, encode_feedback
from cosim.plugins.drivers.moteus.registers import Mode
from cosim.plugins.drivers.transport import CanFrame

# settings: gains configured in the drive, largest effort of a command
DRIVE_KP, DRIVE_KD, MAX_EFFORT = range(3)
SETTINGS = 3
# numbers received: in turns, half volts, °C
MODE, TURNS, TURNS_PER_SECOND, TORQUE, HALF_VOLTS, DEGREES, FAULT = range(7)
UNKNOWN = -128.0  # of half volts and degrees
ON = float(Mode.POSITION)  # as MODE
_PER_RADIAN, _PER_TURN = 1.0 / TURN, TURN

_COMMAND_FIELDS = tuple(FrameField(6 + 4 * k, Kind.FLOAT32, k) for k in range(6))
_ANSWER_FIELDS = (
    FrameField(2, Kind.INT8, MODE),
    *(FrameField(5 + 4 * k, Kind.FLOAT32, TURNS + k) for k in range(3)),
    *(FrameField(19 + k, Kind.INT8, HALF_VOLTS + k) for k in range(3)),
)
_ANSWER = encode_feedback(ServoFeedback(0, 0.0, 0.0, 0.0, 0.0, 0.0, 0))[:22]
_HEADS = slice(0, 2), slice(3, 5), slice(17, 19)


def _in_effort_mode(s: Numbers, c: Numbers, r: Numbers, sent: Numbers) -> None:
    scale, square = c[SCALE], c[SCALE] * c[SCALE]
    position, velocity = scale * (c[POSITION] - c[ZERO]), scale * c[VELOCITY]
    measured, speed = r[TURNS] * _PER_TURN, r[TURNS_PER_SECOND] * _PER_TURN
    asked_kp, asked_kd = c[KP] / square, c[KD] / square
    # + 0.0: -0.0 is sent as 0.0
    kp, kd = clipped(asked_kp, 0.0, s[DRIVE_KP]) + 0.0, clipped(asked_kd, 0.0, s[DRIVE_KD]) + 0.0
    rest_kp, rest_kd, effort = asked_kp - kp, asked_kd - kd, c[EFFORT] + 0.0
    if rest_kp != 0.0 or rest_kd != 0.0:
        effort = effort + (rest_kp * (position - measured) + rest_kd * (velocity - speed)) * scale
    sent[0] = (position if kp > 0.0 else measured) * _PER_RADIAN
    sent[1] = velocity * _PER_RADIAN
    sent[2] = effort_of_motor(c, effort)
    sent[3] = kp / s[DRIVE_KP] if s[DRIVE_KP] > 0.0 else 0.0
    sent[4] = kd / s[DRIVE_KD] if s[DRIVE_KD] > 0.0 else 0.0
    sent[5], sent[6] = s[MAX_EFFORT], effort


def _in_position_mode(s: Numbers, c: Numbers, r: Numbers, sent: Numbers) -> None:
    sent[0] = c[SCALE] * (c[POSITION] - c[ZERO]) * _PER_RADIAN
    sent[1] = c[SCALE] * c[VELOCITY] * _PER_RADIAN
    sent[2] = effort_of_motor(c, c[EFFORT])
    sent[3] = sent[4] = 1.0
    sent[5], sent[6] = s[MAX_EFFORT], c[EFFORT]


def _in_velocity_mode(s: Numbers, c: Numbers, r: Numbers, sent: Numbers) -> None:
    _in_position_mode(s, c, r, sent)
    sent[0] = math.nan  # the measured position


def known(number: float) -> float:
    """Of half volts or degrees; NaN for those that the drive does not know."""
    return math.nan if number == UNKNOWN else number


def _state(s: Numbers, c: Numbers, r: Numbers, state: Numbers) -> None:
    state[STATE_POSITION], state[STATE_VELOCITY] = r[TURNS] * _PER_TURN, r[TURNS_PER_SECOND] * _PER_TURN
    state[STATE_EFFORT] = r[TORQUE]
    state[STATE_TEMPERATURE] = known(r[DEGREES])
    state[FAULTY] = 0.0 if r[MODE] == ON else 1.0


_COMMANDS = {"effort": _in_effort_mode, "position": _in_position_mode, "velocity": _in_velocity_mode}


def reception(ids: Sequence[int]) -> Reception:
    """ids: identifiers of the answers, by drive."""
    frames = [CanFrame(id, _ANSWER, id > 0x7FF, True, True) for id in ids]
    return Reception(
        _state,
        [ReceivedFrame(frame, k, _ANSWER_FIELDS, fixed=_HEADS) for k, frame in enumerate(frames)],
        (0.0, 0.0, 0.0, 0.0, UNKNOWN, UNKNOWN, 0.0),
    )


def transmission(mode: str, tail: bytes, ids: Sequence[int]) -> Transmission:
    """tail: the end of a command; ids: identifiers of the commands, by drive."""
    frames = [CanFrame(id, command(tail), True, True, True) for id in ids]
    return Transmission(_COMMANDS[mode], [SentFrame(frame, k, _COMMAND_FIELDS) for k, frame in enumerate(frames)])
