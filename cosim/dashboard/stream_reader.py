"""The messages of a stream as news."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cosim.dashboard.source import About, JointAbout, News, PageEvent, ParameterAbout, Value


def about_of(schema: Mapping[str, Any]) -> About:
    """From a schema, as the stream and the control socket have it."""
    joints = {
        name: JointAbout(
            joint["unit"],
            *(_number(joint.get(key)) for key in ("lower", "upper", "velocity", "effort")),
            real=bool(joint.get("real")),
        )
        for name, joint in (schema.get("joints") or {}).items()
    }
    parameters = {
        name: ParameterAbout(
            item.get("unit") or "",
            item.get("min"),
            item.get("max"),
            value_of(item["value"]),
            tuple(item.get("joints", ())),
        )
        for name, item in (schema.get("parameters") or {}).items()
    }
    return About(
        schema["rig"],
        schema["signals"],
        joints,
        parameters,
        _number(schema.get("step")),
        schema.get("path") or "",
        schema.get("drawing") or "",
        tuple(map(str, schema.get("moves") or ())),
        {str(name): _number(load) for name, load in (schema.get("bus_loads") or {}).items()},
    )


class StreamReader:
    """Collects the messages of a stream; it knows neither socket nor clock."""

    def __init__(self, signals: Sequence[str]) -> None:
        self._paths = [name.split("/") for name in signals]
        self.state, self.missed, self.lost = "", 0, 0
        self._number, self._t = -1, -math.inf
        self._rows: list[tuple[float, list[float]]] = []
        self._events: list[PageEvent] = []
        self._restarted = False

    def add(self, message: Mapping[str, Any]) -> None:
        if "event" in message:
            self._events.append(PageEvent(_number(message["t"]), message["event"], message.get("level", "info")))
        elif "n" in message:
            self._add_sample(message)

    def _add_sample(self, sample: Mapping[str, Any]) -> None:
        number, t = sample["n"], sample["t"]
        if t < self._t:
            self.restart()
        if self._number >= 0:
            self.lost += max(0, number - self._number - 1)
        self._number, self._t, self.missed = number, t, sample.get("missed") or 0
        self._rows.append((t, [_at(sample, path) for path in self._paths]))

    def restart(self) -> None:
        """What comes next is of another run."""
        self._rows.clear()
        self._events.clear()
        self._restarted, self.missed, self.lost, self._number, self._t = True, 0, 0, -1, -math.inf

    def take(self) -> News:
        """What was added since the last call."""
        rows, events, restarted = self._rows, self._events, self._restarted
        self._rows, self._events, self._restarted = [], [], False
        values = np.array([row for _, row in rows], dtype=float).reshape(len(rows), len(self._paths))
        return News(np.array([t for t, _ in rows]), values, tuple(events), restarted)


def _at(sample: Mapping[str, Any], path: Sequence[str]) -> float:
    place: Any = sample
    for name in path:
        place = place.get(name) if isinstance(place, Mapping) else None
    return _number(place)


def _number(value: Any) -> float:
    """JSON has null for what is not finite."""
    return math.nan if value is None else float(value)


def value_of(value: Any) -> Value:
    return [_number(item) for item in value] if isinstance(value, list) else _number(value)
