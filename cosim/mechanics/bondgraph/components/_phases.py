"""Three phases in the axes α and β of the stator, so scaled that u i is the power of all three."""

from __future__ import annotations

import math
from collections.abc import Sequence

from cosim.core import ops
from cosim.core.types import Numeric
from cosim.mechanics.bondgraph.components._current_control import PHASES

TO_AXES = [(math.sqrt(2.0 / 3.0) * math.cos(phase), math.sqrt(2.0 / 3.0) * math.sin(phase)) for phase in PHASES]


def in_axes(phases: Sequence[Numeric]) -> tuple[Numeric, Numeric]:
    """Of three phases; what is common to them has no effect."""
    alpha, beta = (ops.sum(row[k] * value for row, value in zip(TO_AXES, phases, strict=True)) for k in range(2))
    return alpha, beta


def in_phases(alpha: Numeric, beta: Numeric) -> list[Numeric]:
    return [a * alpha + b * beta for a, b in TO_AXES]
