"""A thin pipe with laminar flow and no inertia: Δp = 128 η l / (π d⁴) Q (`_passage`)."""

from __future__ import annotations

from cosim.core.types import param, params
from cosim.mechanics.bondgraph import BondGraph, R
from cosim.mechanics.bondgraph.components import _fluid
from cosim.mechanics.bondgraph.components._passage import laminar_resistance, passage


@params
class Params:
    length: float = param(unit="m", above=0, doc="of the pipe")
    diameter: float = param(unit="m", above=0, doc="inside")
    viscosity: float = _fluid.viscosity()


def build(params: Params) -> BondGraph:
    """Ports: `a`, `b`."""
    return passage(friction=R("hydraulic", laminar_resistance(params.length, params.diameter, params.viscosity)))
