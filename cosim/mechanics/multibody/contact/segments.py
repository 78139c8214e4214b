"""Capsules: points near a segment, and two segments.

A segment is all c + s a with |s| ≤ half of its length; that of the second shape lies along z.
"""

from __future__ import annotations

import numpy as np

from cosim.core import ops
from cosim.core.types import Numeric
from cosim.mechanics.multibody.contact.point_of_contact import (
    Pair,
    PointOfContact,
    between,
    quotient,
    signs,
)
from cosim.mechanics.multibody.contact.shapes import BallShape, CapsuleShape

ACROSS = np.array([1.0, 0.0, 0.0])
PARALLEL = 1e-6  # sine of the angle below which segments do not cross


def ends(shape: CapsuleShape, rotation: Numeric, position: Numeric) -> list[Numeric]:
    """The two ends (3,) of a capsule's segment."""
    half = 0.5 * shape.length * rotation[:, 2]
    return [position - half, position + half]


def on_axis(point: Numeric, half: Numeric) -> Pair:
    """A point (3,) and the segment along z."""
    return between(point, _at(ops.clip(point[2], -half, half)), ACROSS)


def ball_capsule(ball: BallShape, capsule: CapsuleShape, rotation: Numeric, centre: Numeric) -> list[PointOfContact]:
    return [on_axis(centre, 0.5 * capsule.length).thick(ball.radius, capsule.radius)]


def capsules(first: CapsuleShape, second: CapsuleShape, rotation: Numeric, centre: Numeric) -> list[PointOfContact]:
    """The two ends of the stretch in which the segments lie side by side, and the place where they cross.

    The nearest points of two segments are an end of one of them and its nearest point on the other, or they cross
    (Ericson, Real-Time Collision Detection, 5.1.9). Of the four ends two begin and end the stretch; the other two are
    never nearer. Parallel capsules so touch at both ends, and one that tilts has them still.
    """
    axis, half, other = rotation[:, 2], 0.5 * first.length, 0.5 * second.length
    middle, spread, side = -(centre @ axis), other * ops.abs(axis[2]), signs(axis[2])

    def end(sign: float) -> Pair:
        """−1: the lower end of the stretch along the first segment, 1: the upper one."""
        along = middle + sign * spread  # where the end of the second segment lies on the first
        own = ops.clip(centre[2] + sign * half * axis[2], -other, other)
        place = ops.where(sign * along < half, sign * side * other, own)
        return between(centre + ops.clip(along, -half, half) * axis, _at(place), ACROSS)

    sine2 = axis[0] * axis[0] + axis[1] * axis[1]
    s = quotient(-(centre[0] * axis[0] + centre[1] * axis[1]), sine2, PARALLEL**2, 2.0 * half)
    t = centre[2] + s * axis[2]
    crosses = ops.logical_and(ops.abs(s) < half, ops.abs(t) < other)
    common, _ = _unit(ops.array([axis[1], -axis[0], 0.0]), sine2)
    crossing = between(centre + s * axis, _at(t), common)
    lower, upper, nearest = (pair.thick(first.radius, second.radius) for pair in (end(-1.0), end(1.0), crossing))
    return [lower, upper, nearest.counting(crosses)]


def _at(z: Numeric) -> Numeric:
    return ops.array([0.0, 0.0, z])


def _unit(vector: Numeric, squared: Numeric) -> tuple[Numeric, Numeric]:
    """A vector across z of this squared length, at length 1, and whether it is long enough."""
    long = squared > PARALLEL**2
    return ops.where(long, vector * ops.reciprocal(ops.sqrt(ops.where(long, squared, 1.0))), ACROSS), long
