"""Splines through points of several joints, with continuous derivatives up to one less than their degree."""

from __future__ import annotations

import math

import numpy as np

from cosim.core.types import Array
from cosim.plugins.trajectories._piecewise import PiecewisePolynomial

# degree, ends -> the derivatives that are 0 at both ends
ZERO_AT_ENDS = {
    (3, "clamped"): (1,),
    (3, "natural"): (2,),
    (5, "clamped"): (1, 2),
    (5, "natural"): (3, 4),
}


def spline_coefficients(x: Array, points: Array, degree: int, ends: str) -> Array:
    """(degree + 1, m - 1, n) of the spline through points (m, n) at x (m,), in the form of `PiecewisePolynomial.of`.

    Among all functions through the points with these ends, the cubic spline has the least integral of the squared
    second derivative, the quintic one of the squared jerk.
    """
    from scipy.interpolate import make_interp_spline

    zero = [(k, np.zeros(points.shape[1])) for k in ZERO_AT_ENDS[degree, ends]]
    spline = make_interp_spline(x, points, k=degree, bc_type=(zero, zero))
    return np.array([spline(x[:-1], k) / math.factorial(k) for k in range(degree, -1, -1)])


def spline_through(x: Array, points: Array, degree: int, ends: str, name: str) -> PiecewisePolynomial:
    """See `spline_coefficients`."""
    return PiecewisePolynomial.of(x, spline_coefficients(x, points, degree, ends), name)


def increasing(times: tuple[float, ...], count: int, points: str) -> None:
    """Raises ValueError unless there are `count` times above 0 that increase; points: what has the times."""
    if len(times) != count:
        raise ValueError(f"{count} {points} need {count} times, got {len(times)}")
    for before, after in zip((0.0, *times), times, strict=False):
        if after <= before:
            raise ValueError(f"times must increase from 0, but {after:g} s follows {before:g} s")
