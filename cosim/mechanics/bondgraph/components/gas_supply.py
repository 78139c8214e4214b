"""Air of constant pressure and temperature: a supply, or the surroundings that an exhaust leads to.

Port: `port`, a 0-junction.
"""

from __future__ import annotations

from cosim.core.types import params
from cosim.mechanics.bondgraph import BondGraph, Se
from cosim.mechanics.bondgraph.components import _gas


@params
class Params:
    pressure: float = _gas.pressure("of the air")
    temperature: float = _gas.temperature("in it")


def build(params: Params) -> BondGraph:
    graph = BondGraph(ports={"port": "outlet"})
    _gas.gas_junction(graph, "outlet")
    graph.add("source", Se("pneumatic", params.pressure))
    graph.add("heat", Se("enthalpy", params.temperature))
    graph.bond("source", "outlet")
    graph.bond("heat", "outlet_enthalpy")
    return graph
