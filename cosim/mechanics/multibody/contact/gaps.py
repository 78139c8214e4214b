"""The points of contact of any two shapes: which pairs there are, and their gaps, axes and places.

| first \\ second | ball | capsule | box | cylinder | hull | half-space | terrain |
|---|---|---|---|---|---|---|---|
| ball | 1 | 1 | 1 | 1 | – | 1 | 1 |
| capsule | | 3 | 3 | – | – | 2 | 3 |
| box | | | 13 | – | – | 8 | 8 |
| cylinder | | | | – | – | 6 | 6 |
| hull | | | | | – | 4 to 8 | – |

Other pairs have no closed form that is exact, and are refused. The least gap of a pair is the distance while the shapes
are apart or touch; of boxes also where one is in the other. Where a ball's centre or a capsule's axis is in the other
shape, the gap is that along the way out of the nearest face. Over terrain it is exact of balls that touch; farther
away it may be too large, since only the cells within the radius are seen, and corners and rims are points, which do not
feel a peak between them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from cosim.core import ops
from cosim.core.types import Numeric
from cosim.mechanics.multibody.contact.box_pairs import POINTS as POINTS_OF_BOXES
from cosim.mechanics.multibody.contact.box_pairs import boxes
from cosim.mechanics.multibody.contact.boxes import ball_box, capsule_box, corners
from cosim.mechanics.multibody.contact.cylinders import ball_cylinder, rim_points
from cosim.mechanics.multibody.contact.hulls import lowest_corners
from cosim.mechanics.multibody.contact.point_of_contact import Pair, PointOfContact, between
from cosim.mechanics.multibody.contact.segments import ball_capsule, capsules, ends
from cosim.mechanics.multibody.contact.shapes import (
    BallShape,
    BoxShape,
    CapsuleShape,
    ContactShape,
    CylinderShape,
    HalfSpace,
    HullShape,
    TerrainShape,
)
from cosim.mechanics.multibody.contact.terrain import (
    ball_terrain,
    capsule_terrain,
    fits,
    least_upright,
    normal_under,
    points_terrain,
)

Frame = tuple[Numeric, Numeric]  # rotation (3, 3) and position (3,) [m] in ground axes
UP = np.array([0.0, 0.0, 1.0])
MOST_POINTS = 64  # of all contacts of a mechanism


class _Meeting(NamedTuple):
    """number: of points, of a hull a function of it; points: of the first and second shape, rotation (3, 3) and
    position (3,) of the first one in the axes of the second."""

    number: int | Callable[..., int]
    points: Callable[..., list[PointOfContact]]


def _balls(first: BallShape, second: BallShape, rotation: Numeric, centre: Numeric) -> list[PointOfContact]:
    return [between(centre, np.zeros(3), UP).thick(first.radius, second.radius)]


def _on_plane(at: Numeric, radius: Numeric = 0.0) -> PointOfContact:
    return Pair(at, UP, at[2]).thick(radius)


def _ball_plane(ball: BallShape, plane: HalfSpace, rotation: Numeric, centre: Numeric) -> list[PointOfContact]:
    return [_on_plane(centre, ball.radius)]


def _capsule_plane(shape: CapsuleShape, plane: HalfSpace, rotation: Numeric, centre: Numeric) -> list[PointOfContact]:
    return [_on_plane(end, shape.radius) for end in ends(shape, rotation, centre)]


def _box_plane(shape: BoxShape, plane: HalfSpace, rotation: Numeric, centre: Numeric) -> list[PointOfContact]:
    return [_on_plane(corner) for corner in corners(shape, rotation, centre)]


def _cylinder_plane(shape: CylinderShape, plane: HalfSpace, rotation: Numeric, centre: Numeric) -> list[PointOfContact]:
    return [_on_plane(point) for point in rim_points(shape, rotation, centre, lambda _: UP)]


def _hull_plane(hull: HullShape, plane: HalfSpace, rotation: Numeric, centre: Numeric) -> list[PointOfContact]:
    return [_on_plane(corner) for corner in lowest_corners(hull, rotation, centre)]


def _box_terrain(shape: BoxShape, terrain: TerrainShape, rotation: Numeric, centre: Numeric) -> list[PointOfContact]:
    return points_terrain(corners(shape, rotation, centre), terrain)


def _cylinder_terrain(
    shape: CylinderShape, terrain: TerrainShape, rotation: Numeric, centre: Numeric
) -> list[PointOfContact]:
    return points_terrain(rim_points(shape, rotation, centre, lambda at: normal_under(at, terrain)), terrain)


_MEETINGS: dict[tuple[type, type], _Meeting] = {
    (BallShape, BallShape): _Meeting(1, _balls),
    (BallShape, CapsuleShape): _Meeting(1, ball_capsule),
    (BallShape, BoxShape): _Meeting(1, ball_box),
    (BallShape, CylinderShape): _Meeting(1, ball_cylinder),
    (BallShape, HalfSpace): _Meeting(1, _ball_plane),
    (BallShape, TerrainShape): _Meeting(1, ball_terrain),
    (CapsuleShape, CapsuleShape): _Meeting(3, capsules),
    (CapsuleShape, BoxShape): _Meeting(3, capsule_box),
    (CapsuleShape, HalfSpace): _Meeting(2, _capsule_plane),
    (CapsuleShape, TerrainShape): _Meeting(3, capsule_terrain),
    (BoxShape, BoxShape): _Meeting(POINTS_OF_BOXES, boxes),
    (BoxShape, HalfSpace): _Meeting(8, _box_plane),
    (BoxShape, TerrainShape): _Meeting(8, _box_terrain),
    (HullShape, HalfSpace): _Meeting(lambda hull: len(hull.groups), _hull_plane),
    (CylinderShape, HalfSpace): _Meeting(6, _cylinder_plane),
    (CylinderShape, TerrainShape): _Meeting(6, _cylinder_terrain),
}


def is_possible(first: ContactShape, second: ContactShape) -> bool:
    """Whether the pair has points of contact, in either order. A ball or capsule meets terrain only with a radius that
    is a number and no more than `terrain.MOST_CELLS` cells of its grid."""
    if not any(key in _MEETINGS for key in ((type(first), type(second)), (type(second), type(first)))):
        return False
    return fits(first, second) and fits(second, first)


def points_of(first: ContactShape, second: ContactShape) -> int:
    """The number of points of contact, whether they count at present or not. Raises KeyError unless `is_possible`."""
    (number, _), swapped = _meeting(first, second)
    return number(second if swapped else first) if callable(number) else number


def points(first: ContactShape, frame_first: Frame, second: ContactShape, frame_second: Frame) -> list[PointOfContact]:
    """The points of contact in ground axes, with normals from the second shape to the first. Those that do not count at
    present have the gap `FAR`. Raises KeyError unless `is_possible`."""
    meeting, swapped = _meeting(first, second)
    if swapped:
        return [point.reversed for point in points(second, frame_second, first, frame_first)]
    (rotation_first, at_first), (rotation, at) = frame_first, frame_second
    found = meeting.points(first, second, rotation.T @ rotation_first, rotation.T @ (at_first - at))
    return [point.within(rotation, at) for point in found]


def reach(first: ContactShape, frame_first: Frame, second: ContactShape, frame_second: Frame) -> Numeric:
    """() [m] no more than any gap of the pair, at the cost of a few operations: the gap of the balls around both."""
    if is_unbounded(first):
        return reach(second, frame_second, first, frame_first)
    offset = frame_first[1] - frame_second[1]
    height = frame_second[0][:, 2] @ offset - radius_around(first)
    if isinstance(second, HalfSpace):
        return height
    if isinstance(second, TerrainShape):
        above = height - second.heights.max()
        return ops.minimum(above, least_upright(second) * above)
    return between(offset, np.zeros(3), UP).distance - radius_around(first) - radius_around(second)


def is_unbounded(shape: ContactShape) -> bool:
    """Whether no ball is around it."""
    return isinstance(shape, HalfSpace | TerrainShape)


def is_cheap(first: ContactShape, second: ContactShape) -> bool:
    """Whether points cost about as little as `reach`: of two balls, and of all on a plane."""
    kinds = {type(first), type(second)}
    return HalfSpace in kinds or kinds == {BallShape}


def radius_around(shape: ContactShape) -> Numeric:
    """() [m] of the smallest ball about its origin that contains a shape."""
    match shape:
        case BallShape(radius):
            return radius
        case CapsuleShape(radius, length):
            return radius + 0.5 * length
        case CylinderShape(radius, length):
            return ops.sqrt(radius * radius + 0.25 * length * length)
        case BoxShape((x, y, z)):
            return 0.5 * ops.sqrt(x * x + y * y + z * z)
        case HullShape(corners):
            return float(np.linalg.norm(corners, axis=1).max())
    raise KeyError(type(shape))


def _meeting(first: ContactShape, second: ContactShape) -> tuple[_Meeting, bool]:
    """And whether it is that of the shapes in the other order."""
    if not is_possible(first, second):
        raise KeyError(f"no points of contact of {type(first).__name__} and {type(second).__name__}")
    found = _MEETINGS.get((type(first), type(second)))
    if found is not None:
        return found, False
    return _MEETINGS[type(second), type(first)], True
