"""A frame moves along a straight line in task space.

Its orientation is kept, is free, or turns to a goal along the shortest way with the same timing (slerp).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from cosim.core.errors import InputError
from cosim.core.types import Array, TrajectoryContext, param, params
from cosim.mechanics.multibody.mechanism import pose_of
from cosim.mechanics.multibody.rotations import rotation_by, rotation_vector
from cosim.plugins.trajectories._fastest import PathTrajectory
from cosim.plugins.trajectories._task_paths import PathTiming, Vector, follow, start_pose

NEEDS_MODEL = True


@params
class Params(PathTiming):
    frame: str = param(doc="a link of the mechanism")
    displacement: Vector | None = param(unit="m", default=None, doc="from the initial position, in ground axes")
    goal: Vector | None = param(unit="m", default=None, doc="position in ground axes, instead of a displacement")
    orientation: Literal["keep", "free"] = param(default="keep", doc="keep: as at the start; free: any")
    rpy: Vector | None = param(
        unit="rad", default=None, doc="roll, pitch, yaw at the goal, of the frame in ground axes"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.displacement is not None and self.goal is not None:
            raise ValueError("displacement and goal are both given; keep one")
        if self.rpy is not None and self.orientation == "free":
            raise ValueError("an orientation that is free has no goal; take out rpy or orientation: free")


@dataclass(frozen=True)
class Line:
    """p = start + s · displacement, R = exp(s · turn) R_start."""

    position: Array
    rotation: Array
    displacement: Array  # (3,) [m]
    turn: Array  # (3,) rotation vector [rad]
    turns: bool
    name: str = "line"

    @property
    def length(self) -> float:
        return float(np.linalg.norm(self.displacement))

    def pose(self, s: float) -> tuple[Array, Array]:
        return self.position + s * self.displacement, rotation_by(s * self.turn) @ self.rotation

    def derivatives(self, s: float) -> tuple[Array, Array]:
        return np.concatenate([self.displacement, self.turn]), np.zeros(6)


def load(
    params: Params, joints: tuple[str, ...], folder: Path, start: Array, context: TrajectoryContext
) -> PathTrajectory:
    """Raises InputError for an unknown frame and where the frame cannot follow the line."""
    position, rotation = start_pose(context, params.frame)
    displacement = np.array(params.displacement or np.zeros(3))
    if params.goal is not None:
        displacement = np.array(params.goal) - position
    turn = np.zeros(3)
    if params.rpy is not None:
        turn = rotation_vector(pose_of((0.0, 0.0, 0.0), params.rpy).rotation @ rotation.T)
    if not displacement.any() and not turn.any():
        raise InputError("the line has no length; give displacement, goal or rpy")
    line = Line(position, rotation, displacement, turn, params.orientation == "keep")
    return follow(context, params.frame, line, params)
