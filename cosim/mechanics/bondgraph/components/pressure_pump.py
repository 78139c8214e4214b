"""A pump with an ideal pressure control: a source of pressure."""

from __future__ import annotations

from cosim.core.types import param, params
from cosim.mechanics.bondgraph import BondGraph, Se


@params
class Params:
    pressure: float = param(unit="Pa", min=0, doc="above ambient")


def build(params: Params) -> BondGraph:
    """Port: `port`."""
    graph = BondGraph(ports={"port": "outlet"})
    graph.junction("outlet", "0")
    graph.add("pump", Se("hydraulic", params.pressure))
    graph.bond("pump", "outlet")
    return graph
