"""A motor or pump of fixed displacement w per radian: M = w Δp, Q = w ω, with leakage and friction."""

from __future__ import annotations

from cosim.core import ops
from cosim.core.types import Numeric, param, params
from cosim.mechanics.bondgraph import TF, BondGraph, Law, R
from cosim.mechanics.bondgraph.components import _passage
from cosim.mechanics.bondgraph.components._passage import passage

CREEP_SPEED = 0.1  # rad/s, below which Coulomb friction decreases to 0


@params
class Params:
    displacement: float = param(unit="m^3/rad", above=0, doc="volume per angle")
    leakage: float = _passage.conductance()
    viscous: float = param(unit="N*m*s/rad", min=0, default=0.0, doc="viscous friction")
    coulomb: float = param(unit="N*m", min=0, default=0.0, doc="Coulomb friction")


def build(params: Params) -> BondGraph:
    """Ports: `a`, `b`, `shaft`."""

    def friction(w: Numeric) -> Numeric:
        return params.viscous * w + params.coulomb * ops.smooth_sign(w, CREEP_SPEED)

    graph = passage()
    graph.ports["shaft"] = "shaft"
    graph.junction("shaft", "1")
    graph.junction("across", "1")
    graph.add("displacement", TF("hydraulic", "rotational", 1.0 / params.displacement))
    graph.add("leakage", _passage.leakage(params.leakage))
    graph.add("friction", R("rotational", Law(friction, ("flow",))))
    graph.chain("through", "displacement", "shaft", "friction")
    graph.chain("a", "across", "b")
    graph.bond("across", "leakage")
    return graph
