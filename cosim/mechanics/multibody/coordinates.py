"""Spaces of coordinates: numbers, rotations, rigid motions.

Coordinates q (nq,) and velocities v (nv,) of a joint differ where rotations are unit quaternions (x, y, z, w).
Each space has pure functions of numbers or symbols: `rate` gives q̇ from v, `integrate` the coordinates reached
from q with a constant velocity whose time integral is d, `difference` the d from one configuration to another.
Velocities of rotations and rigid motions are along the moving axes, (linear, angular).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cosim.core import ops
from cosim.core.types import Numeric

# below this squared angle, series replace sin and cos; the omitted terms are below rounding
SMALL_SQUARE = 1e-6


class TurningAxes(NamedTuple):
    """The axes of velocities that are along moving axes, which these velocities turn."""

    transport: Callable[[Numeric], Numeric]  # v -> the part −ω × v of v̇ (nv,), which is there without acceleration
    turned: Callable[[Numeric, Numeric], Numeric]  # (v, d) -> v (nv,) along the axes after a displacement d (nv,)


@dataclass(frozen=True, eq=False)
class Space:
    """A space of coordinates as the functions that belong to it."""

    nq: int
    nv: int
    neutral: np.ndarray  # (nq,)
    rate: Callable[[Numeric, Numeric], Numeric]  # (q, v) -> q̇ (nq,)
    integrate: Callable[[Numeric, Numeric], Numeric]  # (q, d) -> (nq,)
    difference: Callable[[Numeric, Numeric], Numeric]  # (q0, q1) -> d (nv,) with q1 = integrate(q0, d)
    offset: Callable[[Numeric, Numeric], Numeric]  # (q0, q1) -> (nv,) at q1: d/dt |offset|²/2 = offset · v
    chart: Callable[[Numeric], Numeric]  # q -> (nv,), a rotation as its rotation vector
    of_chart: Callable[[Numeric], Numeric]  # (nv,) -> q, the inverse of chart
    normalised: Callable[[Numeric], Numeric]  # q -> q with quaternions of length 1
    axes: TurningAxes | None = None  # of the velocities, None where they are along axes that their motion does not turn


def numbers(n: int) -> Space:
    """The space of n coordinates whose rates are the velocities."""

    def itself(q: Numeric) -> Numeric:
        return q

    def apart(q0: Numeric, q1: Numeric) -> Numeric:
        return q1 - q0

    return Space(n, n, np.zeros(n), lambda q, v: v, lambda q, d: q + d, apart, apart, itself, itself, itself)


# --- quaternions ---


def rotation_of(q: Numeric) -> Numeric:
    """The rotation (3, 3) of a quaternion (x, y, z, w) of any length but 0."""
    x, y, z, w = q
    s = 2.0 / (x * x + y * y + z * z + w * w)
    return ops.array(
        [
            [1.0 - s * (y * y + z * z), s * (x * y - z * w), s * (x * z + y * w)],
            [s * (x * y + z * w), 1.0 - s * (x * x + z * z), s * (y * z - x * w)],
            [s * (x * z - y * w), s * (y * z + x * w), 1.0 - s * (x * x + y * y)],
        ]
    )


def multiplied(p: Numeric, q: Numeric) -> Numeric:
    """p ⊗ q: the rotation q followed by p, both in fixed axes."""
    x, y, z, w = p
    a, b, c, d = q
    return ops.array(
        [
            w * a + x * d + y * c - z * b,
            w * b - x * c + y * d + z * a,
            w * c + x * b - y * a + z * d,
            w * d - x * a - y * b - z * c,
        ]
    )


def _of_unit_length(q: Numeric) -> Numeric:
    return q / ops.sqrt(q @ q)


def _rotating(q: Numeric, omega: Numeric) -> Numeric:
    """q̇ = ½ q ⊗ ω."""
    return 0.5 * multiplied(q, [*omega, 0.0])


def _half_angle(square: Numeric) -> tuple[Numeric, Numeric]:
    """(sin(θ/2)/θ, cos(θ/2)) of θ²."""
    small = square < SMALL_SQUARE
    angle = ops.sqrt(ops.where(small, 1.0, square))
    sine = ops.where(small, 0.5 - square / 48.0, ops.sin(0.5 * angle) / angle)
    return sine, ops.where(small, 1.0 - square / 8.0, ops.cos(0.5 * angle))


def _rotated(q: Numeric, d: Numeric) -> Numeric:
    sine, cosine = _half_angle(d @ d)
    return _of_unit_length(multiplied(q, [*(d * sine), cosine]))


def _rotation_between(q0: Numeric, q1: Numeric) -> Numeric:
    """The rotation vector of the shorter rotation from q0 to q1, along the axes of q0."""
    x, y, z, w = q0
    *vector, cosine = multiplied([-x, -y, -z, w], q1)
    vector = ops.array(vector)
    vector = ops.where(cosine < 0.0, -vector, vector)
    square = vector @ vector
    small = square < SMALL_SQUARE
    sine = ops.sqrt(ops.where(small, 1.0, square))
    return vector * ops.where(small, 2.0 + square / 3.0, 2.0 * ops.atan2(sine, ops.abs(cosine)) / sine)


def by_inverse_left_jacobian(phi: Numeric, u: Numeric) -> Numeric:
    """J⁻¹(φ) u (3,), J the left Jacobian of the rotations: the rate of the rotation vector φ is J⁻¹(φ) ω for a velocity
    ω along fixed axes, and J⁻ᵀ(φ) ω along the axes that it turns. |φ| < 2π."""
    square = phi @ phi
    small = square < SMALL_SQUARE
    sine, cosine = _half_angle(square)
    twice = ops.where(small, 1.0 / 12.0 + square / 720.0, (1.0 - 0.5 * cosine / sine) / ops.where(small, 1.0, square))
    once = ops.cross(phi, u)
    return u - 0.5 * once + twice * ops.cross(phi, once)


def quaternion_of(rotation: Numeric) -> Numeric:
    """A quaternion (x, y, z, w) of a rotation (3, 3), of a length from 1 to 4: the components times four of their
    largest one (Shepperd 1978), so that no angle loses precision."""
    xx, yy, zz = rotation[0, 0], rotation[1, 1], rotation[2, 2]
    x, y, z = (rotation[j, i] - rotation[i, j] for i, j in ((1, 2), (2, 0), (0, 1)))
    xy, yz, zx = (rotation[j, i] + rotation[i, j] for i, j in ((0, 1), (1, 2), (2, 0)))
    found = ops.array([x, y, z, 1.0 + xx + yy + zz])
    largest = found[3]
    rows = [1.0 + xx - yy - zz, xy, zx, x], [xy, 1.0 - xx + yy - zz, yz, y], [zx, yz, 1.0 - xx - yy + zz, z]
    for k, row in enumerate(rows):
        larger = row[k] > largest
        found, largest = ops.where(larger, ops.array(row), found), ops.where(larger, row[k], largest)
    return found


def _back_turned(vector: Numeric, d: Numeric) -> Numeric:
    """The vector (3,) along axes that a step with a constant rate has turned: q + ½ q ⊗ d is Cayley's rotation, whose
    tangent of half the angle is |d|/2."""
    half = 0.5 * d
    scale = 2.0 / (1.0 + half @ half)
    return vector - scale * ops.cross(half, vector - ops.cross(half, vector))


_IDENTITY = np.array([0.0, 0.0, 0.0, 1.0])


def _rotation_vector(q: Numeric) -> Numeric:
    return _rotation_between(_IDENTITY, q)


def _of_rotation_vector(d: Numeric) -> Numeric:
    return _rotated(_IDENTITY, d)


ROTATION = Space(
    4,
    3,
    _IDENTITY,
    _rotating,
    _rotated,
    _rotation_between,
    _rotation_between,
    _rotation_vector,
    _of_rotation_vector,
    _of_unit_length,
    TurningAxes(lambda v: np.zeros(3), _back_turned),
)


# --- rigid motions: (position, quaternion) ---


def _translation_factors(d: Numeric) -> tuple[Numeric, Numeric]:
    """(1 − cos θ)/θ² and (θ − sin θ)/θ³ of a rotation vector."""
    square = d @ d
    small = square < SMALL_SQUARE
    safe = ops.where(small, 1.0, square)
    angle = ops.sqrt(safe)
    half, _ = _half_angle(square)
    return 2.0 * half * half, ops.where(small, 1.0 / 6.0 - square / 120.0, (angle - ops.sin(angle)) / (safe * angle))


def _moved(q: Numeric, d: Numeric) -> Numeric:
    linear, angular = d[:3], d[3:]
    a, b = _translation_factors(angular)
    once = ops.cross(angular, linear)
    path = linear + a * once + b * ops.cross(angular, once)
    return ops.concatenate([q[:3] + rotation_of(q[3:]) @ path, _rotated(q[3:], angular)])


def _motion_between(q0: Numeric, q1: Numeric) -> Numeric:
    angular = _rotation_between(q0[3:], q1[3:])
    path = rotation_of(q0[3:]).T @ (q1[:3] - q0[:3])
    return ops.concatenate([by_inverse_left_jacobian(angular, path), angular])


def _motion_offset(q0: Numeric, q1: Numeric) -> Numeric:
    """(translation, rotation vector): its length takes the distance of the origins, not along a screw motion."""
    return ops.concatenate([rotation_of(q1[3:]).T @ (q1[:3] - q0[:3]), _rotation_between(q0[3:], q1[3:])])


def _moving(q: Numeric, v: Numeric) -> Numeric:
    return ops.concatenate([rotation_of(q[3:]) @ v[:3], _rotating(q[3:], v[3:])])


MOTION = Space(
    7,
    6,
    np.concatenate([np.zeros(3), _IDENTITY]),
    _moving,
    _moved,
    _motion_between,
    _motion_offset,
    lambda q: ops.concatenate([q[:3], _rotation_vector(q[3:])]),
    lambda d: ops.concatenate([d[:3], _of_rotation_vector(d[3:])]),
    lambda q: ops.concatenate([q[:3], _of_unit_length(q[3:])]),
    TurningAxes(
        lambda v: ops.concatenate([ops.cross(v[:3], v[3:]), np.zeros(3)]),
        lambda v, d: ops.concatenate([_back_turned(v[:3], d[3:]), _back_turned(v[3:], d[3:])]),
    ),
)
