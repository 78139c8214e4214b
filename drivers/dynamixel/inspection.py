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

TOOL = "with the maker's tool"


class Found(NamedTuple):
    """What a drive says of itself; limits in counts."""

    firmware: int
    current_limit: int
    velocity_limit: int


class Wish(NamedTuple):
    """What the rig says of a joint and its drive; effort and velocity: bounds of the guard in the drive's units."""

    wiring: Any  # the family's JointParams
    effort: float
    velocity: float
    return_delay: float  # s, at most
    fast: bool | None
    line: str


def inspect(talk: Client, wish: Wish, place: Callable[..., SourceLocation]) -> Found:
    """Leaves the torque off. place(key): where a key of the joint stands. Raises InputError, LinkError."""
    id, model = wish.wiring.id, t.MODELS[wish.wiring.model]
    answer = talk.ask(id, codec.packet(id, codec.PING))
    if answer is None or len(answer.params) != 4:
        what = f"no answer from drive {id} on {wish.line}; check its power, its id and the bit rate"
        raise InputError(what, place("id"))
    number, firmware = answer.params[1] | answer.params[2] << 8, answer.params[3]
    if number != model.number:
        name = t.MODEL_NAMES.get(number)
        mend = f"write 'model: {name}'" if name else f"known: {', '.join(t.MODELS)}"
        what = f"drive {id} is {name or f'of model number {number}'}, not {wish.wiring.model}; {mend}"
        raise InputError(what, place("model"))
    try:
        found, trouble = _read(talk, wish, model, firmware)
    except ConnectionLost:
        raise
    except RunError as error:
        raise InputError(error.what, place("id")) from error
    if trouble := _firmware(wish, firmware) or trouble or _limits(wish, model, found):
        raise InputError(f"drive {id}: {trouble}", place("id"))
    return found


def _firmware(wish: Wish, version: int) -> str:
    for needed, what, wanted in (
        (t.FIRMWARE_WATCHDOG, "bus watchdog", True),
        (t.FIRMWARE_FAST, "fast sync read", wish.fast is True),
    ):
        if wanted and version < needed:
            return f"its firmware {version} has no {what}; update it to {t.FIRMWARE_FAST} or later {TOOL}"
    return ""


def _read(talk: Client, wish: Wish, model: t.ServoModel, firmware: int) -> tuple[Found, str]:
    """What it says of itself, and what is wrong with its settings."""
    id = wish.wiring.id
    try:
        level = talk.get(id, t.RETURN_LEVEL)
    except ConnectionLost:
        raise
    except RunError:
        level = 0  # it answered a ping
    if level != t.RETURN_LEVEL.initial:
        return Found(firmware, 0, 0), f"status return level {level} (register 68) keeps it silent; write 2 {TOOL}"
    talk.put(id, t.TORQUE_ENABLE, 0)
    delay = talk.get(id, t.RETURN_DELAY_TIME)
    mode = talk.get(id, t.DRIVE_MODE)
    current = talk.get(id, t.CURRENT_LIMIT) if model.senses_current else 0
    found = Found(firmware, current, talk.get(id, t.VELOCITY_LIMIT))
    if delay * t.RETURN_DELAY > wish.return_delay:
        most = math.floor(wish.return_delay / t.RETURN_DELAY + 1e-6)
        seen = f"return delay time {delay * t.RETURN_DELAY * 1e6:g} µs (register 9 = {delay})"
        return found, f"{seen} is longer than 'return_delay' allows; write {most} or less {TOOL}"
    if mode & (t.SLAVE | t.TORQUE_BY_GOAL):
        why = "makes it the slave of another" if mode & t.SLAVE else "lets goals switch the torque on"
        return found, f"drive mode {mode} (register 10) {why}; write {mode & ~(t.SLAVE | t.TORQUE_BY_GOAL)} {TOOL}"
    return found, ""


def _limits(wish: Wish, model: t.ServoModel, found: Found) -> str:
    """A bound that the guard allows and the drive does not; bounds that are not set are the drive's."""
    effort = found.current_limit * model.effort(wish.wiring.torque_constant)
    rows = [("velocity", wish.velocity, found.velocity_limit * t.VELOCITY, "rad/s", t.VELOCITY_LIMIT)]
    if model.senses_current:
        rows.append(("effort", wish.effort, effort, "N·m", t.CURRENT_LIMIT))
    for what, wanted, own, unit, register in rows:
        if math.isfinite(wanted) and wanted > own * (1 + 1e-9):
            return (
                f"the joint's {what} limit is {wanted:.4g} {unit} at the drive, whose own is {own:.4g} {unit} "
                f"(register {register.address}); lower the joint's limit, or raise the drive's {TOOL}"
            )
    return ""
