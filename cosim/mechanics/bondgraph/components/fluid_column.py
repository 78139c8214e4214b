"""The inertia of the fluid in a chamber whose wall moves: m = ρ V / A², V = V0 − ∫ Q_wall dt (m(S)).

A field: the momentum Γ = ∫ Δp dt, and the volume w that the wall has swept in. From T(Γ, w) = Γ² / (2 m(w)) the flow is
Γ / m, and the pressure on the wall ρ Q² / (2 A²), the dynamic pressure.
"""

from __future__ import annotations

from cosim.core.types import Numeric, param, params
from cosim.mechanics.bondgraph import IC, BondGraph
from cosim.mechanics.bondgraph.components import _fluid


@params
class Params:
    volume: float = param(unit="m^3", above=0, doc="of the chamber at the start")
    area: float = param(unit="m^2", above=0, doc="of its cross-section")
    flow: float = param(unit="m^3/s", default=0.0, doc="at the start, from a to b")
    density: float = _fluid.density()


def build(params: Params) -> BondGraph:
    """Ports: `a`, `b`; `wall`, whose flow is the volume that the wall sweeps into the chamber."""

    def inertia(swept: Numeric) -> Numeric:
        return params.density * (params.volume - swept) / params.area**2

    graph = BondGraph(ports={"a": "a", "b": "b", "wall": "wall"})
    for name, kind in {"a": "0", "through": "1", "b": "0", "wall": "0"}.items():
        graph.junction(name, kind)
    graph.add("column", IC(
        (("hydraulic", "momentum"), ("hydraulic", "displacement")),
        lambda momentum, swept: momentum * momentum / (2.0 * inertia(swept)),
        (inertia(0.0) * params.flow, 0.0),
    ))  # fmt: skip
    graph.chain("a", "through", "b")
    graph.bond("through", "column")
    graph.bond("wall", "column")
    return graph
