"""A chamber whose wall moves: dp/dt = E_eff(p) / V · (Q + Q_wall) to first order in p / E, V = V0 − ∫ Q_wall dt.

A field with two ports: the fluid by its volume v at ambient pressure, as in `chamber`, and the volume w that the wall
has swept into the chamber. From U(v, w) = v φ((V0 − w) / v), of degree one in both volumes,
    ∂U/∂w = −φ' = p            the pressure on the wall, exactly
    ∂U/∂v = φ − r φ' = ∫ r dp  what the transformer of `chamber` makes the pressure p
Equal efforts at both ports without the transformer would need U(v + w), a stiffness that does not depend on the volume:
that is why E / V(s) with p Q at the port loses or makes energy, a part p / 2E of what passes.
"""

from __future__ import annotations

from cosim.core.types import param, params
from cosim.mechanics.bondgraph import IC, TF, BondGraph, Law
from cosim.mechanics.bondgraph.components import _fluid
from cosim.mechanics.bondgraph.components._fluid import Fluid


@params
class Params:
    volume: float = param(unit="m^3", above=0, doc="at the start")
    pressure: float = param(unit="Pa", min=0, default=0.0, doc="at the start, above ambient")
    bulk_modulus: float = _fluid.bulk_modulus()
    air_content: float = _fluid.air_content()


def build(params: Params) -> BondGraph:
    """Ports: `port`; `wall`, whose flow is the volume that the wall sweeps into the chamber."""
    fluid, volume = Fluid(params.bulk_modulus, params.air_content), params.volume
    graph = BondGraph(ports={"port": "inlet", "wall": "wall"})
    graph.junction("inlet", "0")
    graph.junction("wall", "0")
    graph.add("fluid", IC(
        (("hydraulic", "displacement"), ("hydraulic", "displacement")),
        lambda inside, swept: fluid.energy(inside, volume - swept),
        (volume / fluid.relative_volume(params.pressure), 0.0),
    ))  # fmt: skip
    graph.add("compression", TF("hydraulic", "hydraulic", Law(lambda p: 1.0 / fluid.mean_volume(p), ("wall.effort",))))
    graph.chain("inlet", "compression", "fluid")
    graph.bond("wall", "fluid")
    return graph
