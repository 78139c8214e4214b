"""Checks beside those of limits: measurements that no healthy drive delivers, and states that must not be commanded.

Pure, (n,) each, SI. A measurement that is not a number passes `jumped` and `shaft_slips`; the guard stops
that of a joint.
"""

from __future__ import annotations

from typing import Any

import numpy as np

# s for which a joint may move at its velocity limit beyond the time between two measurements
JUMP_TIME = 0.005
# rad/s or m/s, and fraction of the velocity limit, by which a load motor may differ from its joint
SLIP, SLIP_FRACTION = 0.3, 0.1


def jumped(before: Any, position: Any, elapsed: Any, max_velocity: Any) -> Any:
    """Where a joint moved further in `elapsed` [s] than its velocity limit allows."""
    return np.abs(position - before) > max_velocity * (elapsed + JUMP_TIME)


def shaft_slips(load_velocity: Any, joint_velocity: Any, max_velocity: Any) -> Any:
    """Where a load motor does not turn with the joint that it loads."""
    return np.abs(load_velocity - joint_velocity) > SLIP + SLIP_FRACTION * max_velocity


def is_stale(age: Any, limit: Any) -> Any:
    """Where feedback is older than its limit [s]."""
    return age > limit


def starts_outside(position: Any, lower: Any, upper: Any) -> Any:
    """Where a joint is outside its position limits before it is commanded."""
    return np.logical_not((lower <= position) & (position <= upper))


def starts_moving(velocity: Any, max_velocity: Any) -> Any:
    """Where a joint is faster than its velocity limit before it is commanded."""
    return np.abs(velocity) > max_velocity
