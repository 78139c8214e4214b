"""A frame moves along a circular arc in task space; its orientation is kept, turns with the arc, or is free."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from cosim.core.errors import InputError
from cosim.core.types import Array, TrajectoryContext, param, params
from cosim.mechanics.multibody.rotations import rotation_by
from cosim.plugins.trajectories._fastest import PathTrajectory
from cosim.plugins.trajectories._task_paths import PathTiming, Vector, follow, start_pose

NEEDS_MODEL = True
SMALLEST_RADIUS = 1e-6  # m


@params
class Params(PathTiming):
    frame: str = param(doc="a link of the mechanism")
    center: Vector = param(unit="m", doc="a point of the axis in ground axes")
    axis: Vector = param(doc="direction of the axis in ground axes, about which the angle is positive")
    angle: float = param(unit="rad", doc="of the arc; a whole turn is a circle")
    orientation: Literal["keep", "turn", "free"] = param(
        default="keep", doc="keep: as at the start; turn: with the arc; free: any"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not any(self.axis):
            raise ValueError("axis must have a length")
        if self.angle == 0.0:
            raise ValueError("angle must not be 0")


@dataclass(frozen=True)
class Arc:
    """p = center + exp(s · turn) (start − center)."""

    position: Array
    rotation: Array
    center: Array
    turn: Array  # (3,) rotation vector of the whole arc [rad]
    rotates: bool
    turns: bool
    name: str = "arc"

    @property
    def length(self) -> float:
        return float(np.linalg.norm(np.cross(self.turn, self.position - self.center)))

    def pose(self, s: float) -> tuple[Array, Array]:
        turned = rotation_by(s * self.turn)
        rotation = turned @ self.rotation if self.rotates else self.rotation
        return self.center + turned @ (self.position - self.center), rotation

    def derivatives(self, s: float) -> tuple[Array, Array]:
        velocity = np.cross(self.turn, self.pose(s)[0] - self.center)
        bend = np.cross(self.turn, velocity)
        return np.concatenate([velocity, self.turn * self.rotates]), np.concatenate([bend, np.zeros(3)])


def load(
    params: Params, joints: tuple[str, ...], folder: Path, start: Array, context: TrajectoryContext
) -> PathTrajectory:
    """Raises InputError for an unknown frame and where the frame cannot follow the arc."""
    position, rotation = start_pose(context, params.frame)
    turn = params.angle * np.array(params.axis) / np.linalg.norm(params.axis)
    arc = Arc(
        position, rotation, np.array(params.center), turn, params.orientation == "turn", params.orientation != "free"
    )
    if arc.length < SMALLEST_RADIUS * abs(params.angle):
        raise InputError(f"'{params.frame}' starts on the axis of the arc; move the center")
    return follow(context, params.frame, arc, params)
