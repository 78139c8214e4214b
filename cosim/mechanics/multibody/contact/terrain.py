"""Terrain: balls, capsules and points over a surface of triangles.

Each cell of the grid is two triangles, on both sides of its diagonal from the corner with the least x and y to the one
with the greatest. Beyond the grid the surface goes on with the heights of its edge.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import lru_cache, reduce

import numpy as np

from cosim.core import ops
from cosim.core.compile.row_lookup import RowLookup
from cosim.core.types import Numeric
from cosim.mechanics.multibody.contact.point_of_contact import (
    FAR,
    Pair,
    PointOfContact,
    between,
)
from cosim.mechanics.multibody.contact.segments import ends
from cosim.mechanics.multibody.contact.shapes import BallShape, CapsuleShape, ContactShape, TerrainShape

MOST_CELLS = 2.5  # radius of a ball, in cells


def fits(shape: ContactShape, other: ContactShape) -> bool:
    """Whether a shape with a radius is small enough beside the cells of the other shape, if that is terrain."""
    if not isinstance(other, TerrainShape) or not isinstance(shape, BallShape | CapsuleShape):
        return True
    return not ops.is_symbolic(shape.radius) and shape.radius <= MOST_CELLS * min(_cell(other))


def points_terrain(at: list[Numeric], terrain: TerrainShape) -> list[PointOfContact]:
    """Points (3,) and the planes of the triangles under them: near to the surface that is their distance."""
    found = []
    for point in at:
        normal, height = _under(point, terrain)
        found.append(Pair(point, normal, normal[2] * (point[2] - height)).thick())
    return found


def least_upright(terrain: TerrainShape) -> float:
    """The least upward component of a normal: planes of triangles are nearer than their heights by this factor."""
    (dx, dy), heights = _cell(terrain), terrain.heights
    rise_x, rise_y = (float(np.abs(np.diff(heights, axis=axis)).max()) for axis in (0, 1))
    return 1.0 / math.sqrt(1.0 + (rise_x / dx) ** 2 + (rise_y / dy) ** 2)


def normal_under(point: Numeric, terrain: TerrainShape) -> Numeric:
    """(3,) of the triangle under a point (3,)."""
    return _under(point, terrain)[0]


def ball_terrain(ball: BallShape, terrain: TerrainShape, rotation: Numeric, centre: Numeric) -> list[PointOfContact]:
    """The nearest point of the surface among the cells around the node nearest to the centre: all that a ball which
    touches can touch."""
    return [_nearest(centre, ball.radius, terrain).thick(ball.radius)]


def capsule_terrain(
    capsule: CapsuleShape, terrain: TerrainShape, rotation: Numeric, centre: Numeric
) -> list[PointOfContact]:
    """The balls at its ends and at its middle; what the terrain has between them is not felt."""
    balls = [*ends(capsule, rotation, centre), centre]
    return [_nearest(ball, capsule.radius, terrain).thick(capsule.radius) for ball in balls]


def _nearest(centre: Numeric, radius: float, terrain: TerrainShape) -> Pair:
    """A point and the surface among so many cells around the nearest node that nothing within the radius is missed."""
    cells = max(1, math.ceil(radius / min(_cell(terrain)) + 0.5))
    origin, nodes = _nodes(centre, cells, terrain)
    normal, height = _under(centre, terrain)
    side = ops.where(centre[2] < height, -1.0, 1.0)  # from below the surface the way out is the other one
    n, seen, found = 2 * cells + 1, centre - origin, []
    for i, j in itertools.product(range(n), range(n)):
        here = nodes[i][j]
        ahead = [nodes[k][m] for k, m in ((i + 1, j), (i + 1, j + 1), (i, j + 1)) if k < n and m < n]
        found += [_on_edge(seen, here, other) for other in ahead]
        if len(ahead) == 3:
            found += [_on_triangle(seen, here, ahead[k], ahead[k + 1]) for k in range(2)]
    _, place = reduce(_least, found)
    pair = between(centre, origin + place, side * normal)
    return Pair(centre, side * pair.normal, side * pair.distance)


_Candidate = tuple[Numeric, Numeric]  # squared distance () [m²] and place (3,)


def _least(one: _Candidate, other: _Candidate) -> _Candidate:
    nearer = one[0] <= other[0]
    return ops.where(nearer, one[0], other[0]), ops.where(nearer, one[1], other[1])


def _to(place: Numeric, centre: Numeric) -> Numeric:
    offset = centre - place
    return offset @ offset


def _on_edge(centre: Numeric, begin: Numeric, end: Numeric) -> _Candidate:
    along = end - begin
    place = begin + ops.clip(((centre - begin) @ along) / (along @ along), 0.0, 1.0) * along
    return _to(place, centre), place


def _on_triangle(centre: Numeric, a: Numeric, b: Numeric, c: Numeric) -> _Candidate:
    """The foot of the centre on the plane of a triangle, which is far away if it lies outside of the triangle."""
    one, other, offset = b - a, c - a, centre - a
    normal = ops.cross(one, other)
    squared = normal @ normal
    v = (ops.cross(offset, other) @ normal) / squared
    w = (ops.cross(one, offset) @ normal) / squared
    inside = ops.logical_and(ops.logical_and(v >= 0.0, w >= 0.0), v + w <= 1.0)
    place = a + v * one + w * other
    return ops.where(inside, _to(place, centre), FAR**2), place


def _under(point: Numeric, terrain: TerrainShape) -> tuple[Numeric, Numeric]:
    """The upward normal (3,) of the triangle under a point, and its height () [m] there."""
    (u, v), (dx, dy) = _places(point, terrain), _cell(terrain)
    i, j = ops.floor(u), ops.floor(v)
    (h00, h01), (h10, h11) = (_strip(terrain, 0, 1)(row, j) for row in (i, i + 1.0))
    past = v - j > u - i  # the diagonal: the triangle with the corner of greater y
    rise_x, rise_y = ops.where(past, h11 - h01, h10 - h00), ops.where(past, h01 - h00, h11 - h10)
    slope_x, slope_y = rise_x / dx, rise_y / dy
    length = ops.sqrt(1.0 + slope_x * slope_x + slope_y * slope_y)
    return ops.array([-slope_x, -slope_y, 1.0]) / length, h00 + rise_x * (u - i) + rise_y * (v - j)


def _nodes(centre: Numeric, cells: int, terrain: TerrainShape) -> tuple[Numeric, list[list[Numeric]]]:
    """The place (3,) of the node nearest to the centre on the plane z = 0, and from there the places (3,) of
    2 cells + 1 nodes along x and y around it."""
    (u, v), (dx, dy) = _places(centre, terrain), _cell(terrain)
    i, j = ops.floor(u + 0.5), ops.floor(v + 0.5)
    strip, around = _strip(terrain, -cells, cells), range(-cells, cells + 1)
    nodes = []
    for k in around:
        heights = strip(i + k, j)
        nodes.append([ops.array([k * dx, m * dy, heights[m + cells]]) for m in around])
    return ops.array([terrain.x[0] + i * dx, terrain.y[0] + j * dy, 0.0]), nodes


def _places(point: Numeric, terrain: TerrainShape) -> tuple[Numeric, Numeric]:
    """Of a point in the grid, in cells."""
    dx, dy = _cell(terrain)
    return (point[0] - terrain.x[0]) / dx, (point[1] - terrain.y[0]) / dy


def _cell(terrain: TerrainShape) -> tuple[float, float]:
    """Its size along x and y [m]."""
    x, y = terrain.x, terrain.y
    return float(x[-1] - x[0]) / (len(x) - 1), float(y[-1] - y[0]) / (len(y) - 1)


@lru_cache(maxsize=64)
def _strip(terrain: TerrainShape, first: int, last: int) -> Callable[[Numeric, Numeric], Numeric]:
    """The heights (last − first + 1,) [m] of the nodes (i, j + first) … (i, j + last)."""
    count, width = terrain.heights.shape
    beyond = max(-first, last)  # a strip this far outside of the grid has the height of the edge alone
    j = np.arange(-beyond, width + beyond)
    columns = np.clip(j[:, None] + np.arange(first, last + 1), 0, width - 1)
    rows = terrain.heights[:, columns].reshape(count * len(j), -1).astype(float)
    lookup = RowLookup(np.arange(float(len(rows))), rows, "terrain")

    def strip(i: Numeric, j: Numeric) -> Numeric:
        inner = ops.clip(j, -float(beyond), width - 1.0 + beyond) + beyond
        return lookup(ops.clip(i, 0.0, count - 1.0) * (width + 2 * beyond) + inner)

    return strip
