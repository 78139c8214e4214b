"""Checks whether a drive is the one in the rig, with usable settings."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from cosim.core.errors import InputError, RunError, SilentDrive, SourceLocation
from cosim.plugins.drivers.dynamixel import codec
from cosim.plugins.drivers.dynamixel import tables as t
from cosim.plugins.drivers.dynamixel.client import Client
from cosim.plugins.drivers.dynamixel.params import JointParams
from cosim.plugins.drivers.transport import ConnectionLost

PINGS = 5  # all answered by a drive that does not answer reads, and not by one whose answers get lost
TOOL = "with the manufacturer's tool"


class DriveSettings(NamedTuple):
    """Firmware and limits that a drive reports; limits in counts."""

    firmware: int
    current_limit: int
    velocity_limit: int


class Expected(NamedTuple):
    """What the rig requires of a drive."""

    wiring: JointParams
    return_delay: float  # s, the longest allowed
    fast: bool | None
    connection: str


def inspect(client: Client, expected: Expected, place: Callable[..., SourceLocation]) -> DriveSettings:
    """Check a drive and switch its torque off. place(key): the place of a key of the joint. Raises InputError,
    ConnectionLost."""
    id, model = expected.wiring.id, t.MODELS[expected.wiring.model]
    answer = client.request(id, codec.packet(id, codec.PING))
    if answer is None or len(answer.params) != 4:
        what = f"no answer from drive {id} on {expected.connection}; check its power, the id and the bit rate"
        raise SilentDrive(what, place("id"), id)
    number, firmware = answer.params[1] | answer.params[2] << 8, answer.params[3]
    if number != model.number:
        name = t.MODEL_NAMES.get(number)
        fix = f"write 'model: {name}'" if name else f"known: {', '.join(t.MODELS)}"
        what = f"drive {id} is {name or f'of model number {number}'}, not {expected.wiring.model}; {fix}"
        raise InputError(what, place("model"))
    try:
        settings, problem = _read(client, expected, model, firmware)
    except ConnectionLost:
        raise
    except RunError as error:
        raise InputError(error.what, place("id")) from error
    if problem := _firmware(expected, firmware) or problem:
        raise InputError(f"drive {id}: {problem}", place("id"))
    return settings


def _firmware(expected: Expected, version: int) -> str:
    for needed, what, required in (
        (t.FIRMWARE_WATCHDOG, "bus watchdog", True),
        (t.FIRMWARE_FAST, "fast sync read", expected.fast is True),
    ):
        if required and version < needed:
            return f"its firmware {version} has no {what}; update it to {t.FIRMWARE_FAST} or later {TOOL}"
    return ""


def _read(client: Client, expected: Expected, model: t.ServoModel, firmware: int) -> tuple[DriveSettings, str]:
    """The settings of a drive, and what is wrong with them, "" for nothing."""
    id = expected.wiring.id
    try:
        level = client.get(id, t.RETURN_LEVEL)
    except ConnectionLost:
        raise
    except RunError:
        ping = codec.packet(id, codec.PING)
        if any(client.request(id, ping, tries=1) is None for _ in range(PINGS)):
            raise
        level = 0  # it answers pings alone
    if level != t.RETURN_LEVEL.initial:
        silent = f"status return level {level} (register 68) keeps it silent; write 2 {TOOL}"
        return DriveSettings(firmware, 0, 0), silent
    client.put(id, t.TORQUE_ENABLE, 0)
    delay = client.get(id, t.RETURN_DELAY_TIME)
    mode = client.get(id, t.DRIVE_MODE)
    current = client.get(id, t.CURRENT_LIMIT) if model.senses_current else 0
    settings = DriveSettings(firmware, current, client.get(id, t.VELOCITY_LIMIT))
    if delay * t.RETURN_DELAY > expected.return_delay:
        longest = math.floor(expected.return_delay / t.RETURN_DELAY + 1e-6)
        actual = f"return delay time {delay * t.RETURN_DELAY * 1e6:g} µs (register 9 = {delay})"
        return settings, f"{actual} is longer than 'return_delay' allows; write {longest} or less {TOOL}"
    if mode & (t.SLAVE | t.TORQUE_BY_GOAL):
        why = "makes it the slave of another" if mode & t.SLAVE else "lets goals switch the torque on"
        return settings, f"drive mode {mode} (register 10) {why}; write {mode & ~(t.SLAVE | t.TORQUE_BY_GOAL)} {TOOL}"
    return settings, ""
