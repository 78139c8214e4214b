"""The cycle of CiA 402 drives in machine code: see `drivers/moteus/cycle.py` and `Cia402Driver`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from cosim.core.machine_code import machine_code
from cosim.core.types import Array
from cosim.plugins.drivers.cia402 import codec, process_data, profile
from cosim.plugins.drivers.cia402.process_data import ProcessMap
from cosim.plugins.drivers.common.exchange import (
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
from cosim.plugins.drivers.common.frame_layout import CycleLayout, FrameField, Kind, ReceivedFrame, Role, SentFrame
from cosim.plugins.drivers.common.position_rate import smoothed_rate
from cosim.plugins.drivers.transport import CanFrame

# settings: a unit of the drive in SI, as in `codec.Step`; the commanded mode; of a drive whose unit of velocity is
# unknown the last position [counts], its time [ns] and the velocity [counts/s] by the positions
POSITION_STEP, VELOCITY_STEP, EFFORT_STEP, TEMPERATURE_STEP, MODE, LAST_PLACE, LAST_NS, RATE = range(8)
# numbers received; the last one is the state of the network
STATUSWORD, DISPLAY, PLACE, SPEED, TORQUE, WARMTH, NETWORK = range(7)
_ENABLED_MASK, _ENABLED = profile.STATUS[profile.ENABLED]
_RUNNING = float(codec.RUNNING)
_INT16, _INT32 = 32767.0, 2147483647.0

_UNSIGNED = {8: Kind.UINT8, 16: Kind.UINT16, 32: Kind.UINT32}
_SIGNED = {8: Kind.INT8, 16: Kind.INT16, 32: Kind.INT32}
_MEASURED = {
    process_data.STATUS: STATUSWORD,
    process_data.DISPLAY: DISPLAY,
    process_data.PLACE: PLACE,
    process_data.SPEED: SPEED,
    process_data.EFFORT: TORQUE,
}
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


class CycledDrive(NamedTuple):
    """step: its units; temperature: the mapped object with it; own: process data that it has, None for the driver's."""

    node: int
    step: codec.Step
    temperature: int | None
    own: ProcessMap | None


def layout(mode: str, drives: Sequence[CycledDrive], heartbeat: CanFrame, stops: Sequence[CanFrame]) -> CycleLayout:
    """heartbeat: of the host; stops: frames that switch all drives off."""
    sent: list[SentFrame] = []
    received: list[ReceivedFrame] = []
    for k, drive in enumerate(drives):
        sent += _sent(k, drive, mode) if drive.own is None else _sent_to_own(k, drive, drive.own, mode)
        received += _received(k, drive) if drive.own is None else _received_from_own(k, drive, drive.own)
        received += [
            ReceivedFrame(CanFrame(codec.EMCY + drive.node, bytes(8)), k, (), Role.NOTICE, exact=True),
            ReceivedFrame(
                CanFrame(codec.HEARTBEAT + drive.node, bytes(1)),
                k,
                (FrameField(0, Kind.UINT8, NETWORK),),
                Role.NOTICE,
                exact=True,
            ),
        ]
    sent += [SentFrame(heartbeat), SentFrame(codec.SYNC)]
    code = profile.MODES[mode]
    settings = np.array([(*drive.step, code, 0.0, 0.0, 0.0) for drive in drives], float)
    numbers = np.tile([0.0, 0.0, 0.0, 0.0, 0.0, math.nan, _RUNNING], (len(drives), 1))
    for k, drive in enumerate(drives):
        if drive.own is not None and process_data.DISPLAY not in drive.own.transmitted:
            numbers[k, DISPLAY] = code  # it was asked when it was switched on
    functions = COMMANDS[mode].address, STATE.address
    return CycleLayout(*functions, settings, sent, received, [codec.SYNC], stops, numbers)


def _sent(k: int, drive: CycledDrive, mode: str) -> Iterator[SentFrame]:
    unit, node = codec.Step(1.0, 1.0, 1.0), drive.node
    frame = {
        "effort": codec.effort_command(node, profile.ENABLE, 0.0, unit),
        "velocity": codec.velocity_command(node, profile.ENABLE, 0.0, 0.0, unit),
        "position": codec.position_command(node, profile.ENABLE, 0.0, 0.0, unit),
    }[mode]
    yield SentFrame(frame, k, _COMMAND_FIELDS[mode])
    if mode == "position":
        yield SentFrame(codec.velocity_offset(node, 0.0, unit), k, (FrameField(0, Kind.INT32, 2),))


def _received(k: int, drive: CycledDrive) -> Iterator[ReceivedFrame]:
    status = (
        FrameField(0, Kind.UINT16, STATUSWORD),
        FrameField(2, Kind.INT8, DISPLAY),
        FrameField(3, Kind.INT32, PLACE),
    )
    motion = FrameField(0, Kind.INT32, SPEED), FrameField(4, Kind.INT16, TORQUE), FrameField(6, Kind.INT16, WARMTH)
    warm = drive.temperature is not None
    first, second = codec.TPDO + drive.node, codec.TPDO + codec.PDO_STRIDE + drive.node
    yield ReceivedFrame(CanFrame(first, bytes(7)), k, status, exact=True)
    yield ReceivedFrame(CanFrame(second, bytes(8 if warm else 6)), k, motion[: 3 if warm else 2], exact=True)


def _sent_to_own(k: int, drive: CycledDrive, own: ProcessMap, mode: str) -> Iterator[SentFrame]:
    """To a drive with its own process data: what is not commanded is in the template."""
    places = process_data.commanded(mode)
    coder = process_data.CommandCoder(own, mode, profile.MODES[mode])
    templates = dict(coder.data(profile.ENABLE, (0, 0, 0)))
    for number, objects in own.receive:
        frame = CanFrame(codec.RPDO + number * codec.PDO_STRIDE + drive.node, templates[number])
        fields = _fields(objects, places)
        yield SentFrame(frame, k, fields)


def _received_from_own(k: int, drive: CycledDrive, own: ProcessMap) -> Iterator[ReceivedFrame]:
    places = dict(_MEASURED)
    if drive.temperature is not None:
        places[drive.temperature] = WARMTH
    for number, objects in own.transmit:
        if fields := _fields(objects, places):
            size = sum(each & 0xFF for each in objects) // 8
            frame = CanFrame(codec.TPDO + number * codec.PDO_STRIDE + drive.node, bytes(size))
            yield ReceivedFrame(frame, k, fields, exact=True)


def _fields(objects: Sequence[int], places: Mapping[int, int]) -> tuple[FrameField, ...]:
    """The fields of a PDO with what has a place among the numbers of a joint."""
    fields, at = [], 0
    for each in objects:
        if each in places:
            kind = _UNSIGNED[each & 0xFF] if each == process_data.STATUS else _SIGNED[each & 0xFF]
            fields.append(FrameField(at, kind, places[each]))
        at += (each & 0xFF) // 8
    return tuple(fields)
