"""Whether a drive is the one that the rig speaks of, and may be driven as the rig wants it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from cosim.drivers.dynamixel import codec
from cosim.drivers.dynamixel import tables as t
from cosim.drivers.dynamixel.client import Client
from cosim.drivers.transport import ConnectionLost
from cosim.errors import InputError, RunError, SourceLocation

TOOL = "with the manufacturer's tool"


class DriveFacts(NamedTuple):
    """What a drive reports of itself; limits in counts."""

    firmware: int
    current_limit: int
    velocity_limit: int


class Expected(NamedTuple):
    """What the rig requires of a drive."""

    wiring: Any  # the family's JointParams
    return_delay: float  # s, at most
    fast: bool | None
    connection: str


def inspect(client: Client, expected: Expected, place: Callable[..., SourceLocation]) -> DriveFacts:
    """Leaves the torque off. place(key): where a key of the joint stands. Raises InputError, LinkError."""
    id, model = expected.wiring.id, t.MODELS[expected.wiring.model]
    answer = client.ask(id, codec.packet(id, codec.PING))
    if answer is None or len(answer.params) != 4:
        what = f"no answer from drive {id} on {expected.connection}; check its power, the id and the bit rate"
        raise InputError(what, place("id"))
    number, firmware = answer.params[1] | answer.params[2] << 8, answer.params[3]
    if number != model.number:
        name = t.MODEL_NAMES.get(number)
        mend = f"write 'model: {name}'" if name else f"known: {', '.join(t.MODELS)}"
        what = f"drive {id} is {name or f'of model number {number}'}, not {expected.wiring.model}; {mend}"
        raise InputError(what, place("model"))
    try:
        found, trouble = _read(client, expected, model, firmware)
    except ConnectionLost:
        raise
    except RunError as error:
        raise InputError(error.what, place("id")) from error
    if trouble := _firmware(expected, firmware) or trouble:
        raise InputError(f"drive {id}: {trouble}", place("id"))
    return found


def _firmware(expected: Expected, version: int) -> str:
    for needed, what, wanted in (
        (t.FIRMWARE_WATCHDOG, "bus watchdog", True),
        (t.FIRMWARE_FAST, "fast sync read", expected.fast is True),
    ):
        if wanted and version < needed:
            return f"its firmware {version} has no {what}; update it to {t.FIRMWARE_FAST} or later {TOOL}"
    return ""


def _read(client: Client, expected: Expected, model: t.ServoModel, firmware: int) -> tuple[DriveFacts, str]:
    """What it reports of itself, and what is wrong with its settings."""
    id = expected.wiring.id
    try:
        level = client.get(id, t.RETURN_LEVEL)
    except ConnectionLost:
        raise
    except RunError:
        level = 0  # it answered a ping
    if level != t.RETURN_LEVEL.initial:
        return DriveFacts(firmware, 0, 0), f"status return level {level} (register 68) keeps it silent; write 2 {TOOL}"
    client.put(id, t.TORQUE_ENABLE, 0)
    delay = client.get(id, t.RETURN_DELAY_TIME)
    mode = client.get(id, t.DRIVE_MODE)
    current = client.get(id, t.CURRENT_LIMIT) if model.senses_current else 0
    found = DriveFacts(firmware, current, client.get(id, t.VELOCITY_LIMIT))
    if delay * t.RETURN_DELAY > expected.return_delay:
        most = math.floor(expected.return_delay / t.RETURN_DELAY + 1e-6)
        seen = f"return delay time {delay * t.RETURN_DELAY * 1e6:g} µs (register 9 = {delay})"
        return found, f"{seen} is longer than 'return_delay' allows; write {most} or less {TOOL}"
    if mode & (t.SLAVE | t.TORQUE_BY_GOAL):
        why = "makes it the slave of another" if mode & t.SLAVE else "lets goals switch the torque on"
        return found, f"drive mode {mode} (register 10) {why}; write {mode & ~(t.SLAVE | t.TORQUE_BY_GOAL)} {TOOL}"
    return found, ""
