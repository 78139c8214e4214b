"""The motion of least jerk from rest to rest, through via points: the least integral of the squared jerk over time.

Between its ends it is a quintic spline with four continuous derivatives (Flash and Hogan, The coordination of arm
movements, J. Neurosci. 5, 1985), which without via points is the motion of `quintic`, and computed as that. Via points
without times are passed when that costs the least jerk.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from cosim.core.types import Array, PerJoint, param, params
from cosim.plugins.trajectories._piecewise import PiecewisePolynomial, increasing, spline_coefficients
from cosim.plugins.trajectories._turns import Wrap, along, wrap_key
from cosim.plugins.trajectories.quintic import Quintic


@params
class Params:
    goal: PerJoint = param(unit="joint position", doc="final positions")
    duration: float = param(unit="s", above=0, doc="time of the motion")
    via: tuple[PerJoint, ...] = param(unit="joint position", default=(), doc="positions that are passed, in order")
    times: tuple[float, ...] | None = param(unit="s", min=0, default=None, doc="of the via points, after the delay")
    delay: float = param(unit="s", min=0, default=0.0, doc="delay before the motion")
    wrap: Wrap = wrap_key()

    def __post_init__(self) -> None:
        if self.times is None:
            return
        increasing(self.times, len(self.via), "via points")
        if self.times and self.times[-1] >= self.duration:
            late = f"a via point at {self.times[-1]:g} s is not before the end at {self.duration:g} s"
            raise ValueError(f"{late}; lengthen duration")


def load(params: Params, joints: tuple[str, ...], folder: Path, start: Array) -> PiecewisePolynomial | Quintic:
    points = np.array(along(start, np.array([*params.via, params.goal]), params.wrap))
    if not params.via:
        return Quintic(points[0], points[1], params.delay, params.duration, back=False)
    if params.times is None:
        times = params.duration * _times_of_least_jerk(points)
    else:
        times = np.array([0.0, *params.times, params.duration])
    return PiecewisePolynomial.of(params.delay + times, _coefficients(times, points), "minimum_jerk")


def _coefficients(times: Array, points: Array) -> Array:
    return spline_coefficients(times, points, 5, "clamped")


def squared_jerk(times: Array, points: Array) -> float:
    """∫ Σ jerk² dt over the joints of the spline through points (m, n) at times (m,)."""
    a, b, c = _coefficients(times, points)[:3]
    h = np.diff(times)[:, None]
    # the jerk is 60 a s² + 24 b s + 6 c
    by_power = (36 * c * c, 144 * b * c, 192 * b * b + 240 * a * c, 720 * a * b, 720 * a * a)
    return float(sum((h ** (k + 1) * term).sum() for k, term in enumerate(by_power)))


def _times_of_least_jerk(points: Array) -> Array:
    """(m,) from 0 to 1. The pieces are fractions of the whole, softmax of unbounded variables."""
    from scipy.optimize import minimize

    distances = np.linalg.norm(np.diff(points, axis=0), axis=1)
    if not distances.all():  # between equal points no time is best
        return np.linspace(0.0, 1.0, len(points))

    def times(logarithms: Array) -> Array:
        pieces = np.exp(logarithms - logarithms.max())
        return np.concatenate(([0.0], np.cumsum(pieces[:-1]) / pieces.sum(), [1.0]))

    guess = 0.5 * np.log(distances)
    scale = squared_jerk(times(guess), points)
    found = minimize(lambda x: squared_jerk(times(x), points) / scale, guess, method="BFGS", tol=1e-10)
    return times(found.x)
