"""The messages of a stream as plain maps, and their encodings.

The first key shows the kind: `timestamp` for a sample, `schema`, `event`. Every message has a number `timestamp`:
PlotJuggler takes it as the time, until the first message without it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

from cosim.core.trust.plain_data import WrongShape
from cosim.core.types import Level

Format = Literal["json", "msgpack"]
Template: TypeAlias = "dict[str, int | Template]"  # name -> column, or what is below it

SAMPLE_FIELDS = ("timestamp", "n", "tick", "t", "missed")  # of every sample, beside the signals


def template_of(names: Sequence[str]) -> Template:
    """The nesting of signals: `a/b` stands at ["a"]["b"]; the leaves are their columns."""
    template: Template = {}
    for column, name in enumerate(names):
        *parents, last = name.split("/")
        place: Any = template
        for parent in parents:
            place = place.setdefault(parent, {})
        place[last] = column
    return template


def sample_of(template: Template, row: np.ndarray, fields: Mapping[str, float]) -> dict[str, Any]:
    """A sample: SAMPLE_FIELDS and the signals of a row; None for numbers that are not finite."""
    values = row.tolist()
    if not np.isfinite(row).all():
        values = [value if math.isfinite(value) else None for value in values]
    return {**fields, **_filled(template, values)}


def _filled(template: Template, values: Sequence[float | None]) -> dict[str, Any]:
    return {
        name: values[place] if isinstance(place, int) else _filled(place, values) for name, place in template.items()
    }


def signals_of(sample: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """(name, value) of the signals of a sample, NaN for null. Raises WrongShape for what is neither number nor null."""
    places = [("", dict(sample))]
    for field in SAMPLE_FIELDS:
        places[0][1].pop(field, None)
    while places:
        prefix, group = places.pop()
        for name, value in group.items():
            if isinstance(value, dict):
                places.append((f"{prefix}{name}/", value))
            elif value is None or isinstance(value, float | int):
                yield prefix + name, math.nan if value is None else value
            else:
                raise WrongShape(f"{prefix}{name}: expected a number")


def schema_of(schema: Mapping[str, Any], timestamp: float) -> dict[str, Any]:
    """The schema is a text within the message: a plotting tool sees no numbers in it."""
    from orjson import dumps

    return {"schema": dumps(schema).decode(), "timestamp": timestamp}


def event_of(what: str, timestamp: float, t: float, level: Level) -> dict[str, Any]:
    return {"event": what, "timestamp": timestamp, "t": t, "level": level}


def encoder_of(format: Format) -> Callable[[Mapping[str, Any]], bytes]:
    """A map as bytes. Floats stay floats: 1.0 is never written as 1."""
    if format == "json":
        from orjson import dumps

        return dumps
    from msgpack import Packer

    return Packer().pack
