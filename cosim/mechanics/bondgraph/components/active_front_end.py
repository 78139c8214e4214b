"""A supply that also takes energy back: an inverter towards the grid, which controls the voltage of the link.

    i = clip((U − u) / b, −1, 1) I

of a link with the voltage u. Averaged, without loss, at a power factor of 1: the power from the grid is u i.
"""

from __future__ import annotations

from cosim.core import ops
from cosim.core.types import param, params
from cosim.mechanics.bondgraph import BondGraph, Law, Sf


@params
class Params:
    voltage: float = param(unit="V", above=0.0, doc="U, the setpoint of the link")
    current_limit: float = param(unit="A", above=0.0, doc="I, in both directions")
    band: float = param(
        unit="V", above=0.0, default=5.0, doc="b, from the setpoint, at which it has its largest current"
    )

    @property
    def nominal(self) -> float:
        """The voltage of a link without load [V]."""
        return self.voltage


def build(params: Params) -> BondGraph:
    """Port: `output`."""
    graph = BondGraph(ports={"output": "output"})
    graph.junction("output", "0")
    law = Law(
        lambda u: params.current_limit * ops.clip((params.voltage - u) / params.band, -1.0, 1.0), ("output.effort",)
    )
    graph.add("supply", Sf("electrical", law))
    graph.bond("supply", "output")
    graph.signals["current"] = Law(lambda current: current, ("supply.flow",)), "A"
    return graph
