"""Spatial quantities: the one place that fixes their order and their point of reference.

A spatial vector is (linear, angular), six numbers along the axes of the body it belongs to, taken at the
origin of that body's frame. Accelerations are those of the material point at the origin, as one would
measure them (not Featherstone's spatial acceleration), so a body at rest in free fall has
a = (g, 0) and the velocity of the origin never enters the dynamics.

A spatial inertia is the symmetric matrix [A Bᵀ; B C] of 3×3 blocks that maps an acceleration (a, α) to
a force and a moment, f = A a + Bᵀ α and n = B a + C α. A rigid body has A = m E, B = m c×, C = J about
the origin (theory: M = diag(m E, J) at the centre of mass).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cosim import ops


class Vector(NamedTuple):
    """A spatial vector: acceleration (a, α), force and moment (f, n), or a hinge direction."""

    linear: Any
    angular: Any

    def __add__(self, other: Any) -> Vector:
        return Vector(self.linear + other.linear, self.angular + other.angular)

    def __sub__(self, other: Vector) -> Vector:
        return Vector(self.linear - other.linear, self.angular - other.angular)

    def __mul__(self, factor: Any) -> Vector:  # type: ignore[override]
        return Vector(self.linear * factor, self.angular * factor)

    def dot(self, other: Vector) -> Any:
        return self.linear @ other.linear + self.angular @ other.angular


class Inertia(NamedTuple):
    """A spatial inertia by its blocks; `a` and `c` are symmetric."""

    a: Any
    b: Any
    c: Any

    def __add__(self, other: Any) -> Inertia:
        return Inertia(*(x + y for x, y in zip(self, other, strict=True)))

    def __matmul__(self, v: Vector) -> Vector:
        return Vector(self.a @ v.linear + self.b.T @ v.angular, self.b @ v.linear + self.c @ v.angular)

    def without(self, direction: Vector, response: Vector, gain: Any, keep: Any) -> Inertia:
        """The inertia that is left when the motion along `direction` gives way: M − gain · (M s)(M s)ᵀ.

        `response` is M s and `gain` 1 / sᵀM s, or 0 where the direction is held (`keep` is then 1, else 0).
        What is left has (M − …) s = keep · M s; where s is a unit vector of the frame that row is written down
        as such, so that its zeros are exact and vanish when the code is generated.
        """
        f, n = response
        axis = _unit_axis(direction)
        scaled = Vector(f * gain, n * gain)
        a = self.a - _symmetric_outer(scaled.linear, f)
        b = self.b - _outer(scaled.angular, f)
        c = self.c - _symmetric_outer(scaled.angular, n)
        if axis is None:
            return Inertia(a, b, c)
        if axis < 3:
            a[axis, :] = a[:, axis] = f * keep
            b[:, axis] = n * keep
        else:
            axis -= 3
            b[axis, :] = f * keep
            c[axis, :] = c[:, axis] = n * keep
        return Inertia(a, b, c)

    def stiffened(self, force: Vector, gain: Any) -> Inertia:
        """M + gain · E Eᵀ: what resists as well once a constraint ties the body along E."""
        f, n = force
        scaled = Vector(f * gain, n * gain)
        return Inertia(
            self.a + _symmetric_outer(scaled.linear, f),
            self.b + _outer(scaled.angular, f),
            self.c + _symmetric_outer(scaled.angular, n),
        )

    def turned(self, rotation: Any) -> Inertia:
        """The same inertia along the axes that `rotation` leads to."""
        return Inertia(
            _symmetric_turn(rotation, self.a), rotation @ self.b @ rotation.T, _symmetric_turn(rotation, self.c)
        )

    def shifted(self, d: Any) -> Inertia:
        """The same inertia taken at a point from which the present origin is seen at d."""
        across = ops.skew(d)
        b = self.b + across @ self.a
        return Inertia(self.a, b, _symmetric(self.c, -self.b @ across, across @ b.T))


def _unit_axis(direction: Vector) -> int | None:
    """Which of the six unit vectors a constant direction is."""
    numbers = [*direction.linear, *direction.angular]
    if any(map(ops.is_symbolic, numbers)):
        return None
    places = np.flatnonzero(numbers)
    return int(places[0]) if len(places) == 1 and numbers[places[0]] == 1.0 else None


_LOWER = [(i, j) for i in range(3) for j in range(i + 1)]


def _mirrored(entry: Any) -> Any:
    """The symmetric matrix with the given function of (i, j), i ≥ j: each entry is computed once."""
    m = [[0.0] * 3 for _ in range(3)]
    for i, j in _LOWER:
        m[i][j] = m[j][i] = entry(i, j)
    return ops.array(m)


def _symmetric_outer(x: Any, y: Any) -> Any:
    return _mirrored(lambda i, j: x[i] * y[j])


def _outer(x: Any, y: Any) -> Any:
    return x[:, None] * y[None, :]


def _symmetric(*terms: Any) -> Any:
    """The sum of terms that is symmetric although not every term is."""
    return _mirrored(lambda i, j: ops.total(t[i, j] for t in terms))


def _symmetric_turn(rotation: Any, x: Any) -> Any:
    half = rotation @ x
    return _mirrored(lambda i, j: half[i] @ rotation[j])


class Hinge(NamedTuple):
    columns: tuple[Vector, ...]
    drift: Vector
    bias: Vector
