"""What acts on the dofs of a plant alone and stores energy: springs in joints, and the elasticity of links. For methods
that take it at the middle of a step, implicitly dof by dof."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from cosim.core.compile.jacobian import Jacobian
from cosim.core.compile.trace import inlined
from cosim.core.types import Numeric
from cosim.mechanics.multibody.equations import MechanismEquations


@dataclass(frozen=True)
class DofElasticity:
    equations: MechanismEquations

    def __bool__(self) -> bool:
        return self.equations.constraints.acts_on_dofs

    @cached_property
    def others(self) -> MechanismEquations:
        """The mechanism without it."""
        e = self.equations
        constraints = replace(e.constraints, joint_springs=None, elastic=(), ball_springs=())
        return MechanismEquations(e.tree, e.gravity, constraints)

    def effort(self, motion: Numeric) -> Numeric:
        """(nv,) on the dofs with this motion (position, velocity) (2 nv,)."""
        e = self.equations
        q, v = e.coordinates(motion[: e.nv]), motion[e.nv :]
        return e.v_map.project(e.constraints.efforts_on_dofs(e.q_map.positions(q), e.v_map.expand(v)))

    @cached_property
    def _slope(self) -> Jacobian:
        return Jacobian(self.effort, [(2 * self.equations.nv,)], "elasticity_slope")

    def resistances(self, motion: Numeric) -> tuple[Numeric, Numeric]:
        """(nv,) stiffness and damping of each dof by itself."""
        with inlined():
            slope = self._slope(motion)
        return -np.diag(slope[:, : self.equations.nv]), -np.diag(slope[:, self.equations.nv :])
