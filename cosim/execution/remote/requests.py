"""The requests of the control socket: their fields, and who may make them. Pure: bytes in, a checked request out."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from cosim.core.errors import did_you_mean

MAX_BYTES = 1 << 16  # of a request
MAX_TEXT = 500  # characters
MAX_NAMES = 1000  # parameters of one request
MAX_STEPS = 10_000  # ticks of one request

Check = Callable[[Any], bool]


class BadRequest(Exception):
    """What is wrong with a request, and the fix."""


class UnknownName(BadRequest):
    """A name that the rig does not have, in whatever state it is."""


@dataclass(frozen=True)
class Field:
    """A field of a request: what it must be, in words and as a check; optional where there is a default. part_wrong:
    what is wrong with a part of it, empty for the whole."""

    words: str
    check: Check
    required: bool = True
    part_wrong: Callable[[Any], str] = lambda value: ""


@dataclass(frozen=True)
class Command:
    """What a command of the control socket consists of, who may give it, and who carries it out.

    fields: besides `id`, `command` and `client`; of_owner: only the client that holds control may; by_run: the run
    carries it out, any other is answered from what is known of the run.
    """

    fields: Mapping[str, Field] = field(default_factory=dict)
    of_owner: bool = False
    by_run: bool = False


def _text(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= MAX_TEXT and value.isprintable()


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _value(value: Any) -> bool:
    many = isinstance(value, list) and 0 < len(value) <= MAX_NAMES and all(map(_number, value))
    return _number(value) or _text(value) or many


def _values(value: Any) -> bool:
    few = isinstance(value, dict) and 0 < len(value) <= MAX_NAMES
    return few and all(_text(name) and _value(item) for name, item in value.items())


def _value_wrong(values: Any) -> str:
    if not isinstance(values, dict):
        return ""
    name = next((name for name, item in values.items() if _text(name) and not _value(item)), "")
    return f"the value of '{_short(name)}' must be a number, a list of numbers or text with a unit" if name else ""


def _names(value: Any) -> bool:
    return isinstance(value, list) and len(value) <= MAX_NAMES and all(map(_text, value))


def _ticks(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_STEPS


CLIENT = Field(f"a name of up to {MAX_TEXT} characters", _text)
FLAG = Field("true or false", lambda value: isinstance(value, bool), required=False)
COMMANDS: Mapping[str, Command] = {
    "status": Command(),
    **dict.fromkeys(
        ("list", "get"), Command({"names": Field("a list of names of parameters", _names, required=False)})
    ),
    "files": Command(),
    "take": Command({"force": FLAG}),
    "release": Command(of_owner=True),
    "heartbeat": Command(of_owner=True),
    "set": Command(
        {
            "values": Field(
                'an object such as {"arm.kp": 3}: numbers, lists of numbers or text with a unit',
                _values,
                part_wrong=_value_wrong,
            )
        },
        of_owner=True,
        by_run=True,
    ),
    "arm": Command({"allow_turns": FLAG}, of_owner=True, by_run=True),
    "start": Command(of_owner=True, by_run=True),
    "pause": Command(of_owner=True, by_run=True),
    "resume": Command(of_owner=True, by_run=True),
    "step": Command(
        {"ticks": Field(f"a whole number from 1 to {MAX_STEPS:,}", _ticks, required=False)}, of_owner=True, by_run=True
    ),
    "stop": Command(of_owner=True, by_run=True),
    "estop": Command(by_run=True),
    "marker": Command({"text": Field(f"a text of up to {MAX_TEXT} printable characters", _text)}, by_run=True),
}


@dataclass(frozen=True)
class Request:
    """A request whose fields were checked. id: the client's, returned with the reply; client: its name."""

    id: int | float | str | None
    command: str
    client: str
    fields: Mapping[str, Any]

    @property
    def kind(self) -> Command:
        return COMMANDS[self.command]


def read_request(data: bytes) -> Request:
    """Raises BadRequest, which has the attribute `id` of the request where that could be read."""
    from orjson import JSONDecodeError, loads

    if len(data) > MAX_BYTES:
        raise BadRequest(f"a request has at most {MAX_BYTES:,} bytes, got {len(data):,}")
    try:
        given = loads(data)
    except JSONDecodeError:
        raise BadRequest('not JSON; send an object such as {"command": "status"}') from None
    if not isinstance(given, dict):
        raise BadRequest('expected an object such as {"command": "status"}')
    number = given.pop("id", None)
    number = number if isinstance(number, int | float | str) and not isinstance(number, bool) else None
    try:
        return _checked(number, given)
    except BadRequest as error:
        error.id = number  # type: ignore[attr-defined]
        raise


def _checked(number: int | float | str | None, given: dict[str, Any]) -> Request:
    name = given.pop("command", None)
    if not isinstance(name, str):
        raise BadRequest('there is no command; send an object such as {"command": "status"}')
    if name not in COMMANDS:
        raise BadRequest(f"there is no command '{_short(name)}'{did_you_mean(name[:MAX_TEXT], COMMANDS)}")
    fields = {"client": Field(CLIENT.words, CLIENT.check, required=name == "take"), **COMMANDS[name].fields}
    for field_name in given:
        if field_name not in fields:
            raise BadRequest(f"{name}: there is no field '{_short(field_name)}'{did_you_mean(field_name, fields)}")
    for field_name, item in fields.items():
        if field_name not in given:
            if item.required:
                raise BadRequest(f"{name}: the field '{field_name}' is missing; give {item.words}")
        elif not item.check(given[field_name]):
            part = item.part_wrong(given[field_name])
            raise BadRequest(f"{name}: " + (part or f"'{field_name}' must be {item.words}"))
    return Request(number, name, given.pop("client", "a client"), given)


def _short(name: str) -> str:
    return name if len(name) <= 40 and name.isprintable() else f"{name[:40]!r}…"
