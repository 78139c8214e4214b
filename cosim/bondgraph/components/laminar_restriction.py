"""A thin pipe with laminar flow and no inertia: Δp = 128 η l / (π d⁴) Q (`_pipe`)."""

from __future__ import annotations

from cosim.bondgraph import BondGraph, R
from cosim.bondgraph.components import _fluid
from cosim.bondgraph.components._passage import passage
from cosim.bondgraph.components._pipe import laminar_resistance
from cosim.types import param, params


@params
class Params:
    length: float = param(unit="m", above=0, doc="of the pipe")
    diameter: float = param(unit="m", above=0, doc="inside")
    viscosity: float = _fluid.viscosity()


def build(params: Params) -> BondGraph:
    """Ports: `a`, `b`."""
    return passage(friction=R("hydraulic", laminar_resistance(params.length, params.diameter, params.viscosity)))
