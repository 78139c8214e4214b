"""A volume of air with a moving wall, see `gas_chamber`: V = V0 − ∫ Q_wall dt."""

from __future__ import annotations

from cosim.core.types import params
from cosim.mechanics.bondgraph import BondGraph
from cosim.mechanics.bondgraph.components import gas_chamber


@params
class Params(gas_chamber.Params):
    pass


def build(params: Params) -> BondGraph:
    """Ports: `port`; `wall`, whose flow is the volume that the wall sweeps into the chamber."""
    return gas_chamber.chamber(params, moves=True)
