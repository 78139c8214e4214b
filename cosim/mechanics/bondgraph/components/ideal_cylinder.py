"""A cylinder of rigid fluid without losses: F = A_a p_a − A_b p_b, Q_a = A_a v, Q_b = A_b v."""

from __future__ import annotations

from cosim.core.types import param, params
from cosim.mechanics.bondgraph import TF, BondGraph


@params
class Params:
    area_a: float = param(unit="m^2", above=0, doc="of the piston on side a, which pushes the rod out")
    area_b: float = param(unit="m^2", above=0, doc="of the piston on side b, around the rod")


def build(params: Params) -> BondGraph:
    """Ports: `a`, `b`, `rod`."""
    graph = BondGraph(ports={"a": "a", "b": "b", "rod": "rod"})
    for name, kind in {"a": "0", "rod": "1", "b": "0"}.items():
        graph.junction(name, kind)
    graph.add("side_a", TF("hydraulic", "translational", 1.0 / params.area_a))
    graph.add("side_b", TF("translational", "hydraulic", params.area_b))
    graph.chain("a", "side_a", "rod", "side_b", "b")
    return graph
