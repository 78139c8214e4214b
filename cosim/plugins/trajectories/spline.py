"""A cubic or quintic spline from the initial positions through points at given times."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np

from cosim.core.types import Array, PerJoint, param, params
from cosim.plugins.trajectories._piecewise import PiecewisePolynomial, increasing, spline_through
from cosim.plugins.trajectories._turns import Wrap, along, wrap_key


@params
class Params:
    points: tuple[PerJoint, ...] = param(unit="joint position", doc="positions, the last of which is the goal")
    times: tuple[float, ...] = param(unit="s", min=0, doc="of the points; the initial positions have the time 0")
    degree: Literal[3, 5] = param(default=5, doc="3: continuous acceleration; 5: continuous jerk and its rate too")
    ends: Literal["clamped", "natural"] = param(
        default="clamped", doc="clamped: at rest at both ends; natural: the ends are free and start and stop moving"
    )
    wrap: Wrap = wrap_key()

    def __post_init__(self) -> None:
        if not self.points:
            raise ValueError("points are missing; give one or more")
        increasing(self.times, len(self.points), "points")
        if self.degree == 5 and self.ends == "natural" and len(self.points) == 1:
            what = "a natural spline of degree 5 is not determined by one point"
            raise ValueError(f"{what}; give another point, degree: 3 or ends: clamped")


def load(params: Params, joints: tuple[str, ...], folder: Path, start: Array) -> PiecewisePolynomial:
    times, points = np.array([0.0, *params.times]), np.array(along(start, np.array(params.points), params.wrap))
    return spline_through(times, points, params.degree, params.ends, "spline")
