"""A gas accumulator: (p + p0) (V − q)^n = (p_pre + p0) V^n with the fluid q in it and ambient pressure p0.

n is 1 for slow changes and about 1.4 for fast ones. Empty, it is shut: a spring SEAT times as stiff as the gas keeps
the fluid in it from falling below 0. Fluid passes a laminar inlet.
"""

from __future__ import annotations

import math

from cosim.core import ops
from cosim.core.errors import SectionError
from cosim.core.types import Numeric, param, params
from cosim.mechanics.bondgraph import BondGraph, C, Law, R
from cosim.mechanics.bondgraph.components._fluid import AMBIENT

SEAT = 1000.0


@params
class Params:
    volume: float = param(unit="m^3", above=0, doc="of the gas when empty")
    precharge: float = param(unit="Pa", above=0, doc="pressure of the gas when empty, above ambient")
    inlet: float = param(unit="m^3/s/Pa", above=0, doc="flow through the inlet per pressure")
    exponent: float = param(min=1, max=2, default=1.4, doc="polytropic exponent n")
    pressure: float | None = param(unit="Pa", min=0, default=None, doc="at the start; precharge")


def build(params: Params) -> BondGraph:
    """Port: `port`. Raises SectionError for a pressure below the precharge."""
    volume, n, empty = params.volume, params.exponent, params.precharge + AMBIENT
    start = params.precharge if params.pressure is None else params.pressure
    if start < params.precharge:
        raise SectionError("it is below the precharge; raise it, or lower 'precharge'", ("pressure",))
    seat = SEAT * n * empty / volume

    def pressure(q: Numeric) -> Numeric:
        gas = empty * ops.power(volume / (volume - q), n) - AMBIENT
        return gas + seat * ops.minimum(q, 0.0)

    def energy(q: Numeric) -> Numeric:
        compression, below = volume / (volume - q), ops.minimum(q, 0.0)
        work = ops.log(compression) if n == 1.0 else (ops.power(compression, n - 1.0) - 1.0) / (n - 1.0)
        return empty * volume * work - AMBIENT * q + 0.5 * seat * below * below

    state = ("displacement",)
    inside = volume * (1.0 - math.pow(empty / (start + AMBIENT), 1.0 / n))
    graph = BondGraph(ports={"port": "port"})
    graph.junction("port", "0")
    graph.junction("inflow", "1")
    graph.add("inlet", R("hydraulic", 1.0 / params.inlet))
    graph.add("gas", C("hydraulic", Law(pressure, state), initial=inside, energy=Law(energy, state)))
    graph.chain("port", "inflow", "gas")
    graph.bond("inflow", "inlet")
    return graph
