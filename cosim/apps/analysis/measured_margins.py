"""Margins of a loop that is known at measured frequencies alone: at the crossings of a cubic spline through them.

They are figures of these frequencies: a resonance that is narrower than their distance may not be in them.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from cosim.apps.analysis.loops import DiskMargin, Margins
from cosim.core.types import Array

HALVINGS = 50  # of the interval of a crossing


def measured_margins(loop: Array, omega: Array) -> Margins:
    """Of a stable loop L (m,) at these frequencies [rad/s]."""
    at_real = _crossings(loop, omega, np.imag)[1]
    gains = [-1.0 / value for value in np.real(at_real) if value < 0.0]
    crossovers, at_one = _crossings(loop, omega, lambda value: np.abs(value) - 1.0)
    lag = np.angle(-at_one) % (2.0 * math.pi)
    skewed = np.abs((1.0 - loop) / (1.0 + loop))
    nearest = int(skewed.argmax())
    return Margins(
        float(min((gain for gain in gains if gain > 1.0), default=math.inf)),
        float(max((gain for gain in gains if gain < 1.0), default=0.0)),
        float(min(np.minimum(lag, 2.0 * math.pi - lag), default=math.inf)),
        float(min(lag / crossovers, default=math.inf)),
        DiskMargin(min(2.0, 2.0 / float(skewed[nearest])), float(omega[nearest])),
    )


def measured_crossover(gain: Array, omega: Array) -> float:
    """The last frequency [rad/s] at which the gain falls below 1, NaN if it does not."""
    falls = np.flatnonzero((gain[:-1] >= 1.0) & (gain[1:] < 1.0))
    if not len(falls):
        return math.nan
    k = slice(falls[-1], falls[-1] + 2)
    return float(np.exp(np.interp(0.0, -np.log(gain[k]), np.log(omega[k]))))


def _crossings(loop: Array, omega: Array, figure: Callable[[Array], Array]) -> tuple[Array, Array]:
    """(frequencies (k,), L there (k,)) at which a figure of L changes its sign, by bisection in the pieces of the cubic
    spline through L."""
    from scipy.interpolate import CubicSpline

    negative = figure(loop) < 0.0
    k = np.flatnonzero(negative[:-1] != negative[1:])
    pieces = CubicSpline(omega, loop).c[:, k]
    low, high = np.zeros(len(k)), omega[k + 1] - omega[k]
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        before = (figure(np.polyval(pieces, middle)) < 0.0) == negative[k]
        low, high = np.where(before, middle, low), np.where(before, high, middle)
    return omega[k] + high, np.polyval(pieces, high)
