"""Plausibility checks: measurements that no working drive delivers, and states in which a rig must not start.

Pure, (n,) each or of one joint, SI. A joint whose measurement is NaN passes, the guard stops it.
"""

from __future__ import annotations

import numpy as np

from cosim.control.limits import POSITION_TOLERANCE
from cosim.core import ops
from cosim.core.types import Numeric

# s, added to the time between two measurements, in which a joint may move at its velocity limit
JUMP_TIME = 0.005
# rad/s or m/s, and fraction of the velocity limit, by which a load motor may differ from its joint
SLIP, SLIP_FRACTION = 0.3, 0.1
# steps between two samples up to which their velocities are compared
TOGETHER_STEPS = 3.0


def jumped(before: Numeric, position: Numeric, elapsed: Numeric, max_velocity: Numeric) -> Numeric:
    """Where a joint moved further in the time `elapsed` [s] than its velocity limit allows."""
    return abs(position - before) > max_velocity * (elapsed + JUMP_TIME)


def sampled_together(age: Numeric, other: Numeric, step: float) -> Numeric:
    """Where two samples, by their ages [s] in a tick, are so close in time that their velocities can be compared."""
    return np.abs(age - other) <= TOGETHER_STEPS * step


def shaft_slips(load_velocity: Numeric, joint_velocity: Numeric, max_velocity: Numeric) -> Numeric:
    """Where a load motor does not rotate with the joint that it loads; a velocity that is NaN does not."""
    rotates = np.abs(load_velocity - joint_velocity) <= SLIP + SLIP_FRACTION * max_velocity
    return np.logical_not(rotates | np.isnan(joint_velocity))


def outstanding(interval: float, before: float) -> float:
    """What stands for the interval [s] to the predecessor of a sample, `interval` after it: samples that were queued
    while feedback was late come one after the other, and are as old as the first of them. before: the same of the
    predecessor."""
    return max(interval, before - interval)


def longest_span(interval: float, interval_before: float, step: float) -> float:
    """The longest time [s] between the measurements of two samples that were stamped `interval` apart, and the earlier
    one `interval_before` after its predecessor, see `outstanding`: a sample that comes late may be as old as its
    predecessor, but for a tick of length `step`."""
    return interval + max(interval_before - step, 0.0)


def is_stale(age: Numeric, limit: Numeric) -> Numeric:
    """Where the age of feedback [s] exceeds its limit."""
    return age > limit


def starts_outside(position: Numeric, lower: Numeric, upper: Numeric) -> Numeric:
    """Where a joint is outside its position limits at the start, as the guard sees it."""
    lowest, highest = lower - POSITION_TOLERANCE, upper + POSITION_TOLERANCE
    return ops.logical_not(ops.logical_and(lowest <= position, position <= highest))


def starts_moving(velocity: Numeric, max_velocity: Numeric) -> Numeric:
    """Where a joint exceeds its velocity limit at the start."""
    return ops.abs(velocity) > max_velocity
