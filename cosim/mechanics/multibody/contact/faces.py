"""Two faces that lie on each other: the corners of the polygon in which they overlap.

The reference face is fixed and the incident face of the other box is clipped by its sides (Sutherland and Hodgman 1974;
each edge as in Liang and Barsky 1984), which leaves at most eight corners. Each has a place among twelve by what makes
it: an edge of the incident face begins or ends, at a corner of its own or at a side of the reference, or a corner of
the reference lies in the incident face. So a point keeps its place while the boxes move, and with it the state of its
springs. Its gap is that of its features: a corner and a face, or two edges.
"""

from __future__ import annotations

from functools import reduce
from typing import NamedTuple

import numpy as np

from cosim.core import ops
from cosim.core.types import Numeric
from cosim.mechanics.multibody.contact.boxes import CORNERS
from cosim.mechanics.multibody.contact.point_of_contact import (
    FAR,
    Pair,
    PointOfContact,
    basis,
    choose,
    quotient,
    signs,
)

PLACES = 12
# The reference is a little wider in clipping, relative, so that boxes of one size lie on each other while they rock;
# not so much that a point beyond its side is deeper by more than a part of 1e-9.
WIDEST, DEEPER = 1e-4, 1e-9
STEEP = 0.01  # sine of the angle below which two edges that cross are parallel
UP = np.array([0.0, 0.0, 1.0])


class Box(NamedTuple):
    """A box by its axes, the columns of (3, 3), its half size (3,) and centre (3,) [m]."""

    axes: Numeric
    half: Numeric
    centre: Numeric

    @property
    def corners(self) -> list[Numeric]:
        return [self.axes @ (sign * self.half) + self.centre for sign in CORNERS]


class Faces(NamedTuple):
    """A reference face and the box that lies on it. separation () [m]: of the two boxes along the normal; axes (3, 3):
    rows x, y and z, the normal; half (3,) and centre (3,) [m]: of the reference box along them; is_first: the reference
    is a face of the first box."""

    separation: Numeric
    axes: Numeric
    half: Numeric
    centre: Numeric
    incident: Box
    is_first: Numeric


class _Face(NamedTuple):
    """The incident face in the axes of the reference face: its centre, unit vectors along its edges, half of their
    lengths, and its normal, out of the box. (3,), () [m]"""

    centre: Numeric
    along: tuple[Numeric, Numeric]
    half: tuple[Numeric, Numeric]
    normal: Numeric


def polygon(faces: Faces) -> list[PointOfContact]:
    """The twelve places, in the axes in which the boxes are given."""
    face = _incident_face(faces)
    slope = ops.abs(face.normal[0]) + ops.abs(face.normal[1])
    wider = DEEPER / ops.maximum(slope, DEEPER / WIDEST)
    sides = (1.0 + wider) * faces.half[0], (1.0 + wider) * faces.half[1]
    clipped = [pair for edge in _edges(face) for pair in _clipped(*edge, sides)]
    places = [*clipped, *(_corner(sign, faces.half, face, wider) for sign in CORNERS if sign[2] > 0.0)]
    turn = ops.where(faces.is_first, -1.0, 1.0)
    points = []
    for pair, counts in places:
        middle = pair.at - 0.5 * pair.distance * pair.normal + faces.half[2] * UP
        normal = turn * (faces.axes.T @ pair.normal)
        point = PointOfContact(pair.distance, basis(normal), faces.axes.T @ middle + faces.centre)
        points.append(point.counting(counts))
    return points


def _incident_face(faces: Faces) -> _Face:
    """The face that looks at the reference face most."""
    box = faces.incident
    axes, centre = faces.axes @ box.axes, faces.axes @ (box.centre - faces.centre) - faces.half[2] * UP
    size = ops.abs(axes[2])
    third = ops.logical_and(size[2] >= size[0], size[2] >= size[1])
    second = size[1] >= size[0]

    def chosen(*of_axes: Numeric) -> Numeric:
        """Of the items for axes 0, 1 and 2."""
        return ops.where(third, of_axes[2], ops.where(second, of_axes[1], of_axes[0]))

    columns, half = axes.T, box.half
    normal = chosen(*(-signs(columns[k][2]) * columns[k] for k in range(3)))
    along = chosen(columns[1], columns[2], columns[0]), chosen(columns[2], columns[0], columns[1])
    lengths = chosen(half[1], half[2], half[0]), chosen(half[2], half[0], half[1])
    return _Face(centre + chosen(*half) * normal, along, lengths, normal)


