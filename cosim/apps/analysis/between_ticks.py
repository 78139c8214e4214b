"""Figures of a signal between its samples: where it crosses 0, and how high its tops are."""

from __future__ import annotations

import numpy as np

from cosim.core.types import Array


def crossing_after(values: Array, k: Array) -> Array:
    """Where straight lines between samples (m,) cross 0, in samples, between each k and the next one (k of (i,))."""
    before, after = values[k], values[k + 1]
    return k + before / (before - after)


def highest(values: Array) -> float:
    """The highest value (m,) of a signal with a top between its samples: of the parabola through the highest one and
    its neighbours; at the ends the highest sample."""
    k = int(np.argmax(values))
    if not 0 < k < len(values) - 1:
        return float(values[k])
    before, middle, after = (float(value) for value in values[k - 1 : k + 2])
    curvature = before - 2.0 * middle + after
    return middle if curvature == 0.0 else middle - (after - before) ** 2 / (8.0 * curvature)
