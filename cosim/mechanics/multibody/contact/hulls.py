"""Convex hulls: their corners, few enough for a tick, and those of them that may touch a plane.

A hull on a plane has as many points of contact as its faces need, at most `MOST_GROUPS`. Each is the lowest one of a
group of corners. Corners of a face are in different groups, so a hull that rests on a face has all of its corners for
points, of a face with more of them some that are far apart; and the lowest corner of all is always a point.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from cosim.core import ops
from cosim.core.types import Array, Numeric
from cosim.mechanics.multibody.contact.shapes import HullShape

if TYPE_CHECKING:
    from scipy.spatial import ConvexHull

MOST_CORNERS = 128
MOST_GROUPS = 8
AT_ONCE = 8  # corners that are added before the hull is measured again
# relative to the size of a hull
EXACT = 1e-6  # what corners may lie outside of others
FLAT = 1e-5  # distance of the corners of a face from its plane, and difference of normals
STEADY = 1e-10  # height that a corner must be below the one before it in its group, so that rounding chooses none
DIRECTIONS = np.array([d for d in itertools.product((-1.0, 0.0, 1.0), repeat=3) if any(d)])


def _convex_hull(points: Array) -> ConvexHull:
    """Raises ValueError where it has no volume."""
    from scipy.spatial import ConvexHull, QhullError  # slow to import, and of use for meshes alone

    try:
        return ConvexHull(points)
    except (QhullError, ValueError):
        raise ValueError("has no volume") from None


def hull_of(points: Array) -> tuple[HullShape, int, float]:
    """(the convex hull of points (n, 3) [m], how many corners it would have, how far these lie outside of it at most
    [m]). Raises ValueError where the hull has no volume."""
    corners = points[_convex_hull(points).vertices]
    size = float(np.ptp(corners, axis=0).max())
    chosen, outside = _spread_corners(corners, EXACT * size)
    return HullShape(corners[chosen], _groups(corners[chosen])), len(corners), outside


def lowest_corners(hull: HullShape, rotation: Numeric, centre: Numeric) -> list[Numeric]:
    """(3,) of each group, the one with the least z."""
    size = float(np.ptp(hull.corners, axis=0).max())

    def lower(one: tuple[Numeric, Numeric], other: tuple[Numeric, Numeric]) -> tuple[Numeric, Numeric]:
        below = other[0] < one[0] - STEADY * size
        return ops.where(below, other[0], one[0]), ops.where(below, other[1], one[1])

    found = []
    for group in hull.groups:
        heights = [(rotation[2] @ hull.corners[k], hull.corners[k]) for k in group]
        found.append(centre + rotation @ reduce(lower, heights)[1])
    return found


def _spread_corners(corners: Array, tolerance: float) -> tuple[list[int], float]:
    """(at most `MOST_CORNERS`, how far the others lie outside of their hull [m]): again and again those that are
    farthest outside."""
    if len(corners) <= MOST_CORNERS:
        return list(range(len(corners))), 0.0
    chosen = sorted({int(k) for k in (corners @ DIRECTIONS.T).argmax(axis=0)})
    while True:
        equations = _convex_hull(corners[chosen]).equations
        beyond = corners @ equations[:, :3].T + equations[:, 3]
        outside = beyond.max(axis=1)
        room = MOST_CORNERS - len(chosen)
        if outside.max() <= tolerance or room == 0:
            return chosen, max(float(outside.max()), 0.0)
        farthest = dict.fromkeys(int(k) for k in beyond.argmax(axis=0) if outside[k] > tolerance)
        chosen += sorted(farthest, key=lambda k: -outside[k])[: min(room, AT_ONCE)]


def _groups(corners: Array) -> tuple[tuple[int, ...], ...]:
    """Corners by group, those first that are spread over a face."""
    faces = sorted(_faces(corners), key=lambda face: -len(face))
    together: list[set[int]] = [set() for _ in corners]  # corners of the same faces that need other groups
    spread = [_far_apart(corners, face) for face in faces]
    for face in spread:
        for k in face:
            together[k] |= set(face)
    group_of: dict[int, int] = {}
    order = dict.fromkeys(k for face in spread for k in face)
    for k in [*order, *(k for k in range(len(corners)) if k not in order)]:
        taken = [group_of[j] for j in together[k] if j in group_of]
        free = [group for group in range(MOST_GROUPS) if group not in taken]
        group_of[k] = free[0] if free else min(range(MOST_GROUPS), key=taken.count)
    groups: list[list[int]] = [[] for _ in range(max(group_of.values()) + 1)]
    for k, group in group_of.items():
        groups[group].append(k)
    return tuple(map(tuple, groups))


def _faces(corners: Array) -> list[list[int]]:
    """The corners of each face."""
    size, planes = float(np.ptp(corners, axis=0).max()), []
    for equation in _convex_hull(corners).equations:
        if all(np.abs(equation[:3] - other[:3]).max() > FLAT for other in planes):
            planes.append(equation)
    return [np.flatnonzero(np.abs(corners @ e[:3] + e[3]) < FLAT * size).tolist() for e in planes]


def _far_apart(corners: Array, face: Sequence[int]) -> list[int]:
    """At most `MOST_GROUPS` corners of a face, each as far from those before it as can be."""
    if len(face) <= MOST_GROUPS:
        return list(face)
    places = corners[list(face)]
    from_middle = np.linalg.norm(places - places.mean(axis=0), axis=1)
    chosen = [int(from_middle.argmax())]
    while len(chosen) < MOST_GROUPS:
        nearest = np.linalg.norm(places[:, None] - places[chosen], axis=2).min(axis=1)
        chosen.append(int(nearest.argmax()))
    return [face[k] for k in chosen]
