"""The sweeps over separate bodies, the default of every rig: O(n), with loops, constraints and springs."""

from __future__ import annotations

from cosim.formulations import Formulation
from cosim.multibody.equations import MechanismEquations

ABOUT = "separate bodies: articulated-body sweeps, O(n)"
SOURCE = "Vereshchagin, Computer simulation of the dynamics of complicated mechanisms of robot-manipulators, 1974"


def refusal(_: MechanismEquations) -> str | None:
    return None


def load(equations: MechanismEquations) -> Formulation:
    return equations
