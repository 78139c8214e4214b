"""Rotations and their rotation vectors, on numbers."""

from __future__ import annotations

import numpy as np

from cosim.core.types import Array


def rotation_by(vector: Array) -> Array:
    """(3, 3) the rotation by a rotation vector (3,) [rad] (Rodrigues)."""
    angle = np.linalg.norm(vector)
    if angle == 0.0:
        return np.eye(3)
    x, y, z = vector / angle
    skew = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.eye(3) + np.sin(angle) * skew + (1.0 - np.cos(angle)) * skew @ skew


def rotation_vector(rotation: Array) -> Array:
    """(3,) the axis of a rotation (3, 3) times its angle in [0, π].

    From the quaternion, by its largest component (Shepperd 1978), which keeps its precision at all angles.
    """
    trace = np.trace(rotation)
    products = np.array([trace, *rotation.diagonal()])
    k = int(np.argmax(products))
    skew = np.array([rotation[2, 1] - rotation[1, 2], rotation[0, 2] - rotation[2, 0], rotation[1, 0] - rotation[0, 1]])
    if k == 0:
        scalar, vector = 1.0 + trace, skew
    else:
        symmetric = rotation + rotation.T
        vector = symmetric[k - 1].copy()
        vector[k - 1] = 1.0 + 2.0 * rotation[k - 1, k - 1] - trace
        scalar = skew[k - 1]
    if scalar < 0.0:
        scalar, vector = -scalar, -vector
    length = np.linalg.norm(vector)
    return vector * (2.0 * np.arctan2(length, scalar) / length if length > 0.0 else 0.0)
