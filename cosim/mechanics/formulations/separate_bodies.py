"""The sweeps over separate bodies, the default of every rig: O(n), with loops, constraints and springs."""

from __future__ import annotations

from cosim.core.types import Numeric
from cosim.mechanics.formulations import Formulation, check_state
from cosim.mechanics.multibody.equations import MechanismEquations

ABOUT = "separate bodies: articulated-body sweeps, O(n)"
SOURCE = "Vereshchagin, Computer simulation of the dynamics of complicated mechanisms of robot-manipulators, 1974"


def refusal(_: MechanismEquations) -> str | None:
    return None


def load(equations: MechanismEquations) -> Formulation:
    return SeparateBodies(equations)


class SeparateBodies:
    """The formulation that `Model` itself has, by sweeps over the bodies."""

    def __init__(self, equations: MechanismEquations) -> None:
        self.equations = equations

    def forward_dynamics(self, q: Numeric, v: Numeric, tau: Numeric, t: Numeric = 0.0) -> Numeric:
        """q̈ (nv,): see `Model.forward_dynamics`."""
        check_state(self.equations, q, v, tau)
        return self.equations.forward_dynamics(q, v, tau, t)
