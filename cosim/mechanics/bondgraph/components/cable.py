"""Cable between an inverter and a motor: U_in − U_out = R i + L i̇, with R = n l R' (1 + α ΔT) and L = n l L'.

n conductors of the length l are in series: 2 to a DC machine, there and back, 1 for each phase of a star, also where
the axes α and β stand for the phases. In the axes d and q of a `pmsm`, which turn, an inductance is no series one: add
it to `inductance_d` and `inductance_q` there, and let the cable have the resistance alone.

Port: `conductor`, a 1-junction, from a source and to the mesh of a machine.
"""

from __future__ import annotations

from cosim.core.types import param, params
from cosim.mechanics.bondgraph import BondGraph, I, R


@params
class Params:
    length: float = param(unit="m", above=0.0, doc="l")
    resistance: float = param(unit="1", above=0.0, doc="R' of a conductor, in Ω/m, at the temperature it is given for")
    inductance: float = param(unit="1", min=0.0, default=0.0, doc="L' of a conductor, in H/m")
    conductors: int = param(min=1, default=1, doc="n, in series")
    temperature_rise: float = param(unit="K", default=0.0, doc="ΔT over that temperature")
    coefficient: float = param(unit="1", min=0.0, default=0.00393, doc="α per kelvin, of copper by default")

    def __post_init__(self) -> None:
        if not self.factor > 0.0:
            raise ValueError("so cold that its resistance is 0 or less; raise temperature_rise")

    @property
    def factor(self) -> float:
        """1 + α ΔT"""
        return 1.0 + self.coefficient * self.temperature_rise


def build(params: Params) -> BondGraph:
    graph = BondGraph(ports={"conductor": "conductor"})
    graph.junction("conductor", "1")
    length = params.conductors * params.length
    graph.add("resistance", R("electrical", length * params.resistance * params.factor))
    graph.bond("conductor", "resistance")
    if params.inductance:
        graph.add("inductance", I("electrical", length * params.inductance))
        graph.bond("conductor", "inductance")
    return graph
