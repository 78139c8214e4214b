"""A line of rigid fluid: Δp = ρ l / A dQ/dt + 128 η l / (π d⁴) Q, laminar."""

from __future__ import annotations

import math

from cosim.core.types import param, params
from cosim.mechanics.bondgraph import BondGraph, I, R
from cosim.mechanics.bondgraph.components import _fluid
from cosim.mechanics.bondgraph.components._passage import laminar_resistance, passage


@params
class Params:
    length: float = param(unit="m", above=0, doc="of the line")
    diameter: float = param(unit="m", above=0, doc="inside")
    flow: float = param(unit="m^3/s", default=0.0, doc="at the start, from a to b")
    density: float = _fluid.density()
    viscosity: float = _fluid.viscosity()


def build(params: Params) -> BondGraph:
    """Ports: `a`, `b`."""
    area = 0.25 * math.pi * params.diameter**2
    return passage(
        inertia=I("hydraulic", params.density * params.length / area, initial=params.flow),
        friction=R("hydraulic", laminar_resistance(params.length, params.diameter, params.viscosity)),
    )
