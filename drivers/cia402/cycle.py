"""The cycle of CiA 402 drives in machine code: see `drivers/moteus/cycle.py` and `Cia402Driver`."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from cosim.drivers.cia402 import codec, profile
from cosim.drivers.common.exchange import (
    EFFORT,
    FAULTY,
    MEASURED_NS,
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
from cosim.drivers.common.frame_layout import CycleLayout, FrameField, Kind, ReceivedFrame, Role, SentFrame
from cosim.drivers.common.position_rate import smoothed_rate
from cosim.drivers.transport import CanFrame
from cosim.machine_code import machine_code
from cosim.types import Array

# settings: a unit of the drive in SI, as in `codec.Step`; the commanded mode; of a drive whose unit of velocity is
# unknown the last position [counts], its time [ns] and the velocity [counts/s] by the positions
POSITION_STEP, VELOCITY_STEP, EFFORT_STEP, TEMPERATURE_STEP, MODE, LAST_PLACE, LAST_NS, RATE = range(8)
# numbers received; the last one is the state of the network
STATUSWORD, DISPLAY, PLACE, SPEED, TORQUE, WARMTH, NETWORK = range(7)
_ENABLED_MASK, _ENABLED = profile.STATUS[profile.ENABLED]
_RUNNING = float(codec.RUNNING)
_INT16, _INT32 = 32767.0, 2147483647.0

_TARGET = FrameField(2, Kind.INT32, 0), FrameField(6, Kind.INT16, 1)
_COMMAND_FIELDS = {"effort": (FrameField(2, Kind.INT16, 0),), "velocity": _TARGET, "position": _TARGET}


_rate = machine_code(smoothed_rate)


@machine_code
def _whole(value: float, most: float) -> float:
    return np.rint(min(max(value, -most - 1.0), most))


@machine_code
def _in_effort_mode(s: Array, c: Array, r: Array, sent: Array) -> None:
    effort = requested_effort(c)
    sent[0] = _whole(effort_of_motor(c, effort) / s[EFFORT_STEP], _INT16)
    sent[1] = effort


@machine_code
def _in_velocity_mode(s: Array, c: Array, r: Array, sent: Array) -> None:
    sent[0] = _whole(c[SCALE] * c[VELOCITY] / s[VELOCITY_STEP], _INT32)
    sent[1] = _whole(effort_of_motor(c, c[EFFORT]) / s[EFFORT_STEP], _INT16)
    sent[2] = c[EFFORT]


@machine_code
def _in_position_mode(s: Array, c: Array, r: Array, sent: Array) -> None:
    sent[0] = _whole(c[SCALE] * (c[POSITION] - c[ZERO]) / s[POSITION_STEP], _INT32)
    sent[1] = _whole(effort_of_motor(c, c[EFFORT]) / s[EFFORT_STEP], _INT16)
    sent[2] = _whole(c[SCALE] * c[VELOCITY] / s[VELOCITY_STEP], _INT32)
    sent[3] = c[EFFORT]


@machine_code
def _state(s: Array, c: Array, r: Array, state: Array) -> None:
    state[STATE_POSITION] = r[PLACE] * s[POSITION_STEP]
    if np.isfinite(s[VELOCITY_STEP]):
        state[STATE_VELOCITY] = r[SPEED] * s[VELOCITY_STEP]
    else:
        s[RATE] = _rate(r[PLACE], c[MEASURED_NS], s[LAST_PLACE], s[LAST_NS], s[RATE])
        s[LAST_PLACE], s[LAST_NS] = r[PLACE], c[MEASURED_NS]
        state[STATE_VELOCITY] = s[RATE] * s[POSITION_STEP]
    state[STATE_EFFORT] = r[TORQUE] * s[EFFORT_STEP]
    state[STATE_TEMPERATURE] = r[WARMTH] * s[TEMPERATURE_STEP]
    enabled = int(r[STATUSWORD]) & _ENABLED_MASK == _ENABLED
    running = int(r[NETWORK]) & 0x7F == _RUNNING
    state[FAULTY] = 0.0 if enabled and running and r[DISPLAY] == s[MODE] else 1.0


COMMANDS = {
    "effort": joint_function(_in_effort_mode),
    "velocity": joint_function(_in_velocity_mode),
    "position": joint_function(_in_position_mode),
}
STATE = joint_function(_state)


def layout(
    mode: str,
    nodes: Sequence[int],
    steps: Sequence[codec.Step],
    warm: Sequence[bool],
    heartbeat: CanFrame,
    stops: Sequence[CanFrame],
) -> CycleLayout:
    """warm: which drives report a temperature; heartbeat: of the host; stops: frames that switch all drives off."""
    sent, received, unit = [], [], codec.Step(1.0, 1.0, 1.0)
    for k, node in enumerate(nodes):
        frame = {
            "effort": codec.effort_command(node, profile.ENABLE, 0.0, unit),
            "velocity": codec.velocity_command(node, profile.ENABLE, 0.0, 0.0, unit),
            "position": codec.position_command(node, profile.ENABLE, 0.0, 0.0, unit),
        }[mode]
        sent.append(SentFrame(frame, k, _COMMAND_FIELDS[mode]))
        if mode == "position":
            sent.append(SentFrame(codec.velocity_offset(node, 0.0, unit), k, (FrameField(0, Kind.INT32, 2),)))
        status = (
            FrameField(0, Kind.UINT16, STATUSWORD),
            FrameField(2, Kind.INT8, DISPLAY),
            FrameField(3, Kind.INT32, PLACE),
        )
        motion = FrameField(0, Kind.INT32, SPEED), FrameField(4, Kind.INT16, TORQUE), FrameField(6, Kind.INT16, WARMTH)
        first, second, size = codec.TPDO + node, codec.TPDO + codec.PDO_STRIDE + node, 8 if warm[k] else 6
        received += [
            ReceivedFrame(CanFrame(first, bytes(7)), k, status, exact=True),
            ReceivedFrame(CanFrame(second, bytes(size)), k, motion[: 3 if warm[k] else 2], exact=True),
            ReceivedFrame(CanFrame(codec.EMCY + node, bytes(8)), k, (), Role.NOTICE, exact=True),
            ReceivedFrame(
                CanFrame(codec.HEARTBEAT + node, bytes(1)),
                k,
                (FrameField(0, Kind.UINT8, NETWORK),),
                Role.NOTICE,
                exact=True,
            ),
        ]
    sent += [SentFrame(heartbeat), SentFrame(codec.SYNC)]
    settings = np.array([(*step, profile.MODES[mode], 0.0, 0.0, 0.0) for step in steps], float)
    numbers = np.tile([0.0, 0.0, 0.0, 0.0, 0.0, math.nan, _RUNNING], (len(nodes), 1))
    functions = COMMANDS[mode].address, STATE.address
    return CycleLayout(*functions, settings, sent, received, [codec.SYNC], stops, numbers)
