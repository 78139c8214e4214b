"""A proportional 5/3-way valve for air: four edges between supply `p`, exhaust `r` and the consumers `a`, `b`.

A positive command opens p to a and b to r, a negative one p to b and a to r; at 0 all are shut but for the leakage. An
edge has the sonic conductance C · (opening + leakage) with the opening between 0 and 1, see `gas_orifice`.
"""

from __future__ import annotations

from collections.abc import Callable

from cosim.core import ops
from cosim.core.types import Numeric, param, params
from cosim.mechanics.bondgraph import BondGraph, Law
from cosim.mechanics.bondgraph.components import _gas, gas_orifice
from cosim.mechanics.bondgraph.components._follower import follower

EDGES = {"pa": 1.0, "br": 1.0, "pb": -1.0, "ar": -1.0}  # from and to -> direction of the command that opens it


@params
class Params:
    command: Law = param(doc="opening from -1 to 1, an expression")
    conductance: float = param(unit="m^3/s/Pa", above=0, doc="C of each edge at full opening")
    critical_ratio: float = param(unit="1", min=0, max=0.99, default=0.3, doc="b, of ISO 6358")
    leakage: float = param(unit="1", min=0, max=0.5, default=1e-4, doc="of a shut edge, as a fraction of C")
    time_constant: float | None = param(unit="s", above=0, default=None, doc="of a first order lag of the spool")


def build(params: Params) -> BondGraph:
    """Ports: `p`, `r`, `a`, `b`."""
    graph = BondGraph(ports={name: name for name in "prab"})
    for name in "prab":
        _gas.gas_junction(graph, name)
    command = params.command
    opening = Law(lambda *u: ops.clip(command.fn(*u), -1.0, 1.0), command.uses)
    if params.time_constant is not None:
        lag, given = params.time_constant, opening
        graph.include("spool", follower(lambda x, *u: (given.fn(*u) - x) / lag, given.uses, 0.0))
        opening = Law(lambda x: x, ("spool.state.effort",))
    factor, psi = gas_orifice.flow_law(gas_orifice.Params(params.conductance, params.critical_ratio))
    for (first, last), direction in EDGES.items():
        flow = _edge(params, factor, psi, opening, direction)
        _gas.add_passage(graph, f"edge_{first}_to_{last}", first, last, flow, opening.uses)
    return graph


def _edge(params: Params, factor: Numeric, psi: _gas.Psi, opening: Law, direction: float) -> Callable[..., Numeric]:
    """ṁ of an edge, from both its ends and the signals that the opening uses."""

    def flow(p_a: Numeric, p_b: Numeric, t_a: Numeric, t_b: Numeric, *signals: Numeric) -> Numeric:
        share = ops.maximum(direction * opening.fn(*signals), 0.0) + params.leakage
        return _gas.mass_flow(factor * share, psi, p_a, p_b, t_a, t_b)

    return flow
