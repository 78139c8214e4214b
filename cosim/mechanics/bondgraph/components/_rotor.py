"""The rotor of a machine: its inertia, its losses in iron and bearings, and a torque of its teeth or magnets.

Of a linear machine the mover stands for it, mass and force for inertia and torque.
"""

from __future__ import annotations

from typing import Protocol

from cosim.core import ops
from cosim.core.types import Numeric
from cosim.mechanics.bondgraph import BondGraph, C, I, Law
from cosim.mechanics.bondgraph.components._bearing import WithBearings, add_bearings
from cosim.mechanics.bondgraph.components._iron import IronLosses, add_iron

ROTOR = "rotor"  # the 1-junction of the shaft


class WithRotor(WithBearings, Protocol):
    """Parameters of a machine."""

    @property
    def inertia(self) -> float: ...
    @property
    def iron(self) -> IronLosses | None: ...


def add_rotor(
    graph: BondGraph,
    params: WithRotor,
    torque: Law,
    domain: str = "rotational",
    cogging: float = 0.0,
    cogging_rate: float = 1.0,
) -> None:
    """Elements at the junction `rotor`, of those that are not 0. torque: of the machine, of currents, which loads its
    bearings; cogging: amplitude [N·m] of a torque that holds the angle 0; cogging_rate: its angle per travel."""
    if params.inertia:
        graph.add("inertia", I(domain, params.inertia))
        graph.bond(ROTOR, "inertia")
    add_iron(graph, params.iron)
    add_bearings(graph, params, torque, domain)
    if cogging:

        def energy(angle: Numeric) -> Numeric:
            return cogging / cogging_rate * (1.0 - ops.cos(cogging_rate * angle))

        held = Law(lambda angle: cogging * ops.sin(cogging_rate * angle), ("displacement",))
        graph.add("cogging", C(domain, held, energy=Law(energy, ("displacement",))))
        graph.bond(ROTOR, "cogging")
