"""The cycle of moteus drives in machine code: the numbers of a command, and the state in an answer.

The functions are pure, of one joint, and compiled; see `drivers/common/exchange.py` for their arrays.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from cosim.core.machine_code import machine_code
from cosim.core.types import Array
from cosim.core.units import TURN
from cosim.plugins.drivers.common.exchange import (
    EFFORT,
    FAULTY,
    KD,
    KP,
    LIMIT,
    POSITION,
    SCALE,
    STATE_EFFORT,
    STATE_POSITION,
    STATE_TEMPERATURE,
    STATE_VELOCITY,
    VELOCITY,
    ZERO,
    joint_function,
)
from cosim.plugins.drivers.common.frame_layout import CycleLayout, FrameField, Kind, ReceivedFrame, SentFrame
from cosim.plugins.drivers.moteus.codec import QUERY, ServoFeedback, encode_command, encode_feedback
from cosim.plugins.drivers.moteus.registers import Mode
from cosim.plugins.drivers.transport import CanFrame

DRIVE_KP, DRIVE_KD, MAX_EFFORT = range(3)  # settings: gains configured in the drive, largest effort of a command
_MODE, _POSITION, _VELOCITY, _EFFORT, _TEMPERATURE = range(5)  # numbers received
_PER_RADIAN, _PER_TURN, _ON, _UNKNOWN = 1.0 / TURN, TURN, float(Mode.POSITION), -128.0

_COMMAND_FIELDS = tuple(FrameField(6 + 4 * k, Kind.FLOAT32, k) for k in range(6))
_ANSWER_FIELDS = (
    FrameField(2, Kind.INT8, _MODE),
    *(FrameField(5 + 4 * k, Kind.FLOAT32, _POSITION + k) for k in range(3)),
    FrameField(20, Kind.INT8, _TEMPERATURE),
)


@machine_code
def _in_effort_mode(s: Array, c: Array, r: Array, sent: Array) -> None:
    """See `MoteusDriver`: the drive gets the part of the gains that it can take, the rest is closed here."""
    scale, square = c[SCALE], c[SCALE] * c[SCALE]
    position, velocity = scale * (c[POSITION] - c[ZERO]), scale * c[VELOCITY]
    measured, speed = r[_POSITION] * _PER_TURN, r[_VELOCITY] * _PER_TURN
    asked_kp, asked_kd = c[KP] / square, c[KD] / square
    # + 0.0: -0.0 is sent as 0.0
    kp, kd = min(max(asked_kp, 0.0), s[DRIVE_KP]) + 0.0, min(max(asked_kd, 0.0), s[DRIVE_KD]) + 0.0
    rest_kp, rest_kd, effort = asked_kp - kp, asked_kd - kd, c[EFFORT] + 0.0
    if rest_kp != 0.0 or rest_kd != 0.0:
        effort = effort + (rest_kp * (position - measured) + rest_kd * (velocity - speed)) * scale
    sent[0] = (position if kp > 0.0 else measured) * _PER_RADIAN
    sent[1] = velocity * _PER_RADIAN
    sent[2] = min(max(effort, -c[LIMIT]), c[LIMIT]) / scale
    sent[3] = kp / s[DRIVE_KP] if s[DRIVE_KP] > 0.0 else 0.0
    sent[4] = kd / s[DRIVE_KD] if s[DRIVE_KD] > 0.0 else 0.0
    sent[5], sent[6] = s[MAX_EFFORT], effort


@machine_code
def _in_position_mode(s: Array, c: Array, r: Array, sent: Array) -> None:
    sent[0] = c[SCALE] * (c[POSITION] - c[ZERO]) * _PER_RADIAN
    sent[1] = c[SCALE] * c[VELOCITY] * _PER_RADIAN
    sent[2] = min(max(c[EFFORT], -c[LIMIT]), c[LIMIT]) / c[SCALE]
    sent[3] = sent[4] = 1.0
    sent[5], sent[6] = s[MAX_EFFORT], c[EFFORT]


@machine_code
def _in_velocity_mode(s: Array, c: Array, r: Array, sent: Array) -> None:
    _in_position_mode(s, c, r, sent)
    sent[0] = math.nan  # the measured position


@machine_code
def _state(s: Array, c: Array, r: Array, state: Array) -> None:
    state[STATE_POSITION], state[STATE_VELOCITY] = r[_POSITION] * _PER_TURN, r[_VELOCITY] * _PER_TURN
    state[STATE_EFFORT] = r[_EFFORT]
    state[STATE_TEMPERATURE] = math.nan if r[_TEMPERATURE] == _UNKNOWN else r[_TEMPERATURE]
    state[FAULTY] = 0.0 if r[_MODE] == _ON else 1.0


COMMANDS = {
    "effort": joint_function(_in_effort_mode),
    "position": joint_function(_in_position_mode),
    "velocity": joint_function(_in_velocity_mode),
}
STATE = joint_function(_state)


def layout(
    mode: str,
    tail: bytes,
    settings: Sequence[Sequence[float]],
    request_ids: Sequence[int],
    answer_ids: Sequence[int],
    stops: Sequence[CanFrame],
) -> CycleLayout:
    """The cycle in a mode; tail: the end of a command; settings: DRIVE_KP … MAX_EFFORT, (n,) each; identifiers by
    drive; stops: frames that switch all drives off."""
    command = encode_command(tail, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    answer = encode_feedback(ServoFeedback(0, 0.0, 0.0, 0.0, 0.0, 0.0, 0))[:22]
    heads = slice(0, 2), slice(3, 5), slice(17, 19)
    return CycleLayout(
        COMMANDS[mode].address,
        STATE.address,
        np.column_stack(settings),
        [SentFrame(CanFrame(id, command, True, True, True), k, _COMMAND_FIELDS) for k, id in enumerate(request_ids)],
        [
            ReceivedFrame(CanFrame(id, answer, id > 0x7FF, True, True), k, _ANSWER_FIELDS, fixed=heads)
            for k, id in enumerate(answer_ids)
        ],
        [CanFrame(id, QUERY, True, True, True) for id in request_ids],
        stops,
    )
