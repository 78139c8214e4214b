"""Points, directions and frames in the section `mechanism` of a rig."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np

from cosim.core.types import param, params
from cosim.mechanics.multibody.mechanism import Pose, pose_of

ORIGIN = (0.0, 0.0, 0.0)


def _not_zero(value: float) -> float:
    if value == 0.0:
        raise ValueError("must not be 0")
    return value


def _unit(direction: tuple[float, float, float]) -> tuple[float, float, float]:
    x, y, z = direction
    length = float(np.linalg.norm(direction))
    if length == 0.0:
        raise ValueError("must not be zero; give it a direction")
    return x / length, y / length, z / length


NotZero = Annotated[float, _not_zero]
Vector = tuple[float, float, float]
Direction = Annotated[Vector, _unit]  # normalised; of any length in the file


@params
class Origin:
    """A frame in another one, as URDF writes it."""

    xyz: Vector = param(unit="m", default=ORIGIN)
    rpy: Vector = param(unit="rad", default=ORIGIN)

    @property
    def pose(self) -> Pose:
        return pose_of(self.xyz, self.rpy)


def at_point(point: Sequence[float]) -> Pose:
    """The frame at a point (3,) along the axes of its link."""
    return Pose(np.eye(3), np.array(point, dtype=float))


def along(k: int, direction: Sequence[float], point: Sequence[float]) -> Pose:
    """A frame at a point (3,) whose axis number k has the unit direction (3,); the others are arbitrary."""
    columns = [np.zeros(3)] * 3
    columns[k] = np.array(direction, dtype=float)
    columns[(k + 1) % 3] = perpendicular(columns[k])
    columns[(k + 2) % 3] = np.cross(columns[k], columns[(k + 1) % 3]) + 0.0  # + 0.0 turns -0 into 0
    return Pose(np.column_stack(columns), np.array(point, dtype=float))


def perpendicular(direction: np.ndarray, near: Sequence[float] | None = None) -> np.ndarray:
    """A unit vector (3,) perpendicular to `direction`, as close as possible to `near`.

    near: by default the coordinate axis after the one closest to `direction`: x gives y, y gives z, z gives x.
    """
    wanted = np.eye(3)[(int(np.argmax(np.abs(direction))) + 1) % 3] if near is None else np.asarray(near)
    result = wanted - direction * (direction @ wanted)
    return result / np.linalg.norm(result) + 0.0
