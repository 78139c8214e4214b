"""The cycle of Dynamixel drives in machine code: see `drivers/moteus/cycle.py` and `DynamixelDriver`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cosim.core.machine_code import machine_code
from cosim.core.types import Array
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
from cosim.plugins.drivers.common.frame_layout import CycleLayout, FrameField, Kind, ReceivedFrame, SentFrame
from cosim.plugins.drivers.dynamixel import cyclic_frames
from cosim.plugins.drivers.dynamixel import tables as t
from cosim.plugins.drivers.dynamixel.packet_link import BusPacket

# settings: effort of a count; velocity limit of the drive, counts
EFFORT_STEP, VELOCITY_LIMIT = range(2)
_POSITION, _VELOCITY, _LARGEST, _TRIPPED = t.POSITION, t.VELOCITY, float(t.MAX_TURNS * t.CPR - 1), float(t.TRIPPED)
_KINDS = {"u1": Kind.UINT8, "i1": Kind.INT8, "<i2": Kind.INT16, "<i4": Kind.INT32}
_NAMES = [name for name, _, _ in cyclic_frames.MAPPED]
TORQUE, LEVEL, HARDWARE, WATCHDOG, CURRENT, SPEED, PLACE, WARMTH = (
    _NAMES.index(name)
    for name in ("torque", "level", "hardware", "watchdog", "current", "velocity", "position", "temperature")
)


@machine_code
def _in_effort_mode(s: Array, c: Array, r: Array, sent: Array) -> None:
    effort = requested_effort(c)
    sent[0] = np.rint(effort_of_motor(c, effort) / s[EFFORT_STEP])
    sent[1] = effort


@machine_code
def _in_velocity_mode(s: Array, c: Array, r: Array, sent: Array) -> None:
    goal = np.rint(c[SCALE] * c[VELOCITY] / _VELOCITY)
    sent[0] = min(max(goal, -s[VELOCITY_LIMIT]), s[VELOCITY_LIMIT])
    sent[1] = c[EFFORT]


@machine_code
def _in_position_mode(s: Array, c: Array, r: Array, sent: Array) -> None:
    goal = np.rint(c[SCALE] * (c[POSITION] - c[ZERO]) / _POSITION)
    sent[0] = min(max(goal, -_LARGEST), _LARGEST)
    sent[1] = c[EFFORT]


@machine_code
def _state(s: Array, c: Array, r: Array, state: Array) -> None:
    state[STATE_POSITION], state[STATE_VELOCITY] = r[PLACE] * _POSITION, r[SPEED] * _VELOCITY
    state[STATE_EFFORT], state[STATE_TEMPERATURE] = r[CURRENT] * s[EFFORT_STEP], r[WARMTH]
    sound = r[TORQUE] != 0.0 and r[LEVEL] != 0.0 and r[HARDWARE] == 0.0 and r[WATCHDOG] != _TRIPPED
    state[FAULTY] = 0.0 if sound else 1.0


COMMANDS = {
    "effort": joint_function(_in_effort_mode),
    "velocity": joint_function(_in_velocity_mode),
    "position": joint_function(_in_position_mode),
}
STATE = joint_function(_state)


def layout(
    mode: str,
    ids: bytes,
    settings: Sequence[Array],
    request: bytes,
    stops: Sequence[bytes],
    quiet_ns: tuple[int, int],
    state: Array,
) -> CycleLayout:
    """The cycle in a mode; settings: EFFORT_STEP …, (n,) each; request: of the state of all drives; stops: packets that
    switch all drives off; quiet_ns: see `CycleLayout`; state: `cyclic_frames.STATE` (n,), reported before."""
    n, size = len(ids), cyclic_frames.GOALS[mode].size
    goals = BusPacket.of(cyclic_frames.Goals(ids, mode).packet(np.zeros(n)))
    kind = {2: Kind.INT16, 4: Kind.INT32}[size]
    first, stride = len(goals.data) - n * (1 + size) + 1, 1 + size  # a row is an id and a goal
    fields = tuple(FrameField(first + k * stride, kind, 0, joint=k) for k in range(n))
    answer = bytes(1 + cyclic_frames.SIZE)
    sizes = np.cumsum([1, *(register.size for _, _, register in cyclic_frames.MAPPED)]).tolist()
    registers = tuple(
        FrameField(at, _KINDS[form], number)
        for number, (at, (_, form, _)) in enumerate(zip(sizes, cyclic_frames.MAPPED, strict=False))
    )
    return CycleLayout(
        COMMANDS[mode].address,
        STATE.address,
        np.column_stack(settings),
        [SentFrame(goals, 0, fields)],
        [ReceivedFrame(BusPacket(id, answer), k, registers, exact=True) for k, id in enumerate(ids)],
        [BusPacket.of(request)],
        [BusPacket.of(packet) for packet in stops],
        np.column_stack([state[name].astype(float) for name in _NAMES]),
        quiet_ns,
    )
