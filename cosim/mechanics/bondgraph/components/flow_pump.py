"""A pump of constant flow with internal leakage from the outlet to the tank: Q = Q0 − G p."""

from __future__ import annotations

from cosim.core.types import param, params
from cosim.mechanics.bondgraph import BondGraph, Sf
from cosim.mechanics.bondgraph.components import _passage


@params
class Params:
    flow: float = param(unit="m^3/s", min=0, doc="without leakage")
    leakage: float = _passage.conductance()


def build(params: Params) -> BondGraph:
    """Port: `port`."""
    graph = BondGraph(ports={"port": "outlet"})
    graph.junction("outlet", "0")
    graph.add("pump", Sf("hydraulic", params.flow))
    graph.add("leakage", _passage.leakage(params.leakage))
    graph.chain("pump", "outlet", "leakage")
    return graph
