"""Gains of columns: by what a number of a log is multiplied to be the quantity of a joint.

`14.87 N*m/A` makes an effort of a current, `0.00153 rad` an angle of a count, `-1` turns a sign and leaves the unit.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from cosim.core.units import UNITS, known_unit

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_GAINS = re.compile(rf"\s*({_NUMBER}(?:\s*,\s*{_NUMBER})*)\s*([^\W\d].*|°.*)?\s*")
_NUMBERS = re.compile(_NUMBER)


class Gain(NamedTuple):
    """number: in `unit`, a text; unit: of the quantity, None of a pure number, with which the column keeps its own;
    per: the unit of the column, None of a count without one."""

    number: float
    unit: str | None = None
    per: str | None = None

    @property
    def text(self) -> str:
        return f"{self.unit}/{self.per}" if self.per else self.unit or "1"

    def factor(self, unit: str | None, allowed: Sequence[str]) -> float:
        """From the numbers of a column to SI; unit: of the column, None where nobody gives it; allowed: dimensions of
        the quantity. Raises ValueError, in words, for units that do not fit."""
        if self.unit is None:
            return self.number
        dimension, factor = UNITS[self.unit]
        if dimension not in allowed:
            raise ValueError(f"a gain in {self.text} gives {dimension}, not {' or '.join(allowed)}")
        if self.per is None:
            if unit is not None:
                raise ValueError(f"a gain in {self.unit} is for counts, and the column is in {unit}")
            return self.number * factor
        of_column, by = UNITS[self.per]
        if unit is not None and UNITS[unit][0] != of_column:
            raise ValueError(f"a gain in {self.text} is for a column in {self.per}, and this one is in {unit}")
        return self.number * factor / by * (by if unit is None else UNITS[unit][1])


def read_gains(given: Any, allowed: Sequence[str]) -> list[Gain]:
    """Of a number, a text such as `14.87,13.26 N*m/A` or `50 N/A, 0.8 N*m/A`, or a list of them. allowed: dimensions
    of the quantity. Raises ValueError, in words."""
    if isinstance(given, (list, tuple)):
        return [gain for each in given for gain in read_gains(each, allowed)]
    parts = [part.strip() for part in str(given).split(",")]
    if len(parts) > 1 and all(_GAINS.fullmatch(part) and not _NUMBERS.fullmatch(part) for part in parts):
        return read_gains(parts, allowed)
    match = _GAINS.fullmatch(str(given))
    if match is None:
        raise ValueError(f"expected numbers and a unit such as '14.87,13.26 N*m/A', got '{given}'")
    unit, per = (None, None) if match[2] is None else _units(match[2].strip(), allowed)
    numbers = [float(number) for number in match[1].split(",")]
    if not all(0.0 < abs(number) < float("inf") for number in numbers):
        raise ValueError("a gain must be finite and not 0")
    return [Gain(number, unit, per) for number in numbers]


def _units(text: str, allowed: Sequence[str]) -> tuple[str, str | None]:
    """(unit of the quantity, of the column or None)"""
    if (unit := known_unit(text)) is not None and UNITS[unit][0] in allowed:
        return unit, None
    for slash in re.finditer("/", text):
        unit, per = known_unit(text[: slash.start()].strip()), known_unit(text[slash.end() :].strip())
        if unit is not None and per is not None and UNITS[unit][0] in allowed:
            return unit, per
    which = " or ".join(allowed)
    raise ValueError(f"'{text}' is no unit of a gain; it is {which}, or per unit of the column, such as {allowed[0]}/A")