def _edges(face: _Face) -> list[tuple[Numeric, Numeric, Numeric]]:
    """Around the face: begin (3,) [m], unit vector (3,), length () [m]."""
    (f, g), (a, b) = face.along, face.half
    return [
        (face.centre - a * f - b * g, f, 2.0 * a),
        (face.centre + a * f - b * g, g, 2.0 * b),
        (face.centre + a * f + b * g, -f, 2.0 * a),
        (face.centre - a * f + b * g, -g, 2.0 * b),
    ]


def _clipped(
    begin: Numeric, along: Numeric, length: Numeric, sides: tuple[Numeric, Numeric]
) -> list[tuple[Pair, Numeric]]:
    """Where an edge comes into the reference face, or begins in it, and where it leaves it; and whether it does."""
    enters, leaves = [], []
    for k, side in enumerate(sides):
        lies_in = ops.abs(begin[k]) <= side
        places = [
            quotient(sign * side - begin[k], along[k], 1e-9, ops.where(lies_in, sign * FAR, FAR))
            for sign in (-1.0, 1.0)
        ]
        enters.append(ops.minimum(*places))
        leaves.append(ops.maximum(*places))
    first, last = ops.maximum(*enters), ops.minimum(*leaves)
    enter, leave = ops.maximum(first, 0.0), ops.minimum(last, length)
    overlaps = leave > enter

    def place(s: Numeric, by_x: Numeric, crosses: Numeric) -> Pair:
        own = begin + s * along
        corner = Pair(own, UP, own[2])
        crossing, near = _crossing(own, along, by_x, sides)
        on_edge = ops.logical_and(s + near >= 0.0, s + near <= length)
        return choose(ops.logical_and(crosses, ops.logical_and(crossing[1], on_edge)), crossing[0], corner)

    # beyond the ends nothing is clipped
    at_enter, at_leave = ops.where(overlaps, enter, 0.0), ops.where(overlaps, leave, 0.0)
    return [
        (place(at_enter, enters[0] >= enters[1], first > 0.0), overlaps),
        (place(at_leave, leaves[0] <= leaves[1], last < length), ops.logical_and(overlaps, last < length)),
    ]


def _crossing(
    point: Numeric, along: Numeric, by_x: Numeric, sides: tuple[Numeric, Numeric]
) -> tuple[tuple[Pair, Numeric], Numeric]:
    """An edge through a point over a side of the reference face, and that side: their nearest points, whether they lie
    on the side and the edges are not parallel, and how far from the point along the edge [m].

    Across the side, the edge is a line with slope along z / v in a plane, and the side its origin.
    """
    v = ops.where(by_x, along[0], along[1])
    squared = v * v + along[2] * along[2]
    steep = ops.abs(v) > STEEP
    inverse = ops.reciprocal(ops.where(steep, squared, 1.0))
    shift = -along[2] * point[2] * inverse
    length = ops.sqrt(inverse)
    tilt, up = -along[2] * signs(v) * length, ops.abs(v) * length
    normal = ops.array([ops.where(by_x, tilt, 0.0), ops.where(by_x, 0.0, tilt), up])
    moved = point + shift * along
    on_side = ops.where(by_x, ops.abs(moved[1]) <= sides[1], ops.abs(moved[0]) <= sides[0])
    return (Pair(moved, normal, up * point[2]), ops.logical_and(steep, on_side)), shift


def _corner(sign: Numeric, half: Numeric, face: _Face, margin: Numeric) -> tuple[Pair, Numeric]:
    """A corner of the reference face over the incident face, and whether it lies in it, with a margin, as seen along
    both normals: else other features are nearer, or less deep."""
    corner = ops.array([sign[0] * half[0], sign[1] * half[1], 0.0])
    offset = corner - face.centre
    distance = offset @ face.normal
    upright = offset - (distance / face.normal[2]) * UP
    lies_in = [
        ops.abs(seen @ along) < (1.0 - margin) * size
        for seen in (offset, upright)
        for along, size in zip(face.along, face.half, strict=True)
    ]
    return Pair(corner - distance * face.normal, -face.normal, distance), reduce(ops.logical_and, lies_in)
