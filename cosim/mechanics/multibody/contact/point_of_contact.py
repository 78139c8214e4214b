"""One point of contact of two shapes: its gap, its axes and its place; and how pairs of shapes make it.

Pairs are measured in the axes of the second shape. The tangents turn with it, so a spring of the contact that keeps its
state along them is at rest where both bodies turn together.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cosim.core import ops
from cosim.core.types import Array, Numeric

FAR = 1e6  # gap [m] of a point that does not count at present
SMALL = 1e-12  # distance [m] below which two points coincide and their direction is that of a fallback
# the tangents have no direction where the normal is opposite to this one, which no edge or face of a box has
POLE = np.array([2.0, 3.0, 6.0]) / 7.0
SMALLEST_ANGLE = 1e-8  # [rad] of a normal from there, up to which the tangents stand still


class PointOfContact(NamedTuple):
    """A place where two shapes may touch. gap () [m]: negative inside; axes (3, 3): rows t1, t2, n, right-handed, of
    which n points from the second shape to the first; position (3,) [m]: midway between the two surfaces."""

    gap: Numeric
    axes: Numeric
    position: Numeric

    def within(self, rotation: Numeric, position: Numeric) -> PointOfContact:
        """The same in ground axes, of a point in axes with this rotation (3, 3) and origin (3,)."""
        turned = ops.array(self.axes) @ rotation.T
        return PointOfContact(self.gap, turned, rotation @ self.position + position)

    @property
    def reversed(self) -> PointOfContact:
        """The point of the same shapes in the other order."""
        t1, t2, n = self.axes
        return PointOfContact(self.gap, ops.array([t1, -t2, -n]), self.position)

    def counting(self, condition: Numeric) -> PointOfContact:
        """The point where the condition holds, else one far away."""
        return self._replace(gap=ops.where(condition, self.gap, FAR))


class Pair(NamedTuple):
    """Two points of two skeletons (a centre, an axis, a surface) that are nearest to each other along a normal.

    at (3,): the point of the first shape; normal (3,): towards it; distance () [m]: along the normal, negative inside.
    """

    at: Numeric
    normal: Numeric
    distance: Numeric

    def thick(self, first: Numeric = 0.0, second: Numeric = 0.0) -> PointOfContact:
        """The point of contact of all points within these radii [m] of the skeletons."""
        gap = self.distance - first - second
        return PointOfContact(gap, basis(self.normal), self.at - (first + 0.5 * gap) * self.normal)


def choose(condition: Numeric, one: Pair, other: Pair) -> Pair:
    return Pair(*(ops.where(condition, a, b) for a, b in zip(one, other, strict=True)))


def basis(normal: Numeric) -> Numeric:
    """(3, 3) rows t1, t2, n, right-handed, of a unit normal (3,); t1 and t2 are x and y where the normal is z.

    Duff et al., Building an Orthonormal Basis, Revisited (JCGT 6(1), 2017) reflect x, y and z so that z meets n, and
    change the sign of z over a whole circle of normals. Here one reflection is left, with a pole that is no axis: the
    tangents are continuous but for one direction, −POLE. Within an angle a of it they are exact to 1e-16 / a.
    """
    half = normal + POLE
    half = ops.where(half @ half > SMALLEST_ANGLE**2, half, _TANGENTS_OF_POLE[0])
    scale = 2.0 * ops.reciprocal(half @ half)
    t1, t2 = (tangent - (scale * (half @ tangent)) * half for tangent in _TANGENTS_OF_POLE)
    return ops.array([t1, t2, normal])


def _tangents_of_pole() -> tuple[Array, Array]:
    """Of −POLE: the reflections of x and y, so that they are the tangents of z."""
    half = np.array([0.0, 0.0, 1.0]) + POLE
    reflection = np.eye(3) - 2.0 * np.outer(half, half) / (half @ half)
    return reflection[0], reflection[1]


_TANGENTS_OF_POLE = _tangents_of_pole()


def between(at: Numeric, of_second: Numeric, fallback: Numeric, inside: Numeric | None = None) -> Pair:
    """A point of the first skeleton and one of the second [m]. Where they coincide the normal is the fallback, and
    the distance 0 or `inside`."""
    difference = at - of_second
    squared = difference @ difference
    apart = squared > SMALL**2
    length = ops.sqrt(ops.where(apart, squared, 1.0))
    normal = ops.where(apart, difference * ops.reciprocal(length), fallback)
    return Pair(at, normal, ops.where(apart, length, fallback @ difference if inside is None else inside))


def signs(x: Numeric) -> Numeric:
    """−1 of negative elements, else 1."""
    return ops.where(x < 0.0, -1.0, 1.0)


def quotient(x: Numeric, y: Numeric, least: Numeric, otherwise: Numeric) -> Numeric:
    """x / y, or `otherwise` where |y| is below `least`."""
    enough = ops.abs(y) > least
    return ops.where(enough, x / ops.where(enough, y, 1.0), otherwise)
