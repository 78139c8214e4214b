"""The loop of a motor's current, as a drive closes it."""

from __future__ import annotations

import math

from cosim import ops
from cosim.types import Numeric, param, params
from cosim.units import TURN


@params
class CurrentControl:
    bandwidth: float = param(unit="Hz", above=0.0, default=500.0, doc="of the current loop")
    current_limit: float = param(unit="A", above=0.0, default=math.inf, doc="amplitude of a phase")
    voltage_limit: float = param(unit="V", above=0.0, default=math.inf, doc="amplitude of a phase")

    @property
    def rate(self) -> float:
        """rad/s"""
        return TURN * self.bandwidth


def limited(value: Numeric, limit: float) -> Numeric:
    """The value within ± limit."""
    return value if ops.is_infinite(limit) else ops.clip(value, -limit, limit)
