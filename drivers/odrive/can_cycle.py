"""The cycle of ODrives on a CAN bus in machine code: see `drivers/moteus/cycle.py` and `CanDriver`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cosim.core.machine_code import machine_code
from cosim.core.types import Array
from cosim.core.units import TURN
from cosim.plugins.drivers.common.exchange import (
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
    effort_of_motor,
    joint_function,
    requested_effort,
)
from cosim.plugins.drivers.common.frame_layout import CycleLayout, FrameField, Kind, ReceivedFrame, Role, SentFrame
from cosim.plugins.drivers.odrive import can_codec as can
from cosim.plugins.drivers.odrive import codes
from cosim.plugins.drivers.transport import CanFrame

# settings: torque per number of the effort's answer; steps of the feedforward fields
TORQUE, VELOCITY_STEPS, EFFORT_STEPS = range(3)
# numbers received: estimates, effort (setpoint first), temperatures, error, axis state, errors
POSITION_TURNS, VELOCITY_TURNS, ASKED, EXERTED, INVERTER, MOTOR, ERROR, AXIS_STATE, ACTIVE, DISARM = range(10)
RECEIVED = 10
_TURN, _ON, _MOST = TURN, float(codes.CLOSED_LOOP), float(can.FEEDFORWARD_MAX)

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


@machine_code
def _in_effort_mode(s: Array, c: Array, r: Array, sent: Array) -> None:
    effort = requested_effort(c)
    sent[0] = effort_of_motor(c, effort)
    sent[1] = effort


@machine_code
def _in_velocity_mode(s: Array, c: Array, r: Array, sent: Array) -> None:
    sent[0] = c[SCALE] * c[VELOCITY] / _TURN
    sent[1] = effort_of_motor(c, c[EFFORT])
    sent[2] = c[EFFORT]


@machine_code
def _in_position_mode(s: Array, c: Array, r: Array, sent: Array) -> None:
    sent[0] = c[SCALE] * (c[POSITION] - c[ZERO]) / _TURN
    sent[1] = np.rint(min(max(c[SCALE] * c[VELOCITY] / _TURN * s[VELOCITY_STEPS], -_MOST), _MOST))
    effort = effort_of_motor(c, c[EFFORT])
    sent[2] = np.rint(min(max(effort * s[EFFORT_STEPS], -_MOST), _MOST))
    sent[3] = c[EFFORT]


@machine_code
def _state(s: Array, c: Array, r: Array, state: Array) -> None:
    state[STATE_POSITION], state[STATE_VELOCITY] = r[POSITION_TURNS] * _TURN, r[VELOCITY_TURNS] * _TURN
    state[STATE_EFFORT] = r[EXERTED] * s[TORQUE]
    state[STATE_TEMPERATURE] = r[MOTOR] if r[MOTOR] == r[MOTOR] else r[INVERTER]  # NaN without a thermistor
    sound = r[AXIS_STATE] == _ON and r[ERROR] == 0.0 and r[ACTIVE] == 0.0 and r[DISARM] == 0.0
    state[FAULTY] = 0.0 if sound else 1.0


COMMANDS = {
    "effort": joint_function(_in_effort_mode),
    "velocity": joint_function(_in_velocity_mode),
    "position": joint_function(_in_position_mode),
}
STATE = joint_function(_state)


def layout(
    mode: str,
    nodes: Sequence[int],
    settings: Array,
    efforts: Sequence[int],
    requests: tuple[Sequence[CanFrame], Sequence[CanFrame], Sequence[CanFrame]],
    turn: int,
    silence_ns: int,
    numbers: Array,
) -> CycleLayout:
    """settings (n, 3); efforts: command of the answer with the effort, by drive; requests: of estimates, efforts and
    temperatures, the latter one drive every `turn` cycles; silence_ns: longest without a heartbeat; numbers (n,
    RECEIVED): reported before."""
    command, fields = _INPUTS[mode]
    data = {can.SET_INPUT_POS: (0.0, 0.0, 0.0), can.SET_INPUT_VEL: (0.0, 0.0), can.SET_INPUT_TORQUE: (0.0,)}[command]
    sent = [SentFrame(can.encode(node, command, *data), k, fields) for k, node in enumerate(nodes)]
    estimates, effort_requests, temperatures = requests
    for pair in zip(estimates, effort_requests, strict=True):
        sent += [SentFrame(request) for request in pair]
    period = turn * len(nodes)
    sent += [SentFrame(request, period=period, phase=turn * k) for k, request in enumerate(temperatures)]
    received = []
    for k, (node, effort) in enumerate(zip(nodes, efforts, strict=True)):
        for code, fields, role in (
            (can.GET_ENCODER_ESTIMATES, _pair(POSITION_TURNS), Role.MEASUREMENT),
            (effort, _pair(ASKED), Role.ANSWER),
            (can.GET_TEMPERATURE, _pair(INVERTER), Role.NOTICE),
            (can.HEARTBEAT, (FrameField(0, Kind.UINT32, ERROR), FrameField(4, Kind.UINT8, AXIS_STATE)), Role.NOTICE),
            (can.GET_ERROR, (FrameField(0, Kind.UINT32, ACTIVE), FrameField(4, Kind.UINT32, DISARM)), Role.NOTICE),
        ):
            silence = silence_ns if code == can.HEARTBEAT else 0
            frame = CanFrame(node << 5 | code, bytes(can.LAYOUTS[code].least.size))
            received.append(ReceivedFrame(frame, k, fields, role, longest_silence_ns=silence))
    stops = [can.encode(node, can.SET_AXIS_STATE, codes.IDLE) for node in nodes]
    return CycleLayout(COMMANDS[mode].address, STATE.address, settings, sent, received, [], stops, numbers)
