"""A fixed orifice: Q = μ A √(2 Δp / ρ), laminar near zero (`_passage`)."""

from __future__ import annotations

import math

from cosim.core import ops
from cosim.core.types import param, params
from cosim.mechanics.bondgraph import BondGraph
from cosim.mechanics.bondgraph.components import _fluid, _passage
from cosim.mechanics.bondgraph.components._passage import passage


@params
class Params:
    area: float = param(unit="m^2", above=0, doc="of the opening")
    discharge: float = _passage.discharge()
    density: float = _fluid.density()
    viscosity: float = _fluid.viscosity()
    reynolds: float = _passage.reynolds()


def build(params: Params) -> BondGraph:
    """Ports: `a`, `b`. The hydraulic diameter assumes a round hole."""
    edge = _passage.MeteringEdge.of(params, ops.sqrt(4.0 * params.area / math.pi))
    return passage(edge=edge.resistance(lambda: params.area))
