"""Sampled parts of actuators in the ticks of a plant: samples lie at the starts of substeps."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

from cosim.core.types import EVERY_TICK

TOLERANCE = 1e-9  # relative, of a tick that is a whole number of periods


def samples_per_tick(period: float, step_ns: int) -> int | None:
    """How many periods [s] a tick has, None if that is no whole number."""
    if period == EVERY_TICK:
        return 1
    ratio = step_ns * 1e-9 / period
    count = round(ratio)
    return count if count and abs(ratio - count) <= TOLERANCE * count else None


def nearest_steps(period: float, step_ns: int) -> list[float]:
    """The steps [ns] nearest to this one that are whole numbers of periods [s] and of ns."""
    whole = Fraction(period).limit_denominator(10**9) * 10**9
    unit = whole.numerator  # the least whole number of ns that is one of periods
    count = step_ns / unit
    return [float(unit * k) for k in sorted({max(math.floor(count), 1), math.ceil(count)})]


def whole_substeps(substeps: int, samples: Mapping[str, int]) -> int:
    """The least number of substeps, at least `substeps`, that is a multiple of the samples per tick of each dof."""
    unit = math.lcm(*samples.values())
    return -(-substeps // unit) * unit


def due(substep: int, substeps: int, samples: Mapping[str, int]) -> tuple[str, ...]:
    """The dofs whose actuators are sampled at the start of a substep, by its number in the tick."""
    return tuple(name for name, count in samples.items() if substep % (substeps // count) == 0)
