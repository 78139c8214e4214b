"""Prescribed spherical joints: where their motion is in the coordinates, and what their single dofs do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cosim.core.types import Array, Numeric
from cosim.mechanics.multibody.coordinates import ROTATION
from cosim.mechanics.multibody.given_rotation import GivenRotation


class RotationPlace(NamedTuple):
    """A given rotation, and the indices of its quaternion in q (4,) and of its dofs in v (3,)."""

    rotation: GivenRotation
    coordinates: Array
    dofs: Array


@dataclass(frozen=True, eq=False)
class TurnedDof:
    """Dof k of a prescribed spherical joint as a trajectory: a component of its rotation vector, and those of its
    angular velocity and acceleration, which are not the derivatives of that vector."""

    rotation: GivenRotation
    k: int

    @property
    def end(self) -> float:
        return self.rotation.end

    @property
    def breaks(self) -> Array:
        return self.rotation.breaks

    def sample(self, t: Numeric) -> dict[str, Numeric]:
        quaternion, omega, alpha = self.rotation.sample(t)
        k = slice(self.k, self.k + 1)
        return {
            "position": ROTATION.chart(quaternion)[k],
            "velocity": omega[k],
            "acceleration": alpha[k],
            "effort": np.zeros(1),
        }
