"""A box and points or capsules near it."""

from __future__ import annotations

import itertools
from functools import reduce

import numpy as np

from cosim.core import ops
from cosim.core.types import Numeric
from cosim.mechanics.multibody.contact.point_of_contact import (
    Pair,
    PointOfContact,
    between,
    choose,
    quotient,
    signs,
)
from cosim.mechanics.multibody.contact.shapes import BallShape, BoxShape, CapsuleShape

CORNERS = np.array(list(itertools.product((-1.0, 1.0), repeat=3)))
ALONG_FACE = 0.01  # component of a normal across a pair of faces, below which contact reaches from one to the other
ROUNDING = 1e-10  # of lengths, relative to the size of the shapes


def half_size(box: BoxShape) -> Numeric:
    return 0.5 * ops.array(box.size)


def corners(box: BoxShape, rotation: Numeric, position: Numeric) -> list[Numeric]:
    """The eight corners (3,)."""
    half = half_size(box)
    return [position + rotation @ (corner * half) for corner in CORNERS]


def in_or_near(point: Numeric, half: Numeric) -> Pair:
    """A point (3,) and a box of half this size about the origin: the nearest point of the box from outside, the
    nearest face from inside."""
    side = signs(point)
    depth = half - ops.abs(point)
    first = ops.logical_and(depth[0] <= depth[1], depth[0] <= depth[2])
    second = ops.logical_and(ops.logical_not(first), depth[1] <= depth[2])
    third = ops.logical_not(ops.logical_or(first, second))
    face = ops.array([ops.where(chosen, side[k], 0.0) for k, chosen in enumerate((first, second, third))])
    least = ops.minimum(depth[0], ops.minimum(depth[1], depth[2]))
    return between(point, ops.clip(point, -half, half), face, inside=-least)


def ball_box(ball: BallShape, box: BoxShape, rotation: Numeric, centre: Numeric) -> list[PointOfContact]:
    return [in_or_near(centre, half_size(box)).thick(ball.radius)]


def capsule_box(capsule: CapsuleShape, box: BoxShape, rotation: Numeric, centre: Numeric) -> list[PointOfContact]:
    """The two ends of the stretch in which the capsule lies along the box, and the nearest point where it is another.

    The squared distance of c + s a from a box is convex in s, and its slope a straight line between the places where
    c + s a passes the planes of the faces: the nearest point is found exactly between two of them.
    """
    axis, half, size = rotation[:, 2], 0.5 * capsule.length, half_size(box)
    scale = half + size[0] + size[1] + size[2]

    def at(s: Numeric) -> Numeric:
        return centre + s * axis

    def slope(s: Numeric) -> Numeric:
        point = at(s)
        return (point - ops.clip(point, -size, size)) @ axis

    slabs = []  # (s, s) where each pair of faces is entered and left
    for k in range(3):
        planes = [quotient(side * size[k] - centre[k], axis[k], 1e-9, side * half) for side in (-1.0, 1.0)]
        slabs.append((ops.minimum(*planes), ops.maximum(*planes)))
    places = [-half, half, *(ops.clip(s, -half, half) for slab in slabs for s in slab)]
    slopes = [slope(s) for s in places]
    low = reduce(ops.maximum, [ops.where(d <= 0.0, s, -half) for s, d in zip(places, slopes, strict=True)])
    high = reduce(ops.minimum, [ops.where(d >= 0.0, s, half) for s, d in zip(places, slopes, strict=True)])
    rise = slope(high) - slope(low)
    between_both = low - slope(low) * quotient(high - low, rise, 0.0, 0.0)
    nearest_at = ops.where(low < high, ops.clip(between_both, low, high), 0.5 * (low + high))
    nearest = in_or_near(at(nearest_at), size)

    along = [ops.abs(nearest.normal[k]) < ALONG_FACE for k in range(3)]
    enters = reduce(ops.maximum, [ops.where(free, slab[0], -half) for free, slab in zip(along, slabs, strict=True)])
    leaves = reduce(ops.minimum, [ops.where(free, slab[1], half) for free, slab in zip(along, slabs, strict=True)])

    def end(s: Numeric, own: Numeric) -> PointOfContact:
        """Of the stretch: an end of the capsule, or the point nearest to the edge or corner of the box that it passes
        there. It counts if that is its nearest feature, as it is where the capsule lies along the box."""
        point = at(s)
        side, passes = signs(point) * size, ops.abs(point) >= size - 1e-9 * scale
        inside = reduce(ops.logical_and, ops.abs(point) <= size + 1e-9 * scale)
        # from inside the face that is the way out is passed as well
        beyond = [ops.logical_or(passes[k], ops.logical_and(inside, ops.logical_not(along[k]))) for k in range(3)]
        beyond = ops.array(beyond)
        fixed = ops.where(beyond, 1.0, 0.0)
        shift = quotient((fixed * (side - point)) @ axis, (fixed * axis) @ axis, 1e-12, 0.0)
        moved = at(ops.clip(s + shift, -half, half))
        passed = between(moved, ops.where(beyond, side, moved), nearest.normal)
        # from inside of the box the same line, the other way
        turn = signs(passed.normal @ nearest.normal)
        passed = Pair(passed.at, turn * passed.normal, turn * passed.distance)
        over = [ops.logical_or(beyond[k], ops.abs(moved[k]) <= size[k]) for k in range(3)]
        counts = ops.logical_or(own, reduce(ops.logical_and, over))
        return choose(own, in_or_near(point, size), passed).thick(capsule.radius).counting(counts)

    lower, upper = ops.minimum(enters, nearest_at), ops.maximum(leaves, nearest_at)
    points = [end(ops.maximum(lower, -half), lower <= -half), end(ops.minimum(upper, half), upper >= half)]
    points.append(nearest.thick(capsule.radius))
    nearer = points[2].gap < ops.minimum(points[0].gap, points[1].gap) - ROUNDING * scale
    return [points[0], points[1], points[2].counting(nearer)]
