"""A thin pipe with laminar flow and no inertia: Δp = 128 η l / (π d⁴) Q (`_pipe`)."""

from __future__ import annotations

from cosim.core.types import param, params
from cosim.mechanics.bondgraph import BondGraph, R
from cosim.mechanics.bondgraph.components import _fluid
from cosim.mechanics.bondgraph.components._passage import passage
from cosim.mechanics.bondgraph.components._pipe import laminar_resistance


@params
class Params:
    length: float = param(unit="m", above=0, doc="of the pipe")
    diameter: float = param(unit="m", above=0, doc="inside")
    viscosity: float = _fluid.viscosity()


def build(params: Params) -> BondGraph:
    """Ports: `a`, `b`."""
    return passage(friction=R("hydraulic", laminar_resistance(params.length, params.diameter, params.viscosity)))
