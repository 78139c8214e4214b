"""The loop of a motor's current, as a drive closes it."""

from __future__ import annotations

import math

from cosim.core import ops
from cosim.core.types import Numeric, param, params
from cosim.core.units import TURN
from cosim.mechanics.bondgraph import BondGraph, Law
from cosim.mechanics.bondgraph.components._inverter import Inverter
from cosim.mechanics.bondgraph.components._overload import HEATING, Overload, add_heating


@params
class CurrentControl:
    bandwidth: float = param(unit="Hz", above=0.0, default=500.0, doc="of the current loop")
    current_limit: float = param(unit="A", above=0.0, default=math.inf, doc="amplitude of a phase")
    voltage_limit: float = param(
        unit="V", above=0.0, default=math.inf, doc="amplitude of a phase, at most `supply_voltage` of the inverter"
    )
    overload: Overload | None = param(default=None, doc="I²t limit: `current_limit` lasts for a short time")
    inverter: Inverter | None = param(default=None, doc="with its dead time; without it the voltage is exact")

    def __post_init__(self) -> None:
        if self.overload is not None and not self.overload.continuous_current < self.current_limit < math.inf:
            raise ValueError(
                "an overload is between its continuous_current and current_limit; give a current_limit above it"
            )

        supply = self.inverter.supply_voltage if self.inverter else math.inf
        if math.isfinite(self.voltage_limit) and self.voltage_limit > supply:
            raise ValueError(
                f"an inverter gives at most its supply_voltage of {supply:g} V; lower voltage_limit, or raise that"
            )

    @property
    def limited_by(self) -> tuple[str, ...]:
        """The signals of `largest_current`."""
        return () if self.overload is None else (HEATING,)

    def largest_current(self, *signals: Numeric) -> Numeric:
        """Amplitude of a phase [A]."""
        return self.current_limit if self.overload is None else self.overload.limit(self.current_limit, *signals)

    @property
    def rate(self) -> float:
        """rad/s"""
        return TURN * self.bandwidth


LIMIT = "current_limit"  # a recorded signal


def add_current_limit(graph: BondGraph, control: CurrentControl, square: Law) -> None:
    """The heating by these squares of the current, and its limit as a recorded signal, of a drive with an overload."""
    if control.overload is not None:
        add_heating(graph, control.overload, square)
        graph.signals[LIMIT] = Law(control.largest_current, control.limited_by), "A"


def limited(value: Numeric, limit: Numeric) -> Numeric:
    """The value within ± limit."""
    return value if ops.is_infinite(limit) else ops.clip(value, -limit, limit)
