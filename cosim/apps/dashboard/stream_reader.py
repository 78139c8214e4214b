"""The messages of a stream as news."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cosim.apps.dashboard.source import About, JointAbout, News, PageEvent, ParameterAbout, Value
from cosim.output.stream.messages import signals_of

if TYPE_CHECKING:
    from cosim.output.stream.reading import PublishedSchema


def about_of(schema: PublishedSchema) -> About:
    joints = {
        name: JointAbout(
            joint["unit"] or "",
            *(_number(joint[key]) for key in ("lower", "upper", "velocity", "effort")),
            real=joint["real"],
        )
        for name, joint in schema["joints"].items()
    }
    parameters = {
        name: ParameterAbout(
            item["unit"], item["min"], item["max"], value_of(item["value"]), tuple(item.get("joints", ()))
        )
        for name, item in schema["parameters"].items()
    }
    return About(
        schema["rig"],
        schema["signals"],
        joints,
        parameters,
        schema["step"],
        schema["path"],
        schema["drawing"],
        tuple(schema["moves"]),
        {name: _number(load) for name, load in schema["bus_loads"].items()},
    )


class StreamReader:
    """Collects the messages of a stream; it knows neither socket nor clock."""

    def __init__(self, signals: Sequence[str]) -> None:
        self._signals = tuple(signals)
        self.state, self.missed, self.lost = "", 0, 0
        self._number, self._t = -1, -math.inf
        self._rows: list[tuple[float, list[float]]] = []
        self._events: list[PageEvent] = []
        self._restarted = False

    def add(self, message: Mapping[str, Any]) -> None:
        """An event or a sample. Raises WrongShape for a signal that is no number."""
        if "event" in message:
            self._events.append(PageEvent(message["t"], message["event"], message["level"]))
        else:
            self._add_sample(message)

    def _add_sample(self, sample: Mapping[str, Any]) -> None:
        number, t = sample["n"], sample["t"]
        if t < self._t:
            self.restart()
        if self._number >= 0:
            self.lost += max(0, number - self._number - 1)
        self._number, self._t, self.missed = number, t, sample["missed"]
        values = dict(signals_of(sample))
        self._rows.append((t, [values.get(name, math.nan) for name in self._signals]))

    def restart(self) -> None:
        """What comes next is of another run."""
        self._rows.clear()
        self._events.clear()
        self._restarted, self.missed, self.lost, self._number, self._t = True, 0, 0, -1, -math.inf

    def take(self) -> News:
        """What was added since the last call."""
        rows, events, restarted = self._rows, self._events, self._restarted
        self._rows, self._events, self._restarted = [], [], False
        values = np.array([row for _, row in rows], dtype=float).reshape(len(rows), len(self._signals))
        return News(np.array([t for t, _ in rows]), values, tuple(events), restarted)


def _number(value: float | None) -> float:
    """JSON has null for what is not finite."""
    return math.nan if value is None else value


def value_of(value: float | list[float | None] | None) -> Value:
    return [_number(item) for item in value] if isinstance(value, list) else _number(value)
