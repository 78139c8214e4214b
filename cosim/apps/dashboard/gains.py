"""The gains of a run as the user chooses them: their values, the way back, scales of their sliders, and their file."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from cosim.apps.dashboard.source import ParameterAbout, Value
from cosim.core.errors import InputError
from cosim.rig.reading.schema import SMALLEST_NUMBER
from cosim.rig.reading.yaml_source import overlay_text

ONE_MOVE = 1.0  # s within which changes of the same number are one move of a slider
MOST_FILES = 1000
DECADES = 2.0  # on each side of the value of a gain without a bound there
WIDE = 2.0  # decades of a range from which on its scale is logarithmic
STEPS = 400  # of a slider
DIGITS = 3  # that a slider sets


class Move(NamedTuple):
    """One change of a parameter by the user, which can be undone and redone. name: of the parameter."""

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


def write_overlay(folder: Path, name: str, rig: str, values: Mapping[str, Value]) -> Path:
    """Write a new file in a folder, none is replaced; its path. name: of the rig; rig: its file; values: by the name
    of the parameter, such as `arm.kp`. Raises InputError where it cannot be written."""
    text = overlay_text({f"controllers.{key}": value for key, value in values.items()}, rig)
    stem = re.sub(r"[^\w.-]+", "_", name) or "rig"
    for number in range(1, MOST_FILES):
        path = folder / (f"{stem}_gains.yaml" if number == 1 else f"{stem}_gains_{number}.yaml")
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
        except FileExistsError:
            continue
        except OSError as error:
            raise InputError(
                f"cannot be written: {error.strerror}; start the dashboard in another folder", str(path)
            ) from None
        return path
    raise InputError(f"has {MOST_FILES - 1} files of gains of this rig; remove some", str(folder))


class GainRange(NamedTuple):
    """The range of the slider of a gain, with the scale on which it moves. low, high: in the unit of the gain;
    logarithmic: the slider moves its decimal logarithm."""

    low: float
    high: float
    logarithmic: bool

    @property
    def ends(self) -> tuple[float, float]:
        """Positions of the slider at both ends."""
        return (math.log10(self.low), math.log10(self.high)) if self.logarithmic else (self.low, self.high)

    @property
    def step(self) -> float:
        low, high = self.ends
        return (high - low) / STEPS

    def position(self, value: float) -> float:
        """Of the slider; at its end for a value beyond."""
        value = min(max(value, self.low), self.high)
        return math.log10(value) if self.logarithmic else value

    def value(self, position: float) -> float:
        """Rounded to a few digits, but for the ends."""
        low, high = self.ends
        if not low < position < high:
            return self.low if position <= low else self.high
        value = 10.0**position if self.logarithmic else position
        return min(max(rounded(value), self.low), self.high)

    @property
    def marks(self) -> tuple[tuple[float, str], ...]:
        """Positions with labels: the ends, and the decades between."""
        if not self.logarithmic:
            return (self.low, _short(self.low)), (self.high, _short(self.high))
        low, high = self.ends
        return tuple((float(k), _short(10.0**k)) for k in range(math.ceil(low - 1e-9), math.floor(high + 1e-9) + 1))


def gain_range(value: float, lower: float | None, upper: float | None) -> GainRange:
    """value: at present; lower, upper: the declared bounds, None without one."""
    lower = -math.inf if lower is None else lower
    upper = math.inf if upper is None else upper
    if lower < 0.0:  # either sign
        reach = 10.0 * abs(value) or 1.0
        return GainRange(max(lower, -reach), min(upper, reach), False)
    if value <= 0.0:
        return GainRange(lower, upper if math.isfinite(upper) else lower + 1.0, False)
    decade = math.floor(math.log10(value))
    low = lower if lower > SMALLEST_NUMBER else 10.0 ** (decade - DECADES + 1)
    high = upper if math.isfinite(upper) else 10.0 ** (decade + DECADES)
    if math.isfinite(upper) and math.log10(upper / value) < WIDE and lower <= SMALLEST_NUMBER:
        return GainRange(lower, upper, False)
    wide = high > low and math.log10(high / low) >= WIDE
    return GainRange(low, high, True) if wide else GainRange(lower, high, False)


def rounded(value: float) -> float:
    """To a few digits."""
    return float(f"{value:.{DIGITS}g}")


def _short(value: float) -> str:
    """`1k` for 1000."""
    for power, prefix in ((6, "M"), (3, "k")):
        if 10.0**power <= abs(value) < 10.0 ** (power + 3):
            return f"{value / 10.0**power:g}{prefix}"
    return f"{value:.4g}"
