"""An elastic shaft or mesh with backlash: no torque inside it, and a damper that never pulls.

With the twist φ beyond the edge of the backlash, M = k φ + d. The damper's torque d = b φ̇ is at most as large as the
spring's, so the sum does not pull, and does not jump where contact begins.

As a bond graph this is a spring by a law with a dead zone and a damper that knows the spring's torque
(`model: dead_zone`); or a transformer of ratio 0 inside the backlash and 1 outside, before a spring
and the same damper (`model: transformer`). Both give the same torque.

Ports: `input` and `output`, 1-junctions of shafts bond from and to them.
"""

from __future__ import annotations

from typing import Literal

from cosim.core import ops
from cosim.core.types import Numeric, param, params
from cosim.core.units import TURN
from cosim.mechanics.bondgraph import TF, BondGraph, C, Law, R


@params
class Params:
    stiffness: float = param(unit="N*m/rad", above=0.0, doc="k")
    damping: float = param(unit="N*m*s/rad", min=0.0, default=0.0, doc="b")
    backlash: float = param(unit="rad", min=0.0, max=TURN, default=0.0, doc="from edge to edge")
    twist: float = param(unit="rad", default=0.0, doc="at t = 0, from the middle of the backlash")
    model: Literal["dead_zone", "transformer"] = param(default="dead_zone", doc="of the backlash")


def beyond_backlash(twist: Numeric, backlash: float) -> Numeric:
    """The twist beyond the edge of the backlash, 0 inside."""
    return twist - ops.clip(twist, -backlash / 2.0, backlash / 2.0)


def without_pulling(damping: Numeric, spring: Numeric) -> Numeric:
    """The damper's torque, at most as large as the spring's."""
    largest = ops.abs(spring)
    return ops.clip(damping, -largest, largest)


def build(params: Params) -> BondGraph:
    k, b, backlash = params.stiffness, params.damping, params.backlash
    graph = BondGraph(ports={"input": "torque", "output": "torque"})
    graph.junction("torque", "0")
    graph.junction("twist", "1", initial=params.twist)
    if not backlash:
        graph.add("spring", C("rotational", k, params.twist))
        graph.chain("torque", "twist", "spring")
        if b:
            graph.add("damper", R("rotational", b))
            graph.chain("twist", "damper")
        return graph
    graph.add("damper", R("rotational", Law(lambda w, m: without_pulling(b * w, m), ("flow", "spring.effort"))))
    if params.model == "dead_zone":
        law = Law(lambda q: k * beyond_backlash(q, backlash), ("displacement",))
        energy = Law(lambda q: 0.5 * k * beyond_backlash(q, backlash) ** 2, ("displacement",))
        graph.add("spring", C("rotational", law, params.twist, energy))
        graph.chain("torque", "twist", "spring")
    else:
        edge = Law(lambda q: ops.where(ops.abs(q) > backlash / 2.0, 1.0, 0.0), ("twist.displacement",))
        graph.add("edge", TF("rotational", "rotational", edge))
        graph.junction("contact", "1")
        graph.add("spring", C("rotational", k, beyond_backlash(params.twist, backlash)))
        graph.chain("torque", "twist", "edge", "contact", "spring")
    graph.chain("twist" if params.model == "dead_zone" else "contact", "damper")
    return graph
