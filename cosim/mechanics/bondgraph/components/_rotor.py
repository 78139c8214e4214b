"""The rotor of a machine: its inertia, the friction of its bearings, and a torque of its teeth or magnets."""

from __future__ import annotations

from cosim.core import ops
from cosim.core.types import Numeric
from cosim.mechanics.bondgraph import BondGraph, C, I, Law, R

ROTOR = "rotor"  # the 1-junction of the shaft


def add_rotor(graph: BondGraph, inertia: float, viscous: float, cogging: float = 0.0, periods: int = 1) -> None:
    """Elements at the junction `rotor`, of those that are not 0. inertia [kg m²]; viscous [N·m·s/rad]; cogging:
    amplitude [N·m] of a torque with so many periods per turn, which holds the angle 0."""
    if inertia:
        graph.add("inertia", I("rotational", inertia))
        graph.bond(ROTOR, "inertia")
    if viscous:
        graph.add("bearing", R("rotational", viscous))
        graph.bond(ROTOR, "bearing")
    if cogging:

        def energy(angle: Numeric) -> Numeric:
            return cogging / periods * (1.0 - ops.cos(periods * angle))

        torque = Law(lambda angle: cogging * ops.sin(periods * angle), ("displacement",))
        graph.add("cogging", C("rotational", torque, energy=Law(energy, ("displacement",))))
        graph.bond(ROTOR, "cogging")
