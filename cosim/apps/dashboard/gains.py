"""The gains of a run as the user chooses them: present values, what was changed, and the way back."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from cosim.apps.dashboard.source import ParameterAbout, Value

ONE_MOVE = 1.0  # s within which changes of the same number are one move of a slider


class Move(NamedTuple):
    """name: of a parameter; its value before and after."""

    name: str
    before: Value
    after: Value


def refusal(name: str, about: ParameterAbout, number: object) -> str:
    """Why a number cannot be set, empty where it can."""
    if isinstance(number, bool) or not isinstance(number, int | float) or not math.isfinite(number):
        return f"{name}: no number was typed"
    for bound, broken, word in (
        (about.lower, lambda limit: number < limit, "least"),
        (about.upper, lambda limit: number > limit, "most"),
    ):
        if bound is not None and broken(bound):
            return f"{name}: must be at {word} {bound:g} {about.unit}, is {number:g} {about.unit}"
    return ""


class GainHistory:
    """Values by the name of the parameter, in SI; a list where there is one per joint. Those that are not finite, such
    as a limit that is not set, are left out: no slider could show them."""

    def __init__(self, parameters: Mapping[str, ParameterAbout]) -> None:
        self.about = {name: about for name, about in parameters.items() if np.isfinite(about.value).all()}
        self.present = {name: _copy(about.value) for name, about in self.about.items()}
        self._first = {name: _copy(value) for name, value in self.present.items()}
        self._done: list[Move] = []
        self._undone: list[Move] = []
        self._last: tuple[str, int | None] | None = None
        self._moved = 0.0  # s, when the last move was made

    def at(self, name: str, index: int | None) -> float:
        """index: of a list; None for a single number."""
        value = self.present[name]
        return value[index or 0] if isinstance(value, list) else value

    def move(self, name: str, index: int | None, number: float, now: float) -> dict[str, Value]:
        """Change one number at the time `now` [s]; the value to set."""
        before, after = self.present[name], _copy(self.present[name])
        if isinstance(after, list):
            after[index or 0] = number
        else:
            after = number
        if after == before:
            return {}
        if self._last == (name, index) and now - self._moved < ONE_MOVE and self._done:
            self._done[-1] = self._done[-1]._replace(after=after)
        else:
            self._done.append(Move(name, before, after))
        self._undone.clear()
        self._last, self._moved = (name, index), now
        self.present[name] = after
        return {name: after}

    def undo(self) -> dict[str, Value]:
        """Take the last move back; the value to set, nothing if there is none."""
        if not self._done:
            return {}
        self._undone.append(move := self._done.pop())
        return self._show(move.name, move.before)

    def redo(self) -> dict[str, Value]:
        """Make a move again that was taken back."""
        if not self._undone:
            return {}
        self._done.append(move := self._undone.pop())
        return self._show(move.name, move.after)

    def _show(self, name: str, value: Value) -> dict[str, Value]:
        self._last = None
        self.present[name] = _copy(value)
        return {name: _copy(value)}

    def accept(self, values: Mapping[str, Value]) -> None:
        """The values that the run has: others may change them, or it may have refused one. There is no way back."""
        for name, value in values.items():
            if name in self.present and self.present[name] != value:
                self.present[name] = _copy(value)
                self._last = None

    def moved_since(self, now: float, seconds: float) -> bool:
        """Whether a number was changed here within the last seconds."""
        return bool(self._done or self._undone) and now - self._moved < seconds

    def changed(self) -> dict[str, Value]:
        """The values that differ from those that the rig began with."""
        return {name: value for name, value in self.present.items() if value != self._first[name]}


def _copy(value: Value) -> Value:
    return list(value) if isinstance(value, list) else value
