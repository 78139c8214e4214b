"""The scale of a slider for a gain, from its declared range: linear, or logarithmic over several decades."""

from __future__ import annotations

import math
from typing import NamedTuple

DECADES = 2.0  # on each side of the value of a gain without a bound there
WIDE = 2.0  # decades of a range from which on its scale is logarithmic
STEPS = 400  # of a slider
DIGITS = 3  # that a slider sets


class GainRange(NamedTuple):
    """low, high: of the slider, in the unit of the gain; logarithmic: the slider moves its decimal logarithm."""

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
    low = lower if lower > 0.0 else 10.0 ** (decade - DECADES + 1)
    high = upper if math.isfinite(upper) else 10.0 ** (decade + DECADES)
    if math.isfinite(upper) and math.log10(upper / value) < WIDE and lower == 0.0:
        return GainRange(0.0, upper, False)
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
