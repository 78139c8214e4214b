"""What a fluid flows through, from port `a` to port `b`: elements of one flow between two 0-junctions, and their laws.

**Laminar.** A round pipe: Δp = 128 η l / (π d⁴) Q (Hagen and Poiseuille). Leakage through narrow gaps: Q = G Δp; a gap
without flow, G = 0, is one too.

**A sharp edge**, turbulent with a laminar transition: Q = K Δp / (Δp² + Δp_t²)^¼, K = μ A √(2/ρ). Far above Δp_t this
is Q = μ A √(2 Δp / ρ) (Merritt, Hydraulic Control Systems), below it is laminar. Δp_t is the pressure at which the
turbulent law gives the Reynolds number of the transition: μ √(2 Δp_t / ρ) D ρ / η = Re, D the hydraulic diameter. The
inverse is in closed form: with y = (Q / K)², Δp = (Q / K) √((y + √(y² + 4 Δp_t²)) / 2).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cosim.core import ops
from cosim.core.types import Numeric, param
from cosim.mechanics.bondgraph import BondGraph, Element, Law, R


def passage(**elements: Element) -> BondGraph:
    """The elements on the 1-junction `through`. Ports are 0-junctions: bonds of either direction may meet there."""
    graph = BondGraph(ports={"a": "a", "b": "b"})
    for name, kind in {"a": "0", "through": "1", "b": "0"}.items():
        graph.junction(name, kind)
    graph.chain("a", "through", "b")
    for name, element in elements.items():
        graph.add(name, element)
        graph.bond("through", name)
    return graph


def laminar_resistance(length: float, diameter: float, viscosity: float) -> float:
    """[Pa s/m³]"""
    return 128.0 * viscosity * length / (math.pi * diameter**4)


def conductance() -> Any:
    return param(unit="m^3/s/Pa", min=0, default=0.0, doc="internal leakage per pressure")


def leakage(conductance: float) -> Element:
    """conductance: G [m³/s/Pa]."""
    return R("hydraulic", Law(lambda drop: conductance * drop, ("effort",)))


def discharge() -> Any:
    return param(above=0, max=1, default=0.7, doc="discharge coefficient μ")


def reynolds() -> Any:
    return param(above=0, default=100.0, doc="Reynolds number of the transition from laminar to turbulent flow")


@dataclass(frozen=True)
class MeteringEdge:
    """The flow law of a sharp edge, turbulent with a laminar transition. discharge: μ; density [kg/m³]; transition:
    Δp_t [Pa]."""

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
