"""Levenberg and Marquardt's method (Levenberg 1944, Marquardt 1963)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cosim.core.types import Array

STEPS = 200
ENOUGH_DECREASE = 1e-9  # relative decrease of the sum in a step at which a search ends
DAMPING = 1e-3  # first one, of the diagonal


def search(
    residual: Callable[[Array], tuple[Array, Array]], x: Array, damping: float = DAMPING, settled: float = 0.0
) -> Array:
    """The x that minimises the sum of squares of a residual (m,) with its derivatives (m, n), by Levenberg and
    Marquardt's method. damping: the first one; settled: decrease of the sum at which the search ends."""
    found, slope = residual(x)
    value = float(found @ found)
    for _ in range(STEPS):
        normal, gradient = slope.T @ slope, slope.T @ found
        while damping < 1e12:
            step = np.linalg.solve(normal + damping * np.diag(np.diag(normal)), -gradient)
            with np.errstate(over="ignore", invalid="ignore"):
                tried, tried_slope = residual(x + step)
                new = float(tried @ tried)
            if new < value:
                break
            damping *= 8.0
        else:
            return x
        x, found, slope, damping = x + step, tried, tried_slope, max(damping / 8.0, 1e-14)
        if value - new < max(ENOUGH_DECREASE * value, settled):
            return x
        value = new
    return x
