"""Cylinders: points near one, and the points of its rims that lie lowest."""

from __future__ import annotations

import math
from collections.abc import Callable

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


def rim_points(
    cylinder: CylinderShape, rotation: Numeric, centre: Numeric, up: Callable[[Numeric], Numeric]
) -> list[Numeric]:
    """The lowest point (3,) of each rim, and the two points a third of the rim from it. up: the direction (3,) against
    which a point is lowest, at a place (3,).

    A cylinder that rolls touches at the lowest points alone, which are exact; one that stands within `UPRIGHT` has
    three steady points at each rim, which begin on its own x axis. The two other points follow the lowest around the
    rim: while a cylinder that stands wobbles, their gaps change otherwise than its matter moves.
    """

    def lowest_and_across(place: Numeric) -> list[Numeric]:
        """Unit vectors from the axis to the lowest point, and along the rim there."""
        x, y = _lowest(-(rotation.T @ up(place))[:2])
        return [rotation @ ops.array([*direction, 0.0]) for direction in ((x, y), (-y, x))]

    points = []
    for end in (-0.5, 0.5):
        middle = centre + end * cylinder.length * rotation[:, 2]
        # uneven ground is another under the lowest point than under the middle
        lowest, across = lowest_and_across(middle + cylinder.radius * lowest_and_across(middle)[0])
        for angle in (0.0, THIRD, -THIRD):
            points.append(middle + cylinder.radius * (math.cos(angle) * lowest + math.sin(angle) * across))
    return points


def _lowest(down: Numeric) -> Numeric:
    """The unit vector (2,) along `down`, whose length is the sine of the tilt; steady where that is nothing."""
    tilt = _length(down)
    along = down + ops.array([ops.maximum(UPRIGHT - tilt, 0.0), 0.0])
    length = _length(along)
    return ops.where(length > 0.0, along * ops.reciprocal(ops.where(length > 0.0, length, 1.0)), np.array([1.0, 0.0]))


def _length(vector: Numeric) -> Numeric:
    """Of (2,); 0 where it is next to nothing beside `UPRIGHT`."""
    squared = vector @ vector
    enough = squared > (1e-3 * UPRIGHT) ** 2
    return ops.where(enough, ops.sqrt(ops.where(enough, squared, 1.0)), 0.0)
