"""The cycle of CiA 402 drives; see `drivers/common/cycle.py` and `Cia402Driver`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from cosim.plugins.drivers.cia402 import codec, process_data, profile
from cosim.plugins.drivers.cia402.params import JointParams
from cosim.plugins.drivers.cia402.process_data import CommandCoder, ProcessMap
from cosim.plugins.drivers.common.cycle import (
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
    Numbers,
    Reception,
    Transmission,
    effort_of_motor,
    nearest,
    requested_effort,
)
from cosim.plugins.drivers.common.frame_layout import FrameField, Kind, ReceivedFrame, Role, SentFrame
from cosim.plugins.drivers.common.position_rate import smoothed_rate
from cosim.plugins.drivers.transport import CanFrame

# settings: a unit of the drive in SI, as in `codec.Step`; the commanded mode; of a drive whose unit of velocity is
# unknown the last position [counts], its time [ns] and the velocity [counts/s] by the positions
POSITION_STEP, VELOCITY_STEP, EFFORT_STEP, TEMPERATURE_STEP, MODE, LAST_PLACE, LAST_NS, RATE = range(8)
# numbers received; the last two are the state of the network and the code of an emergency
STATUSWORD, DISPLAY, PLACE, SPEED, TORQUE, WARMTH, NETWORK, EMERGENCY = range(8)
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


def _whole(value: float, most: float) -> float:
    return nearest(value, -most - 1.0, most)


def _in_effort_mode(s: Numbers, c: Numbers, r: Numbers, sent: Numbers) -> None:
    effort = requested_effort(c)
    sent[0] = _whole(effort_of_motor(c, effort) / s[EFFORT_STEP], _INT16)
    sent[1] = effort


def _in_velocity_mode(s: Numbers, c: Numbers, r: Numbers, sent: Numbers) -> None:
    sent[0] = _whole(c[SCALE] * c[VELOCITY] / s[VELOCITY_STEP], _INT32)
    sent[1] = _whole(effort_of_motor(c, c[EFFORT]) / s[EFFORT_STEP], _INT16)
    sent[2] = c[EFFORT]


def _in_position_mode(s: Numbers, c: Numbers, r: Numbers, sent: Numbers) -> None:
    sent[0] = _whole(c[SCALE] * (c[POSITION] - c[ZERO]) / s[POSITION_STEP], _INT32)
    sent[1] = _whole(effort_of_motor(c, c[EFFORT]) / s[EFFORT_STEP], _INT16)
    sent[2] = _whole(c[SCALE] * c[VELOCITY] / s[VELOCITY_STEP], _INT32)
    sent[3] = c[EFFORT]


def _state(s: Numbers, c: Numbers, r: Numbers, state: Numbers) -> None:
    state[STATE_POSITION] = r[PLACE] * s[POSITION_STEP]
    if math.isfinite(s[VELOCITY_STEP]):
        state[STATE_VELOCITY] = r[SPEED] * s[VELOCITY_STEP]
    else:
        s[RATE] = smoothed_rate(r[PLACE], c[MEASURED_NS], s[LAST_PLACE], s[LAST_NS], s[RATE])
        s[LAST_PLACE], s[LAST_NS] = r[PLACE], c[MEASURED_NS]
        state[STATE_VELOCITY] = s[RATE] * s[POSITION_STEP]
    state[STATE_EFFORT] = r[TORQUE] * s[EFFORT_STEP]
    state[STATE_TEMPERATURE] = r[WARMTH] * s[TEMPERATURE_STEP]
    enabled = int(r[STATUSWORD]) & _ENABLED_MASK == _ENABLED
    running = int(r[NETWORK]) & 0x7F == _RUNNING
    state[FAULTY] = 0.0 if enabled and running and r[DISPLAY] == s[MODE] else 1.0


_COMMANDS = {"effort": _in_effort_mode, "velocity": _in_velocity_mode, "position": _in_position_mode}


def settings(step: codec.Step, mode: str) -> list[float]:
    """Of a drive with these units."""
    return [*step, profile.MODES[mode], 0.0, 0.0, 0.0]


class CycledDrive(NamedTuple):
    """A drive as its frames depend on it. map: its process data; temperature: the mapped object with it."""

    node: int
    map: ProcessMap
    temperature: int | None


def of_joint(wired: JointParams, mode: str, own: ProcessMap | None = None) -> CycledDrive:
    """own: the process data of a drive that has its own."""
    temperature = wired.mapped_temperature
    return CycledDrive(wired.id, own or process_data.mapped(mode, temperature), temperature)


def reception(drives: Sequence[CycledDrive]) -> Reception:
    frames = [frame for k, drive in enumerate(drives) for frame in _received(k, drive)]
    return Reception(_state, frames, (0.0, 0.0, 0.0, 0.0, 0.0, math.nan, _RUNNING, 0.0))


def _received(k: int, drive: CycledDrive) -> Iterator[ReceivedFrame]:
    places = dict(_MEASURED)
    if drive.temperature is not None:
        places[drive.temperature] = WARMTH
    for number, objects in drive.map.transmit:
        if fields := _fields(objects, places):
            data = bytes(process_data.size(objects))
            frame = CanFrame(codec.TPDO + number * codec.PDO_STRIDE + drive.node, data)
            yield ReceivedFrame(frame, k, fields, exact=True)
    for id, size, field in (
        (codec.EMCY, 8, FrameField(0, Kind.UINT16, EMERGENCY)),
        (codec.HEARTBEAT, 1, FrameField(0, Kind.UINT8, NETWORK)),
    ):
        yield ReceivedFrame(CanFrame(id + drive.node, bytes(size)), k, (field,), Role.NOTICE, exact=True)


def transmission(mode: str, drives: Sequence[CycledDrive], heartbeat: CanFrame) -> Transmission:
    """heartbeat: of the host."""
    sent = [frame for k, drive in enumerate(drives) for frame in _sent(k, drive, mode)]
    return Transmission(_COMMANDS[mode], [*sent, SentFrame(heartbeat), SentFrame(codec.SYNC)])


def _sent(k: int, drive: CycledDrive, mode: str) -> Iterator[SentFrame]:
    """What is not commanded is in the templates."""
    places = process_data.commanded(mode)
    templates = dict(CommandCoder(drive.map, mode, profile.MODES[mode]).data(profile.ENABLE, (0, 0, 0)))
    for number, objects in drive.map.receive:
        frame = CanFrame(codec.RPDO + number * codec.PDO_STRIDE + drive.node, templates[number])
        yield SentFrame(frame, k, _fields(objects, places))


def _fields(objects: Sequence[int], places: Mapping[int, int]) -> tuple[FrameField, ...]:
    """The fields of a PDO with what has a place among the numbers of a joint."""
    fields, at = [], 0
    for each in objects:
        if each in places:
            kind = _UNSIGNED[each & 0xFF] if each == process_data.STATUS else _SIGNED[each & 0xFF]
            fields.append(FrameField(at, kind, places[each]))
        at += (each & 0xFF) // 8
    return tuple(fields)
