"""The cycle of Dynamixel drives; see `drivers/common/cycle.py` and `DynamixelDriver`."""

from __future__ import annotations

from collections.abc import Sequence

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
from cosim.plugins.drivers.common.frame_layout import FrameField, ReceivedFrame, SentFrame
from cosim.plugins.drivers.dynamixel import cyclic_frames
from cosim.plugins.drivers.dynamixel import tables as t
from cosim.plugins.drivers.dynamixel.codec import BusPacket

# settings: effort of a count; velocity limit of the drive, counts
EFFORT_STEP, VELOCITY_LIMIT = range(2)
_POSITION, _VELOCITY = t.POSITION, t.VELOCITY
_LARGEST_EFFORT, _LARGEST_POSITION = 32767.0, float(t.MAX_TURNS * t.CPR - 1)  # counts
_TRIPPED = float(t.TRIPPED)
# numbers received: in the order of `cyclic_frames.MAPPED`
TORQUE, LEVEL, HARDWARE, WATCHDOG, CURRENT, SPEED, PLACE, WARMTH = range(len(cyclic_frames.MAPPED))


def _in_effort_mode(s: Numbers, c: Numbers, r: Numbers, sent: Numbers) -> None:
    effort = requested_effort(c)
    sent[0] = nearest(effort_of_motor(c, effort) / s[EFFORT_STEP], -_LARGEST_EFFORT, _LARGEST_EFFORT)
    sent[1] = effort


def _in_velocity_mode(s: Numbers, c: Numbers, r: Numbers, sent: Numbers) -> None:
    sent[0] = nearest(c[SCALE] * c[VELOCITY] / _VELOCITY, -s[VELOCITY_LIMIT], s[VELOCITY_LIMIT])
    sent[1] = c[EFFORT]


def _in_position_mode(s: Numbers, c: Numbers, r: Numbers, sent: Numbers) -> None:
    sent[0] = nearest(c[SCALE] * (c[POSITION] - c[ZERO]) / _POSITION, -_LARGEST_POSITION, _LARGEST_POSITION)
    sent[1] = c[EFFORT]


def _state(s: Numbers, c: Numbers, r: Numbers, state: Numbers) -> None:
    state[STATE_POSITION], state[STATE_VELOCITY] = r[PLACE] * _POSITION, r[SPEED] * _VELOCITY
    state[STATE_EFFORT], state[STATE_TEMPERATURE] = r[CURRENT] * s[EFFORT_STEP], r[WARMTH]
    sound = r[TORQUE] != 0.0 and r[LEVEL] != 0.0 and r[HARDWARE] == 0.0 and r[WATCHDOG] != _TRIPPED
    state[FAULTY] = 0.0 if sound else 1.0


_COMMANDS = {"effort": _in_effort_mode, "velocity": _in_velocity_mode, "position": _in_position_mode}


def reception(ids: Sequence[int]) -> Reception:
    """The answer of each drive: an error byte and the registers."""
    fields, at = [], 1
    for number, (kind, register) in enumerate(cyclic_frames.MAPPED):
        fields.append(FrameField(at, kind, number))
        at += register.size
    frames = [ReceivedFrame(BusPacket(id, bytes(at)), k, tuple(fields), exact=True) for k, id in enumerate(ids)]
    return Reception(_state, frames, (0.0,) * len(fields))


def transmission(mode: str, ids: Sequence[int]) -> Transmission:
    """One packet with a goal for each drive."""
    goals, kind = BusPacket.of(cyclic_frames.goals(ids, mode)), cyclic_frames.GOALS[mode][0]
    stride = 1 + kind.form.size  # of a row: an id and a goal
    first = len(goals.data) - len(ids) * stride + 1
    fields = tuple(FrameField(first + k * stride, kind, 0, joint=k) for k in range(len(ids)))
    return Transmission(_COMMANDS[mode], [SentFrame(goals, 0, fields)])
