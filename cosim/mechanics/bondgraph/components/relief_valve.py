"""A relief valve: closed up to the cracking pressure, then Q = Q_n (Δp − p_c) / Δp_o; no flow back.

The dynamics of its poppet, a few milliseconds, is left out.
"""

from __future__ import annotations

from cosim.core import ops
from cosim.core.types import Numeric, param, params
from cosim.mechanics.bondgraph import BondGraph, Law, R
from cosim.mechanics.bondgraph.components._passage import passage


@params
class Params:
    cracking: float = param(unit="Pa", min=0, doc="pressure from a to b at which it opens")
    flow: float = param(unit="m^3/s", above=0, doc="nominal flow")
    override: float = param(unit="Pa", above=0, doc="pressure above cracking at the nominal flow")


def build(params: Params) -> BondGraph:
    """Ports: `a`, `b`."""

    def flow(drop: Numeric) -> Numeric:
        return params.flow / params.override * ops.maximum(drop - params.cracking, 0.0)

    return passage(poppet=R("hydraulic", Law(flow, ("effort",))))
