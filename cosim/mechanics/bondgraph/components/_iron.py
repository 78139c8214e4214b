"""Iron losses of a machine with permanent magnets, at the flux of its magnets.

    M = M_h s(ω) + k ω,  s(ω) = ω / √(ω² + ω_0²)

M_h is the torque of hysteresis, whose energy per turn does not depend on the speed, and k of eddy currents, whose power
grows with its square (Bertotti, IEEE Trans. Magnetics 24(1), 1988); both follow from the drag of the machine without
load. The weaker flux of a field that is weakened is not counted.
"""

from __future__ import annotations

from dataclasses import replace

from cosim.core import ops
from cosim.core.types import param, params
from cosim.mechanics.bondgraph import BondGraph, Law, R
from cosim.mechanics.bondgraph.components._thermal import HOUSING, IRON, WINDING, add_loss


@params
class IronLosses:
    hysteresis: float = param(unit="N*m", min=0.0, default=0.0, doc="M_h")
    eddy: float = param(unit="N*m*s/rad", min=0.0, default=0.0, doc="k")
    creep_speed: float = param(unit="rad/s", above=0.0, default=0.1, doc="ω_0, below which hysteresis fades out")


def add_iron(graph: BondGraph, iron: IronLosses | None) -> None:
    """A resistance on the junction `rotor`."""
    if iron is None:
        return
    drag = Law(lambda w: iron.hysteresis * ops.smooth_sign(w, iron.creep_speed) + iron.eddy * w, ("flow",))
    graph.add("iron", replace(R("rotational", drag), part="iron"))
    graph.bond("rotor", "iron")
    heated = next((name for name in (IRON, HOUSING, WINDING) if f"{name}_node" in graph.elements), None)
    if heated is not None:
        add_loss(graph, "loss_iron", "iron", heated)
