"""The cycle of ODrives on a CAN bus; see `drivers/common/cycle.py` and `CanDriver`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from cosim.core.units import TURN
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
    effort_of_motor,
    nearest,
    requested_effort,
)
from cosim.plugins.drivers.common.frame_layout import FrameField, Kind, ReceivedFrame, Role, SentFrame
from cosim.plugins.drivers.odrive import can_codec as can
from cosim.plugins.drivers.odrive import codes
from cosim.plugins.drivers.transport import CanFrame

# settings: torque per number of the effort's answer; steps of the feedforward fields
TORQUE, VELOCITY_STEPS, EFFORT_STEPS = range(3)
# numbers received: estimates, effort (setpoint first), temperatures, error, axis state, errors
TURNS, TURNS_PER_SECOND, ASKED, EXERTED, INVERTER, MOTOR, ERROR, AXIS_STATE, ACTIVE, DISARM = range(10)
_ON, _MOST = float(codes.CLOSED_LOOP), float(can.FEEDFORWARD_MAX)

_INPUTS = {
    "effort": (can.SET_INPUT_TORQUE, (FrameField(0, Kind.FLOAT32, 0),)),
    "velocity": (can.SET_INPUT_VEL, (FrameField(0, Kind.FLOAT32, 0), FrameField(4, Kind.FLOAT32, 1))),
    "position": (
        can.SET_INPUT_POS,
        (FrameField(0, Kind.FLOAT32, 0), FrameField(4, Kind.INT16, 1), FrameField(6, Kind.INT16, 2)),
    ),
}


def _pair(number: int) -> tuple[FrameField, FrameField]:
    return FrameField(0, Kind.FLOAT32, number), FrameField(4, Kind.FLOAT32, number + 1)


def _in_effort_mode(s: Numbers, c: Numbers, r: Numbers, sent: Numbers) -> None:
    effort = requested_effort(c)
    sent[0] = effort_of_motor(c, effort)
    sent[1] = effort


def _in_velocity_mode(s: Numbers, c: Numbers, r: Numbers, sent: Numbers) -> None:
    sent[0] = c[SCALE] * c[VELOCITY] / TURN
    sent[1] = effort_of_motor(c, c[EFFORT])
    sent[2] = c[EFFORT]


def _in_position_mode(s: Numbers, c: Numbers, r: Numbers, sent: Numbers) -> None:
    sent[0] = c[SCALE] * (c[POSITION] - c[ZERO]) / TURN
    sent[1] = nearest(c[SCALE] * c[VELOCITY] / TURN * s[VELOCITY_STEPS], -_MOST, _MOST)
    sent[2] = nearest(effort_of_motor(c, c[EFFORT]) * s[EFFORT_STEPS], -_MOST, _MOST)
    sent[3] = c[EFFORT]


def _state(s: Numbers, c: Numbers, r: Numbers, state: Numbers) -> None:
    state[STATE_POSITION], state[STATE_VELOCITY] = r[TURNS] * TURN, r[TURNS_PER_SECOND] * TURN
    state[STATE_EFFORT] = r[EXERTED] * s[TORQUE]
    state[STATE_TEMPERATURE] = r[MOTOR] if r[MOTOR] == r[MOTOR] else r[INVERTER]  # NaN without a thermistor
    sound = r[AXIS_STATE] == _ON and r[ERROR] == 0.0 and r[ACTIVE] == 0.0 and r[DISARM] == 0.0
    state[FAULTY] = 0.0 if sound else 1.0


_COMMANDS = {"effort": _in_effort_mode, "velocity": _in_velocity_mode, "position": _in_position_mode}


def reception(nodes: Sequence[int], efforts: Sequence[int], silence_ns: int) -> Reception:
    """efforts: command of the answer with the effort, by drive; silence_ns: longest without a heartbeat."""
    pairs = enumerate(zip(nodes, efforts, strict=True))
    frames = [frame for k, (node, effort) in pairs for frame in _received(k, node, effort, silence_ns)]
    return Reception(_state, frames, (0.0, 0.0, 0.0, 0.0, math.nan, math.nan, 0.0, 0.0, 0.0, 0.0))


def _received(k: int, node: int, effort: int, silence_ns: int) -> Iterator[ReceivedFrame]:
    for code, fields, role in (
        (can.GET_ENCODER_ESTIMATES, _pair(TURNS), Role.MEASUREMENT),
        (effort, _pair(ASKED), Role.ANSWER),
        (can.GET_TEMPERATURE, _pair(INVERTER), Role.NOTICE),
        (can.HEARTBEAT, (FrameField(0, Kind.UINT32, ERROR), FrameField(4, Kind.UINT8, AXIS_STATE)), Role.NOTICE),
        (can.GET_ERROR, (FrameField(0, Kind.UINT32, ACTIVE), FrameField(4, Kind.UINT32, DISARM)), Role.NOTICE),
    ):
        frame = CanFrame(node << 5 | code, bytes(can.LAYOUTS[code].least.size))
        yield ReceivedFrame(frame, k, fields, role, longest_silence_ns=silence_ns if code == can.HEARTBEAT else 0)


def transmission(
    mode: str, nodes: Sequence[int], requests: Sequence[CanFrame], temperatures: Sequence[CanFrame], turn: int
) -> Transmission:
    """requests: after every command; temperatures: requests for them, one drive every `turn` cycles."""
    command, fields = _INPUTS[mode]
    data = bytes(can.LAYOUTS[command].whole.size)
    sent = [SentFrame(CanFrame(node << 5 | command, data), k, fields) for k, node in enumerate(nodes)]
    sent += [SentFrame(request) for request in requests]
    period = turn * len(nodes)
    sent += [SentFrame(request, period=period, phase=turn * k) for k, request in enumerate(temperatures)]
    return Transmission(_COMMANDS[mode], sent)
