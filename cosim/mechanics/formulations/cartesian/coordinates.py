"""The coordinates of a body: six in space, three where the whole mechanism moves in a plane.

In space the accelerations are linear, of the centre of mass along ground axes, and angular, along the axes of the body,
so that M = diag(m E, J) is constant. In the plane they are along two directions of it and about its normal.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cosim.core import ops
from cosim.core.types import Numeric
from cosim.mechanics.multibody.spatial import SpatialVector

# angle between a motion and the plane, in rad, below which it counts as in the plane
ALIGNED = 1e-9


class SpatialCoordinates:
    """Six coordinates per body."""

    size, translations = 6, 3

    def row(self, axes: Numeric, along: SpatialVector) -> Numeric:
        """The coefficients (6,) of a row, or a force, that is given along ground axes; axes (3, 3): of the body."""
        return ops.concatenate([along.linear, axes.T @ along.angular])

    def force(self, axes: Numeric, force: Numeric, moment: Numeric) -> Numeric:
        """The coefficients (6,) of a force along ground axes and a moment along the body's axes."""
        return ops.concatenate([force, moment])

    def inertia(self, mass: Numeric, inertia: Numeric, axes: np.ndarray) -> Numeric:
        """M of a body with this inertia (3, 3) about its centre of mass along its axes."""
        zero = np.zeros((3, 3))
        return ops.array([[*a, *b] for a, b in zip([*(mass * np.eye(3)), *zero], [*zero, *inertia], strict=True)])


@dataclass(frozen=True, eq=False)
class Plane(SpatialCoordinates):
    """Three coordinates per body; basis (3, 3): its columns are two directions of the plane and its normal."""

    basis: np.ndarray
    size, translations = 3, 2

    def row(self, axes: Numeric, along: SpatialVector) -> Numeric:
        first, second, normal = self.basis.T
        return ops.array([first @ along.linear, second @ along.linear, normal @ along.angular])

    def force(self, axes: Numeric, force: Numeric, moment: Numeric) -> Numeric:
        return self.row(axes, SpatialVector(force, axes @ moment))

    def inertia(self, mass: Numeric, inertia: Numeric, axes: np.ndarray) -> Numeric:
        normal = axes.T @ self.basis[:, 2]
        return ops.array([[mass, 0.0, 0.0], [0.0, mass, 0.0], [0.0, 0.0, normal @ inertia @ normal]])


def common_plane(columns: list[tuple[np.ndarray, np.ndarray]]) -> Plane | None:
    """The plane in which all motions are, None if there is none; columns: (linear, angular) of the motion of each dof
    in a configuration in general position. Translations alone do not define it."""
    turning = [angular for _, angular in columns if np.linalg.norm(angular) > ALIGNED]
    if not turning:
        return None
    normal = _exact(turning[0] / np.linalg.norm(turning[0]))
    for linear, angular in columns:
        if abs(normal @ linear) > ALIGNED or np.linalg.norm(np.cross(normal, angular)) > ALIGNED:
            return None
    first = _across(normal)
    return Plane(np.column_stack([first, np.cross(normal, first), normal]))


def _exact(direction: np.ndarray) -> np.ndarray:
    """A direction within rounding of a ground axis is that axis: its zeros vanish from compiled code."""
    nearest = np.round(direction)
    return nearest if np.abs(direction - nearest).max() < ALIGNED else direction


def _across(normal: np.ndarray) -> np.ndarray:
    """A unit vector in the plane: a ground axis where one is in it."""
    nearest = np.eye(3)[int(np.argmin(np.abs(normal)))]
    across = nearest - normal * (normal @ nearest)
    return across / np.linalg.norm(across)
