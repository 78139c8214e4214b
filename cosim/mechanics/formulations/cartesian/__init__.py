"""Newton–Euler equations of every body in Cartesian coordinates, with a multiplier for each elementary constraint."""

from __future__ import annotations

from cosim.mechanics.formulations.cartesian.assembled import why_not
from cosim.mechanics.formulations.cartesian.system import Cartesian
from cosim.mechanics.multibody.equations import MechanismEquations

ABOUT = "Cartesian coordinates of the bodies with multipliers: sparse LDLᵀ without fill-in, O(n)"
SOURCE = "Baraff, Linear-time dynamics using Lagrange multipliers, 1996"


def refusal(equations: MechanismEquations) -> str | None:
    return why_not(equations)


def load(equations: MechanismEquations) -> Cartesian:
    return Cartesian(equations)
