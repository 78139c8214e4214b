"""Two boxes: faces that lie on each other, edges that cross, and the nearest points where they are apart.

The gap is the distance between the boxes; where one is in the other, minus the least way along which they come apart
(the axes of Gottschalk, Lin and Manocha, OBBTree, 1996).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np

from cosim.core import ops
from cosim.core.types import Numeric
from cosim.mechanics.multibody.contact.boxes import CORNERS, ROUNDING, half_size, in_or_near
from cosim.mechanics.multibody.contact.faces import PLACES, Box, Faces, polygon
from cosim.mechanics.multibody.contact.point_of_contact import FAR, Pair, PointOfContact, choose, signs
from cosim.mechanics.multibody.contact.shapes import BoxShape

PREFERENCE = 1e-4  # of faces of the second box as the reference where faces lie flat, relative to the size of boxes
PARALLEL = 1e-12  # squared sine of the angle below which two edges have no normal
FLAT = 0.9999  # cosine between normals above which faces lie on each other, and their edges belong to them
POINTS = PLACES + 1


def boxes(first: BoxShape, second: BoxShape, rotation: Numeric, centre: Numeric) -> list[PointOfContact]:
    """The corners of the polygon in which two faces lie on each other, and the nearest points where they are others."""
    one = Box(rotation, half_size(first), centre)
    other = Box(np.eye(3), half_size(second), np.zeros(3))
    size = ops.sum([*one.half, *other.half])
    faces, edges = _reference(one, other, size), _edges(one, other)
    separation = ops.maximum(faces.separation, edges.pair.distance)
    apart = separation > 0.0
    better = edges.pair.distance > faces.separation + ROUNDING * size
    by_edges = ops.logical_and(better, ops.abs(edges.pair.normal @ faces.axes[2]) < FLAT)
    lie = ops.logical_or(apart, ops.logical_not(by_edges))
    # no point is deeper than the boxes are: beside edges that lie nearly flat a corner may seem so
    corners = [point._replace(gap=ops.maximum(point.gap, separation)) for point in polygon(faces)]
    points = [point.counting(lie) for point in corners]

    meeting = edges.pair._replace(distance=ops.where(edges.meet, edges.pair.distance, FAR))
    nearest = choose(apart, reduce(_nearer, [meeting, *_corners(one, other)]), edges.pair).thick()
    least = reduce(ops.minimum, [point.gap for point in points])
    nearer = nearest.gap < least - ROUNDING * size
    return [*points, nearest.counting(ops.where(apart, nearer, by_edges))]


def _nearer(one: Pair, other: Pair) -> Pair:
    return choose(one.distance <= other.distance, one, other)


def _corners(one: Box, other: Box) -> list[Pair]:
    """The corner of either box that is nearest to the other box, which it is not in."""
    near = in_or_near(_nearest_corner(one, other), other.half)
    back = in_or_near(_nearest_corner(other, one), one.half)
    normal = -(one.axes @ back.normal)
    at = one.axes @ back.at + one.centre + back.distance * normal
    return [near, Pair(at, normal, back.distance)]


def _nearest_corner(box: Box, met: Box) -> Numeric:
    """In the axes of the box that it meets (3,)."""
    axes, centre = met.axes.T @ box.axes, met.axes.T @ (box.centre - met.centre)
    found = []
    for sign in CORNERS:
        corner = axes @ (sign * box.half) + centre
        away = corner - ops.clip(corner, -met.half, met.half)
        found.append((-(away @ away), corner))
    return _best(found)[1]


def _best(found: Sequence[tuple[Numeric, ...]]) -> tuple[Numeric, ...]:
    """The one whose first item is the largest."""

    def better(one: tuple[Numeric, ...], other: tuple[Numeric, ...]) -> tuple[Numeric, ...]:
        return _chosen(other[0] > one[0], other, one)

    return reduce(better, found)


def _chosen(condition: Numeric, one: tuple[Numeric, ...], other: tuple[Numeric, ...]) -> tuple[Numeric, ...]:
    return tuple(ops.where(condition, a, b) for a, b in zip(one, other, strict=True))


class _Edges(NamedTuple):
    """The edges of two boxes that separate them best. meet: whether the nearest points lie on both."""

    pair: Pair
    meet: Numeric


def _edges(one: Box, other: Box) -> _Edges:
    """Of the nine pairs of directions; the distance is that along the normal of both."""
    found = []
    for (k, along_other), (j, own) in itertools.product(enumerate(np.eye(3)), repeat=2):
        normal = ops.cross(along_other, one.axes[:, j])
        squared = normal @ normal
        crossed = squared > PARALLEL
        normal = normal * ops.reciprocal(ops.sqrt(ops.where(crossed, squared, 1.0)))
        normal = signs(one.centre @ normal) * normal
        reach = ops.sum(ops.abs(normal[i]) * other.half[i] for i in range(3) if i != k)
        reach = reach + ops.sum(ops.abs(normal @ one.axes[:, i]) * one.half[i] for i in range(3) if i != j)
        found.append((ops.where(crossed, one.centre @ normal - reach, -FAR), normal, along_other, own))
    separation, normal, along_other, own = _best(found)
    along_one = one.axes @ own
    on_other = (1.0 - along_other) * signs(normal) * other.half
    on_one = one.centre - one.axes @ ((1.0 - own) * signs(one.axes.T @ normal) * one.half)
    # the nearest points of two straight lines
    offset, cosine = on_one - on_other, along_one @ along_other
    a, b = offset @ along_one, offset @ along_other
    sine2 = ops.maximum(1.0 - cosine * cosine, PARALLEL)
    s = (cosine * b - a) / sine2
    t = (b - cosine * a) / sine2
    meet = ops.logical_and(ops.abs(s) <= own @ one.half, ops.abs(t) <= along_other @ other.half)
    # parallel boxes have no edges that cross
    normal = ops.where(separation > -FAR, normal, np.array([0.0, 0.0, 1.0]))
    return _Edges(Pair(on_one + s * along_one, normal, separation), meet)


def _reference(one: Box, other: Box, size: Numeric) -> Faces:
    """The face that separates the boxes best; of two alike, the one of the second box."""

    def best(box: Box, met: Box) -> tuple[Numeric, ...]:
        """Separation, axes in rows with the normal last, half sizes along them."""
        way, turned = box.axes.T @ (met.centre - box.centre), box.axes.T @ met.axes
        found = []
        for k in range(3):
            i, j = (k + 1) % 3, (k + 2) % 3
            reach = ops.sum(ops.abs(turned[k, m]) * met.half[m] for m in range(3))
            rows = ops.array([box.axes[:, i], box.axes[:, j], signs(way[k]) * box.axes[:, k]])
            sizes = ops.array([box.half[i], box.half[j], box.half[k]])
            found.append((ops.abs(way[k]) - box.half[k] - reach, rows, sizes))
        return _best(found)

    of_one, of_other = best(one, other), best(other, one)
    flat = ops.abs(of_one[1][2] @ of_other[1][2]) > FLAT
    is_first = of_one[0] > of_other[0] + ops.where(flat, PREFERENCE, ROUNDING) * size
    separation, (axes, half) = ops.maximum(of_one[0], of_other[0]), _chosen(is_first, of_one[1:], of_other[1:])
    incident = Box(*_chosen(is_first, other, one))
    return Faces(separation, axes, half, ops.where(is_first, one.centre, other.centre), incident, is_first)
