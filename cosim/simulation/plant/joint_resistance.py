"""What the joints of a plant oppose to their motion by themselves, in methods that treat it implicitly: friction, and
the springs in the joints."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cosim.core.compile.jacobian import Jacobian
from cosim.core.compile.trace import inlined
from cosim.core.types import Numeric
from cosim.simulation.plant.drive_bank import JointDrives
from cosim.simulation.plant.plant import Plant


@dataclass(frozen=True)
class JointResistance:
    """drives: those of the plant, which contain the friction that depends on more than the velocity."""

    plant: Plant
    drives: JointDrives

    @property
    def _nv(self) -> int:
        return self.plant.model.nv

    def friction(self, v: Numeric) -> Numeric:
        """(nv,) friction of the joints that depends on nothing else."""
        return self.plant.model.equations.friction_effort(v, dict.fromkeys(self.drives.laws, 0.0))

    def effort(self, motion: Numeric) -> Numeric:
        """(nv,) efforts against the motion (position, velocity) of the dofs."""
        friction, equations = self.friction(motion[self._nv :]), self.plant.model.equations
        if equations.constraints.joint_springs is None:
            return friction
        return friction + equations.joint_spring_effort(equations.coordinates(motion[: self._nv]))

    @cached_property
    def _friction_slope(self) -> Jacobian:
        return Jacobian(self.friction, [(self._nv,)], "friction_slope")

    def damping(self, v: Numeric) -> Numeric:
        """(nv,) the slope of `friction` of each dof by its own velocity."""
        with inlined():
            return np.diag(self._friction_slope(v))

    @cached_property
    def _slope(self) -> Jacobian:
        return Jacobian(self.effort, [(2 * self._nv,)], "resistance_slope")

    def slopes(self, motion: Numeric) -> tuple[Numeric, Numeric]:
        """Of `effort` by position and by velocity, (nv, nv) each."""
        with inlined():
            slope = self._slope(motion)
        return slope[:, : self._nv], slope[:, self._nv :]
