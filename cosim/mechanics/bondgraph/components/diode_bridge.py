"""A three-phase supply behind a diode bridge: current flows out of it alone.

    i = max(U_0 − u, 0) / R,  U_0 = 3 √2 / π U

of the voltage U between two lines (1.35 U), averaged over a period, in which it has six peaks; R is of the supply, its
lines and the bridge (Mohan, Undeland and Robbins, Power Electronics, ch. 5). While the link has less than `closes`, a
precharge resistance is in series; around it, over 1 % of that voltage, it fades out.
"""

from __future__ import annotations

from cosim.core import ops
from cosim.core.types import Numeric, param, params
from cosim.mechanics.bondgraph import BondGraph, Law, R, Se

FADE = 0.01  # of `closes`, over which the precharge resistance fades out


@params
class Params:
    voltage: float = param(unit="V", above=0.0, doc="U_0, without load")
    resistance: float = param(unit="ohm", above=0.0, doc="R, of the supply, its lines and the bridge")
    precharge: float = param(unit="ohm", min=0.0, default=0.0, doc="in series while the link is charged")
    closes: float | None = param(
        unit="V", above=0.0, default=None, doc="of the link, at which the precharge is bridged; 0.9 U_0"
    )

    def __post_init__(self) -> None:
        if self.closes is not None and self.closes >= self.voltage:
            raise ValueError("the link never has the voltage 'closes', as the supply has less; lower it")

    @property
    def nominal(self) -> float:
        """The voltage of a link without load [V]."""
        return self.voltage

    def series(self, voltage: Numeric) -> Numeric:
        """The resistance at this voltage of the link [ohm]."""
        if not self.precharge:
            return self.resistance
        closes = 0.9 * self.voltage if self.closes is None else self.closes
        return self.resistance + self.precharge * ops.clip((closes - voltage) / (FADE * closes), 0.0, 1.0)


def build(params: Params) -> BondGraph:
    """Port: `output`."""
    graph = BondGraph(ports={"output": "output"})
    graph.junction("output", "0")
    graph.junction("path", "1")
    graph.add("supply", Se("electrical", params.voltage))
    law = Law(lambda drop, voltage: ops.maximum(drop, 0.0) / params.series(voltage), ("effort", "output.effort"))
    graph.add("bridge", R("electrical", law))
    graph.chain("supply", "path", "output")
    graph.bond("path", "bridge")
    graph.signals["current"] = Law(lambda current: current, ("bridge.flow",)), "A"
    return graph
