"""Frames in the notation of mechanism files: an origin and roll, pitch, yaw."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from cosim.mechanics.multibody.mechanism import Pose

_EXACT = 1e-15  # rounding error of sin and cos of a right angle


def pose_of(xyz: Sequence[float], rpy: Sequence[float]) -> Pose:
    """The frame at `xyz` (3,) [m] rotated by roll, pitch, yaw (3,) [rad] about the fixed x, y, z in turn.

    R = Rz(yaw) Ry(pitch) Rx(roll), the convention of URDF. Right angles give exact zeros and ones, so
    that terms with them vanish from the generated code.
    """
    (cr, sr), (cp, sp), (cy, sy) = ((_exact(math.cos(a)), _exact(math.sin(a))) for a in rpy)
    rotation = np.array(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )
    return Pose(rotation + 0.0, np.array(xyz, dtype=float))  # + 0.0 turns -0 into 0


def _exact(value: float) -> float:
    return 0.0 if abs(value) < _EXACT else value
