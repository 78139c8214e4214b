"""A planetary gear by Willis: ω_sun = (1 + i) ω_arm − i ω_ring, with i the teeth of the ring per tooth of the sun.

Ports: `sun`, from a 1-junction; `ring` and `arm`, which holds the planets, to 1-junctions. A shaft that is held is
bonded to a source of flow 0. Rigid and without loss; a `shaft` before it makes it elastic.
"""

from __future__ import annotations

from cosim.core.types import param, params
from cosim.mechanics.bondgraph import TF, BondGraph


@params
class Params:
    ring_ratio: float = param(unit="1", above=1.0, doc="i, teeth of the ring per tooth of the sun")


def build(params: Params) -> BondGraph:
    graph = BondGraph(ports={"sun": "mesh", "ring": "to_ring", "arm": "to_arm"})
    graph.junction("mesh", "0")
    for name, ratio in (("to_ring", -1.0 / params.ring_ratio), ("to_arm", 1.0 / (1.0 + params.ring_ratio))):
        graph.add(name, TF("rotational", "rotational", ratio))
        graph.bond("mesh", name)
    return graph
