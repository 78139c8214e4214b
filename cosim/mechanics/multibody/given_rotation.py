"""A rotation that is given as a function of time, through orientations at given times.

Between two orientations it turns by the shorter way. With slerp it does so at a constant velocity, which jumps at the
orientations. Squad (Shoemake 1987) keeps the velocity continuous: its inner points follow from the velocity at each
orientation, that of the parabola through it and its neighbours, so that the times need not be evenly spaced; both ends
are at rest. With rest it stops at every orientation, by the least jerk.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from cosim.core import ops
from cosim.core.compile.row_lookup import RowLookup
from cosim.core.compile.trace import Shape, column
from cosim.core.types import Array, Numeric
from cosim.mechanics.multibody.coordinates import ROTATION, multiplied
from cosim.mechanics.multibody.differentiate import Derived, along

Interpolation = Literal["slerp", "squad", "rest"]
HALF_TURN = math.pi * (1.0 - 1e-6)  # rad, from which on the shorter way is not determined
# below these squares series replace sin, cos and atan2, so long that their derivatives are exact too
SMALL_ANGLE, SMALL_SINE = 0.05, 1e-3
TERMS = 8
_SINE = [0.5 * (-0.25) ** k / math.factorial(2 * k + 1) for k in range(TERMS)]
_COSINE = [(-0.25) ** k / math.factorial(2 * k) for k in range(TERMS)]
_ARC_SINE = [2.0 * math.comb(2 * k, k) / (4**k * (2 * k + 1)) for k in range(TERMS)]


@dataclass(frozen=True, eq=False)
class GivenRotation:
    """A rotation as a function of time: the first orientation before the first time, the last one after the last."""

    times: Array  # (k,) s, increasing
    quaternions: Array  # (k, 4) of length 1; each with the sign that is nearer to the one before
    interpolation: Interpolation = "squad"

    @classmethod
    def through(
        cls, times: Sequence[float], quaternions: Sequence[Array], interpolation: Interpolation
    ) -> GivenRotation:
        """Raises ValueError for two successive orientations half a turn apart."""
        found = [np.asarray(quaternions[0], dtype=float)]
        for k, quaternion in enumerate(quaternions[1:], 1):
            q = np.asarray(quaternion, dtype=float)
            found.append(-q if q @ found[-1] < 0.0 else q)
            if float(np.linalg.norm(ROTATION.difference(found[-2], found[-1]))) > HALF_TURN:
                what = f"the orientations at {times[k - 1]:g} s and {times[k]:g} s are half a turn apart"
                raise ValueError(f"{what}, so the shorter way is not determined; give one between them")
        return cls(np.asarray(times, dtype=float), np.array(found), interpolation)

    @property
    def end(self) -> float:
        return float(self.times[-1])

    @property
    def breaks(self) -> Array:
        """Where the velocity, the acceleration or the jerk jumps."""
        return self.times

    def sample(self, t: Numeric) -> tuple[Numeric, Numeric, Numeric]:
        """(quaternion (4,), angular velocity (3,), its derivative (3,)), along the axes that it turns."""
        row = self._rows(t)
        quaternion, velocity, acceleration = self._derived(row, t - row[0])
        return quaternion, velocity, acceleration

    def rates(self, t: Numeric) -> tuple[Numeric, Numeric, Numeric]:
        """(quaternion, its first, its second derivative), (4,) each."""
        q, omega, alpha = self.sample(t)
        turned = 0.25 * (omega @ omega)
        return q, 0.5 * multiplied(q, [*omega, 0.0]), 0.5 * multiplied(q, [*alpha, 0.0]) - turned * q

    @cached_property
    def _rows(self) -> RowLookup:
        """By piece: when it begins, 1 / its duration, its quaternion, rotation vector φ to the next one; of squad also
        the first inner point and the rotation vector to the second."""
        ways = [np.asarray(ROTATION.difference(p, q), dtype=float) for p, q in self._pairs]
        inner = self._inner(ways) if self.interpolation == "squad" else [np.zeros(0)] * len(ways)
        first, last = (self._still(q) for q in (self.quaternions[0], self.quaternions[-1]))
        pieces = zip(self.times, np.diff(self.times), self.quaternions, ways, inner, strict=False)
        rows = [[t, 1.0 / T, *q, *way, *own] for t, T, q, way, own in pieces]
        begins = np.concatenate([[-np.inf], self.times])
        return RowLookup(begins, np.array([[0.0, 0.0, *first], *rows, [self.end, 0.0, *last]]), "given_rotation")

    @property
    def _pairs(self) -> list[tuple[Array, Array]]:
        return list(zip(self.quaternions[:-1], self.quaternions[1:], strict=True))

    def _still(self, q: Array) -> list[float]:
        squad = [*q, *np.zeros(3)] if self.interpolation == "squad" else []
        return [*q, *np.zeros(3), *squad]

    def _inner(self, ways: list[Array]) -> list[Array]:
        """Of each piece the first inner point, and the rotation vector to the second."""
        T = np.diff(self.times)
        velocities = [np.zeros(3)]
        for k in range(1, len(T)):
            before, after = ways[k - 1] / T[k - 1], ways[k] / T[k]
            velocities.append((before * T[k] + after * T[k - 1]) / (T[k - 1] + T[k]))
        velocities.append(np.zeros(3))
        found = []
        for k, (p, q) in enumerate(self._pairs):
            first = ROTATION.integrate(p, 0.5 * (velocities[k] * T[k] - ways[k]))
            second = ROTATION.integrate(q, 0.5 * (ways[k] - velocities[k + 1] * T[k]))
            # with its sign, though the other one may be nearer: the way between inner points ends at the second one
            back = [-first[0], -first[1], -first[2], first[3]]
            found.append(np.concatenate([first, _logarithm(multiplied(back, second))]))
        return found

    @cached_property
    def _derived(self) -> Derived:
        width = self._rows.rows.shape[1]

        def make(columns: list[Numeric], arrays: list[Numeric]) -> list[tuple[Numeric, Shape]]:
            import casadi

            time, one = columns[1], casadi.DM(1.0)
            q = self._turned(arrays[0], arrays[1])
            rate = along(column(q), [(time, one)])
            back = [-q[0], -q[1], -q[2], q[3]]
            omega = column(2.0 * multiplied(back, list(rate.elements()))[:3])
            return [(column(q), (4,)), (omega, (3,)), (along(omega, [(time, one)]), (3,))]

        return Derived("rotation", [(width,), ()], make)

    def _turned(self, row: Numeric, time: Numeric) -> Numeric:
        """The quaternion at a time from the begin of a piece."""
        s, q, way = time * row[1], row[2:6], row[6:9]
        if self.interpolation == "rest":
            s = s * s * s * (10.0 - s * (15.0 - 6.0 * s))
        outer = multiplied(q, _exponential(way * s))
        if self.interpolation != "squad":
            return outer
        inner = multiplied(row[9:13], _exponential(row[13:16] * s))
        back = [-outer[0], -outer[1], -outer[2], outer[3]]
        return multiplied(outer, _exponential(_logarithm(multiplied(back, inner)) * (2.0 * s * (1.0 - s))))


def _series(coefficients: Sequence[float], x: Numeric) -> Numeric:
    value = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        value = value * x + coefficient
    return value


def _exponential(phi: Numeric) -> Numeric:
    """The quaternion of a rotation vector."""
    square = phi @ phi
    small = square < SMALL_ANGLE
    angle = ops.sqrt(ops.where(small, 1.0, square))
    near = ops.where(small, square, 0.0)
    sine = ops.where(small, _series(_SINE, near), ops.sin(0.5 * angle) / angle)
    cosine = ops.where(small, _series(_COSINE, near), ops.cos(0.5 * angle))
    return ops.concatenate([phi * sine, ops.array([cosine])])


def _logarithm(q: Numeric) -> Numeric:
    """The rotation vector of a quaternion of length 1, of less than a whole turn."""
    vector, cosine = q[:3], q[3]
    square = vector @ vector
    small = ops.logical_and(square < SMALL_SINE, cosine > 0.0)
    sine = ops.sqrt(ops.where(small, 1.0, square))
    near = ops.where(small, square, 0.0)
    return vector * ops.where(small, _series(_ARC_SINE, near), 2.0 * ops.atan2(sine, cosine) / sine)
