"""Cylinders: points near one, and the points of its rims that lie lowest."""

from __future__ import annotations

import math

import numpy as np

from cosim.core import ops
from cosim.core.types import Numeric
from cosim.mechanics.multibody.contact.point_of_contact import PointOfContact, between, signs
from cosim.mechanics.multibody.contact.shapes import BallShape, CylinderShape

UPRIGHT = 1e-9  # tilt [rad] of a cylinder that stands, below which its rim has no lowest point that is steady
THIRD = 2.0 * math.pi / 3.0


def ball_cylinder(ball: BallShape, cylinder: CylinderShape, rotation: Numeric, centre: Numeric) -> list[PointOfContact]:
    """In the plane through the axis a cylinder is a rectangle."""
    x, y, z = centre
    across = between(ops.array([x, y, 0.0]), np.zeros(3), np.array([1.0, 0.0, 0.0]))
    side = signs(z)
    out = across.distance - cylinder.radius, ops.abs(z) - 0.5 * cylinder.length
    around, up = across.normal, ops.array([0.0, 0.0, side])
    nearer = ops.where(out[0] > out[1], around, up)
    beyond = ops.maximum(out[0], 0.0) * around + ops.maximum(out[1], 0.0) * up
    return [between(centre, centre - beyond, nearer, inside=ops.maximum(*out)).thick(ball.radius)]


def rim_points(cylinder: CylinderShape, rotation: Numeric, centre: Numeric) -> list[Numeric]:
    """The lowest point (3,) of each rim along z, and the two points a third of the rim from it.

    A cylinder that rolls touches at the lowest points alone, which are exact; one that stands within `UPRIGHT` has
    three steady points at each rim, which begin on its own x axis.
    """
    down = -rotation[2, :2]  # in the axes of the cylinder
    squared = down @ down
    tilted = squared > (1e-3 * UPRIGHT) ** 2
    tilt = ops.where(tilted, ops.sqrt(ops.where(tilted, squared, 1.0)), 0.0)
    lowest = ops.array([down[0] + ops.maximum(UPRIGHT - tilt, 0.0), down[1], 0.0])
    length2 = lowest @ lowest
    long = length2 > (1e-3 * UPRIGHT) ** 2
    unit = ops.where(long, lowest * ops.reciprocal(ops.sqrt(ops.where(long, length2, 1.0))), np.array([1.0, 0.0, 0.0]))
    points = []
    for end in (-0.5, 0.5):
        middle = centre + end * cylinder.length * rotation[:, 2]
        for angle in (0.0, THIRD, -THIRD):
            c, s = math.cos(angle), math.sin(angle)
            around = ops.array([c * unit[0] - s * unit[1], s * unit[0] + c * unit[1], 0.0])
            points.append(middle + cylinder.radius * (rotation @ around))
    return points
