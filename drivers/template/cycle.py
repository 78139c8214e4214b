"""The cycle of template drives, see `drivers/common/cycle.py`: a target, answered by motion and status."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from cosim.plugins.drivers.common.cycle import (
    FAULTY,
    STATE_EFFORT,
    STATE_POSITION,
    STATE_TEMPERATURE,
    STATE_VELOCITY,
    TARGETS,
    Numbers,
    Reception,
    Transmission,
)
from cosim.plugins.drivers.common.frame_layout import FrameField, Kind, ReceivedFrame, SentFrame
from cosim.plugins.drivers.template import codec
from cosim.plugins.drivers.transport import CanFrame

ON = 0  # setting: the number of the mode in which the drive is switched on
PLACE, SPEED, TORQUE, WARMTH, MODE, FAULT = range(6)  # numbers received
_FIELDS = {
    codec.MOTION: (FrameField(0, Kind.FLOAT32, PLACE), FrameField(4, Kind.FLOAT32, SPEED)),
    codec.STATUS: (
        FrameField(0, Kind.FLOAT32, TORQUE),
        FrameField(4, Kind.INT16, WARMTH),
        FrameField(6, Kind.UINT8, MODE),
        FrameField(7, Kind.UINT8, FAULT),
    ),
}


def _state(s: Numbers, c: Numbers, r: Numbers, state: Numbers) -> None:
    state[STATE_POSITION], state[STATE_VELOCITY], state[STATE_EFFORT] = r[PLACE], r[SPEED], r[TORQUE]
    state[STATE_TEMPERATURE] = 0.1 * r[WARMTH]
    state[FAULTY] = 0.0 if r[MODE] == s[ON] and r[FAULT] == 0.0 else 1.0


def reception(ids: Sequence[int]) -> Reception:
    pairs = ((k, id, kind) for k, id in enumerate(ids) for kind in _FIELDS)
    frames = [ReceivedFrame(CanFrame(kind + id, bytes(8)), k, _FIELDS[kind], exact=True) for k, id, kind in pairs]
    return Reception(_state, frames, (0.0, 0.0, 0.0, math.nan, 0.0, 0.0))


def transmission(mode: str, commands: Iterable[CanFrame]) -> Transmission:
    """commands: to each drive, with any target."""
    target = (FrameField(4, Kind.FLOAT32, 0),)
    return Transmission(TARGETS[mode], [SentFrame(frame, k, target) for k, frame in enumerate(commands)])
