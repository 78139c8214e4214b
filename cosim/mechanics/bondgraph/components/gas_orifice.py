"""An opening for air with critical flow, by sonic conductance and critical pressure ratio, or an ideal nozzle.

    ISO 6358   ṁ = C ρ0 p √(T0 / T) ψ(r),   ψ = 1 for r ≤ b, else √(1 − ((r − b) / (1 − b))²)
    nozzle     ṁ = μ A p / √(R T) ψ(r),     ψ of Saint-Venant and Wantzel

with p and T where the flow comes from and the ratio r of both pressures. From r = 0.999 on it is linear in 1 − r.

Ports: `a`, `b`; positive flow is from a to b.
"""

from __future__ import annotations

from cosim.core import ops
from cosim.core.types import Numeric, param, params
from cosim.mechanics.bondgraph import BondGraph
from cosim.mechanics.bondgraph.components import _gas, _passage


@params
class Params:
    conductance: float | None = param(unit="m^3/s/Pa", above=0, default=None, doc="C, sonic conductance of ISO 6358")
    critical_ratio: float = param(unit="1", min=0, max=0.99, default=0.3, doc="b, of ISO 6358")
    area: float | None = param(unit="m^2", above=0, default=None, doc="A of an ideal nozzle, in place of C")
    discharge: float = _passage.discharge()

    def __post_init__(self) -> None:
        if (self.conductance is None) == (self.area is None):
            raise ValueError("give either conductance (ISO 6358), or area (an ideal nozzle)")


def flow_law(params: Params) -> tuple[Numeric, _gas.Psi]:
    """(factor, ψ) of `_gas.mass_flow`."""
    if params.area is not None:
        return params.discharge * params.area / _gas.GAS_CONSTANT**0.5, _gas.nozzle
    assert params.conductance is not None
    density = _gas.REFERENCE_DENSITY * ops.sqrt(_gas.REFERENCE_TEMPERATURE)
    return params.conductance * density, _gas.iso_6358(params.critical_ratio)


def build(params: Params) -> BondGraph:
    graph = BondGraph(ports={"a": "a", "b": "b"})
    for name in ("a", "b"):
        _gas.gas_junction(graph, name)
    factor, psi = flow_law(params)
    _gas.add_passage(graph, "edge", "a", "b", lambda *state: _gas.mass_flow(factor, psi, *state))
    return graph
