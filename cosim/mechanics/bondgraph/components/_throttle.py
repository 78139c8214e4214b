"""Flow through a sharp edge, turbulent with a laminar transition: Q = K Δp / (Δp² + Δp_t²)^¼, K = μ A √(2/ρ).

Far above Δp_t this is Q = μ A √(2 Δp / ρ) (Merritt, Hydraulic Control Systems), below it is laminar. Δp_t is the
pressure at which the turbulent law gives the Reynolds number of the transition: μ √(2 Δp_t / ρ) D ρ / η = Re, D the
hydraulic diameter. The inverse is in closed form: with y = (Q / K)², Δp = (Q / K) √((y + √(y² + 4 Δp_t²)) / 2).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cosim.core import ops
from cosim.core.types import Numeric, param
from cosim.mechanics.bondgraph import Element, Law, R


def discharge() -> Any:
    return param(above=0, max=1, default=0.7, doc="discharge coefficient μ")


def reynolds() -> Any:
    return param(above=0, default=100.0, doc="Reynolds number of the transition from laminar to turbulent flow")


@dataclass(frozen=True)
class MeteringEdge:
    """discharge: μ; density [kg/m³]; transition: Δp_t [Pa]."""

    discharge: float
    density: float
    transition: float

    @classmethod
    def of(cls, params: Any, diameter: float) -> MeteringEdge:
        """From parameters `discharge`, `density`, `viscosity` and `reynolds`, with the hydraulic diameter [m]."""
        velocity = params.reynolds * params.viscosity / (params.density * params.discharge * diameter)
        return cls(params.discharge, params.density, 0.5 * params.density * velocity * velocity)

    def _conductance(self, area: Numeric) -> Numeric:
        return self.discharge * area * (2.0 / self.density) ** 0.5

    def flow(self, drop: Numeric, area: Numeric) -> Numeric:
        """Q [m³/s] of the pressure drop [Pa] through the area [m²]."""
        size = ops.sqrt(ops.sqrt(drop * drop + self.transition * self.transition))
        return self._conductance(area) * drop / size

    def drop(self, flow: Numeric, area: Numeric) -> Numeric:
        """Δp [Pa] of the flow [m³/s] through the area [m²]."""
        x = flow / self._conductance(area)
        y = x * x
        return x * ops.sqrt(0.5 * (y + ops.sqrt(y * y + 4.0 * self.transition * self.transition)))

    def resistance(self, area: Callable[..., Numeric], uses: tuple[str, ...] = ()) -> Element:
        """The element R, of either causality; area: of signals that it uses."""
        return R(
            "hydraulic",
            Law(lambda drop, *signals: self.flow(drop, area(*signals)), ("effort", *uses)),
            Law(lambda flow, *signals: self.drop(flow, area(*signals)), ("flow", *uses)),
        )
