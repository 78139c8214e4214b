"""Which pairs of shapes may touch, in how many points, and how shapes are called in words."""

from __future__ import annotations

from cosim.mechanics.multibody.contact.shapes import (
    BallShape,
    BoxShape,
    CapsuleShape,
    ContactShape,
    CylinderShape,
    HalfSpace,
    TerrainShape,
)

MOST_POINTS = 64  # of all contacts of a mechanism
WORDS: dict[type, str] = {
    BallShape: "sphere",
    CapsuleShape: "capsule",
    BoxShape: "box",
    CylinderShape: "cylinder",
    HalfSpace: "plane",
    TerrainShape: "terrain",
}
# points in which a shape lies on a plane
_POINTS: dict[type, int] = {BallShape: 1, CapsuleShape: 2, BoxShape: 8, CylinderShape: 6}
_GROUND = (HalfSpace, TerrainShape)
_IMPOSSIBLE = {
    frozenset({CylinderShape}),
    frozenset({CylinderShape, BoxShape}),
    frozenset({CylinderShape, CapsuleShape}),
    *(frozenset({first, second}) for first in _GROUND for second in _GROUND),
}


def is_possible(first: ContactShape, second: ContactShape) -> bool:
    """Whether there is a geometry for this pair of shapes, in any order."""
    return frozenset({type(first), type(second)}) not in _IMPOSSIBLE


def point_count(first: ContactShape, second: ContactShape) -> int:
    """The number of points in which a pair of shapes touches at most."""
    return min(_POINTS[type(shape)] for shape in (first, second) if not isinstance(shape, _GROUND))


def in_words(shape: ContactShape) -> str:
    """`sphere`, `box`, …; a sphere of radius 0 is a point."""
    return "point" if shape == BallShape(0.0) else WORDS[type(shape)]
