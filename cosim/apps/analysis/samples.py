"""Means, integrals and intervals of signals over the time of a run, by trapezoids between the ticks."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

PAUSE = 0.05  # s without braking between two stops


def mean(t: Array, x: Array) -> float:
    return float(np.trapezoid(x, t) / (t[-1] - t[0]))


def rms(t: Array, x: Array) -> float:
    return math.sqrt(mean(t, x * x))


def largest_integral(t: Array, x: Array, window: float) -> float:
    """The largest ∫ x dt over any interval of this length [s]."""
    step = (t[-1] - t[0]) / (len(t) - 1)
    n = max(round(window / step), 1)
    total = np.concatenate([[0.0], np.cumsum(0.5 * (x[1:] + x[:-1])) * step])
    return float((total[n:] - total[:-n]).max())


def braking(t: Array, power: Array) -> list[tuple[int, int]]:
    """(first, last) index of each interval of braking."""
    on = np.flatnonzero(power > 0.0)
    if not len(on):
        return []
    apart = np.flatnonzero(np.diff(t[on]) > PAUSE)
    firsts, lasts = np.concatenate([[0], apart + 1]), np.concatenate([apart, [len(on) - 1]])
    return [(max(int(on[a]) - 1, 0), min(int(on[b]) + 1, len(t) - 1)) for a, b in zip(firsts, lasts, strict=True)]
