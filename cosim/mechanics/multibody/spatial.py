"""Spatial quantities: this module defines their order and their reference point.

A spatial vector is (linear, angular), six numbers along the axes of the body it belongs to, taken at the
origin of that body's frame. Accelerations refer to the material point at the origin, as an accelerometer plus gravity
would give them (not Featherstone's spatial acceleration): a body at rest in free fall has a = (g, 0), and the velocity
of the origin does not enter the dynamics.

A spatial inertia is the symmetric matrix [A Bᵀ; B C] of 3×3 blocks that maps an acceleration (a, α) to
a force and a moment, f = A a + Bᵀ α and n = B a + C α. A rigid body has A = m E, B = m c×, C = J about
the origin (M = diag(m E, J) at the centre of mass).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from cosim.core import ops
from cosim.core.types import Numeric


class SpatialVector(NamedTuple):
    """A spatial vector: acceleration (a, α), force and moment (f, n), or a hinge direction."""

    linear: Numeric
    angular: Numeric

    def __add__(self, other: SpatialVector) -> SpatialVector:  # type: ignore[override]
        return SpatialVector(self.linear + other.linear, self.angular + other.angular)

    def __sub__(self, other: SpatialVector) -> SpatialVector:
        return SpatialVector(self.linear - other.linear, self.angular - other.angular)

    def __mul__(self, factor: Numeric) -> SpatialVector:  # type: ignore[override]
        return SpatialVector(self.linear * factor, self.angular * factor)

    def dot(self, other: SpatialVector) -> Numeric:
        return self.linear @ other.linear + self.angular @ other.angular


class SpatialInertia(NamedTuple):
    """A spatial inertia by its blocks; `a` and `c` are symmetric."""

    a: Numeric
    b: Numeric
    c: Numeric

    def __add__(self, other: SpatialInertia) -> SpatialInertia:  # type: ignore[override]
        return SpatialInertia(*(x + y for x, y in zip(self, other, strict=True)))

    def __matmul__(self, v: SpatialVector) -> SpatialVector:
        return SpatialVector(self.a @ v.linear + self.b.T @ v.angular, self.b @ v.linear + self.c @ v.angular)

    def largest(self, direction: SpatialVector) -> float:
        """sᵀ M s in the worst case, for any direction s of the same lengths of its two parts; numbers only."""
        linear, angular = (float(np.linalg.norm(part)) for part in direction)
        sizes = (float(np.linalg.norm(block, 2)) for block in (self.a, self.b, self.c))
        a, b, c = sizes
        return a * linear**2 + 2.0 * b * linear * angular + c * angular**2

    def without(
        self, direction: SpatialVector, response: SpatialVector, gain: Numeric, keep: Numeric
    ) -> SpatialInertia:
        """The inertia that remains when the motion along `direction` is free: M − gain · (M s)(M s)ᵀ.

        `response` is M s and `gain` 1 / sᵀM s, or 0 where the motion is prescribed (`keep` is then 1, else 0).
        The result has (M − …) s = keep · M s; where s is a unit vector of the frame, that row is set explicitly,
        so that its zeros are exact and vanish from the generated code.
        """
        axis = _unit_axis(direction)
        a, b, c = self.less_outer(response * gain, response)
        if axis is None:
            return SpatialInertia(a, b, c)
        f, n = response
        if axis < 3:
            a[axis, :] = a[:, axis] = f * keep
            b[:, axis] = n * keep
        else:
            axis -= 3
            b[axis, :] = f * keep
            c[axis, :] = c[:, axis] = n * keep
        return SpatialInertia(a, b, c)

    def stiffened(self, force: SpatialVector, gain: Numeric) -> SpatialInertia:
        """M + gain · E Eᵀ: the inertia of a body that a constraint couples along E."""
        return self.less_outer(force * -gain, force)

    def less_outer(self, x: SpatialVector, y: SpatialVector) -> SpatialInertia:
        """M − x yᵀ, of parallel x and y."""
        return SpatialInertia(
            self.a - symmetric_outer(x.linear, y.linear),
            self.b - outer(x.angular, y.linear),
            self.c - symmetric_outer(x.angular, y.angular),
        )

    def rotated(self, rotation: Numeric) -> SpatialInertia:
        """The same inertia along the axes that `rotation` maps to."""
        return SpatialInertia(
            _symmetric_rotation(rotation, self.a), rotation @ self.b @ rotation.T, _symmetric_rotation(rotation, self.c)
        )

    def translated(self, d: Numeric) -> SpatialInertia:
        """The same inertia about a point from which the present origin has the position d."""
        across = ops.skew(d)
        b = self.b + across @ self.a
        return SpatialInertia(self.a, b, _symmetric(self.c, -self.b @ across, across @ b.T))


def _unit_axis(direction: SpatialVector) -> int | None:
    """The index of the unit vector that a constant direction is, if it is one."""
    numbers = [*direction.linear, *direction.angular]
    if any(map(ops.is_symbolic, numbers)):
        return None
    places = np.flatnonzero(numbers)
    return int(places[0]) if len(places) == 1 and numbers[places[0]] == 1.0 else None


def symmetric_matrix(entry: Callable[[int, int], Numeric], n: int = 3) -> Numeric:
    """The symmetric matrix (n, n) of entry(i, j), i ≥ j; each entry is computed once."""
    m = [[0.0] * n for _ in range(n)]
    for i in range(n):
        for j in range(i + 1):
            m[i][j] = m[j][i] = entry(i, j)
    return ops.array(m)


def symmetric_outer(x: Numeric, y: Numeric) -> Numeric:
    """x yᵀ of parallel vectors of any length, symmetric to the last bit."""
    return symmetric_matrix(lambda i, j: x[i] * y[j], len(x))


def outer(x: Numeric, y: Numeric) -> Numeric:
    return x[:, None] * y[None, :]


def _symmetric(*terms: Numeric) -> Numeric:
    """The symmetric sum of terms that are not all symmetric."""
    return symmetric_matrix(lambda i, j: ops.sum(t[i, j] for t in terms))


def _symmetric_rotation(rotation: Numeric, x: Numeric) -> Numeric:
    if not ops.is_symbolic(x) and np.array_equal(x, x[0, 0] * np.eye(3)):
        return x  # of a ball, or the mass of a body
    half = rotation @ x
    return symmetric_matrix(lambda i, j: half[i] @ rotation[j])


class Hinge(NamedTuple):
    """Relative motion in a joint: velocity Σ S_i v_i + drift, acceleration Σ S_i v̇_i + bias; along the child's axes."""

    columns: tuple[SpatialVector, ...]  # S_i
    drift: SpatialVector  # the part of the velocity that depends on time alone
    bias: SpatialVector  # the acceleration when v̇ = 0
