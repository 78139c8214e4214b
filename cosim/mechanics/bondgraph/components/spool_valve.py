"""A four-way spool valve: four edges between pressure `p`, tank `t` and the consumers `a`, `b`.

A positive opening x joins p with a and b with t, a negative one p with b and a with t. An edge is a gap around the
spool of the height o(x) = (s + √(s² + c²)) / 2, s = ±x − overlap: the opening beyond the overlap, and near closing
and closed what the radial clearance c lets through. `_throttle` gives its flow, with D = 2 x_max.

The spool follows the command without delay, or with a lag: a centring spring k is pulled by the force k x_command, with
damping τ k alone (`time_constant`), or with the mass k / ω² and the damping 2 ζ k / ω (`natural_frequency`).
"""

from __future__ import annotations

import math
from collections.abc import Callable

from cosim.core import ops
from cosim.core.errors import SectionError
from cosim.core.types import Numeric, param, params
from cosim.mechanics.bondgraph import BondGraph, C, I, Law, R, Se
from cosim.mechanics.bondgraph.components import _fluid, _passage

EDGES = {"pa": 1.0, "bt": 1.0, "pb": -1.0, "at": -1.0}  # from and to -> direction in which the spool opens it
CENTRING = 1e4  # N/m; sets the force and energy of the spool's actuator alone


@params
class Params:
    diameter: float = param(unit="m", above=0, doc="of the spool")
    max_opening: float = param(unit="m", above=0, doc="bound of the opening, in both directions")
    command: Law = param(doc="opening in m, an expression")
    overlap: float = param(unit="m", default=0.0, doc="opening at which an edge opens; negative: underlap")
    clearance: float = param(unit="m", above=0, default=5e-6, doc="radial clearance")
    time_constant: float | None = param(unit="s", above=0, default=None, doc="of a first order lag")
    natural_frequency: float | None = param(unit="rad/s", above=0, default=None, doc="of a second order lag")
    damping_ratio: float = param(above=0, default=0.7, doc="of a second order lag")
    discharge: float = _passage.discharge()
    density: float = _fluid.density()
    viscosity: float = _fluid.viscosity()
    reynolds: float = _passage.reynolds()


def build(params: Params) -> BondGraph:
    """Ports: `p`, `t`, `a`, `b`. Raises SectionError for lags of both orders."""
    graph = BondGraph(ports={name: name for name in "ptab"})
    for name in "ptab":
        graph.junction(name, "0")
    command = params.command
    position = Law(lambda *u: ops.clip(command.fn(*u), -params.max_opening, params.max_opening), command.uses)
    if params.time_constant is not None or params.natural_frequency is not None:
        position = _add_spool(graph, params, position)
    edge = _passage.MeteringEdge.of(params, 2.0 * params.max_opening)
    for (first, last), direction in EDGES.items():
        name = f"{first}_to_{last}"
        graph.junction(name, "1")
        graph.add(f"edge_{name}", edge.resistance(_area(params, direction, position), position.uses))
        graph.chain(first, name, last)
        graph.bond(name, f"edge_{name}")
    return graph


def _area(params: Params, direction: float, position: Law) -> Callable[..., Numeric]:
    """Of an edge [m²], of the signals that the position uses."""

    def area(*signals: Numeric) -> Numeric:
        s = direction * position.fn(*signals) - params.overlap
        return math.pi * params.diameter * 0.5 * (s + ops.sqrt(s * s + params.clearance**2))

    return area


def _add_spool(graph: BondGraph, params: Params, command: Law) -> Law:
    """Its opening as a state."""
    lag, frequency = params.time_constant, params.natural_frequency
    if lag is not None and frequency is not None:
        what = "a spool has a 'time_constant' or a 'natural_frequency', not both; take one out"
        raise SectionError(what, ("time_constant",))
    graph.junction("spool", "1")
    graph.add("pilot", Se("translational", Law(lambda *u: CENTRING * command.fn(*u), command.uses)))
    graph.add("spring", C("translational", CENTRING))
    if lag is None:
        assert frequency is not None
        graph.add("mass", I("translational", CENTRING / frequency**2))
        graph.bond("spool", "mass")
        lag = 2.0 * params.damping_ratio / frequency
    graph.add("damping", R("translational", CENTRING * lag))
    graph.chain("pilot", "spool", "spring")
    graph.bond("spool", "damping")
    return Law(lambda x: x, ("spring.displacement",))
