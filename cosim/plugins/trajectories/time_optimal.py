"""The fastest motion along a path of the joints within their limits of velocity, acceleration and effort, see
`_fastest`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from cosim.core.errors import InputError
from cosim.core.types import Array, PerJoint, TrajectoryContext, param, params
from cosim.plugins.trajectories._fastest import MotionLimits, PathTrajectory, fastest_along
from cosim.plugins.trajectories._piecewise import PiecewisePolynomial, spline_through
from cosim.plugins.trajectories._turns import Wrap, along, wrap_key

NEEDS_MODEL = True


@params
class Params:
    points: tuple[PerJoint, ...] = param(unit="joint position", doc="positions on the path, the last is the goal")
    max_velocity: PerJoint | None = param(
        unit="joint velocity", above=0, default=None, doc="default: 95 % of the joints' limits"
    )
    max_acceleration: PerJoint | None = param(unit="joint acceleration", above=0, default=None, doc="default: none")
    effort_fraction: float = param(above=0, max=1, default=1.0, doc="of the effort limits, the rest is for feedback")
    delay: float = param(unit="s", min=0, default=0.0, doc="delay before the motion")
    wrap: Wrap = wrap_key()

    def __post_init__(self) -> None:
        if not self.points:
            raise ValueError("points are missing; give one or more")


def load(
    params: Params, joints: tuple[str, ...], folder: Path, start: Array, context: TrajectoryContext
) -> PathTrajectory:
    """Raises InputError for limits that do not allow or do not bound the motion."""
    points = np.array(along(start, np.array(params.points), params.wrap))
    distances = np.linalg.norm(np.diff(points, axis=0), axis=1)
    for k in np.flatnonzero(distances == 0.0):
        raise InputError(f"points[{k}] is where the path already is; take it out")
    limits = MotionLimits.of(context.limits, params.max_velocity, params.max_acceleration, params.effort_fraction)
    return fastest_along(_path(points, distances), limits, context, joints, params.delay)


def _path(points: Array, distances: Array) -> PiecewisePolynomial:
    """The natural cubic spline over the distance between the points, a straight line for two of them."""
    s = np.concatenate(([0.0], np.cumsum(distances)))
    return spline_through(s, points, 3, "natural", "path")
