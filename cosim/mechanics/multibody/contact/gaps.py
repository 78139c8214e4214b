"""Gap, axes and point of contact of pairs of shapes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cosim.core import ops
from cosim.core.types import Numeric
from cosim.mechanics.multibody.contact.shapes import BallShape, BoxShape, ContactShape

Frame = tuple[Numeric, Numeric]  # axes (3, 3) and origin (3,) in ground axes


class PointOfContact(NamedTuple):
    """gap [m]; axes (3, 3) with rows t1, t2, n, n from the second shape to the first; where (3,) the force acts."""

    gap: Numeric
    axes: Numeric
    position: Numeric


def points_of(first: ContactShape, second: ContactShape) -> int:
    return 8 if isinstance(first, BoxShape) else 1


def points(first: ContactShape, at_first: Frame, second: ContactShape, at_second: Frame) -> list[PointOfContact]:
    axes = at_second[0].T
    if isinstance(first, BallShape):
        centres, radius = [at_first[1]], first.radius
    else:
        half = np.array(first.size) / 2
        corners = [half * np.array([x, y, z]) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]
        centres, radius = [at_first[1] + at_first[0] @ corner for corner in corners], 0.0
    found = []
    for centre in centres:
        gap = axes[2] @ (centre - at_second[1]) - radius
        found.append(PointOfContact(gap, axes, centre - axes[2] * (radius + 0.5 * gap)))
    return found


__all__ = ["PointOfContact", "ops", "points", "points_of"]
