"""From rest to rest with bounded velocity and acceleration; all joints arrive at the same time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from pathlib import Path

import numpy as np

from cosim.core import ops
from cosim.core.types import Array, Numeric, PerJoint, param, params
from cosim.plugins.trajectories._turns import Wrap, along, wrap_key


@params
class Params:
    goal: PerJoint = param(unit="joint position", doc="final positions")
    max_velocity: PerJoint = param(unit="joint velocity", above=0, doc="never exceeded")
    max_acceleration: PerJoint = param(unit="joint acceleration", above=0, doc="never exceeded")
    delay: float = param(unit="s", min=0, default=0.0, doc="delay before the motion")
    wrap: Wrap = wrap_key()


@dataclass(frozen=True, eq=False)
class Trapezoidal:
    """start + distance · h(s), s in [0, 1] the time since the delay over the duration of the slowest joint.

    h' is a trapezoid of area 1: it rises during `ramp`, stays at 1 / (1 − ramp), falls during `ramp`.
    With ramp = 1/2 it is a triangle, the profile of a distance too short to reach the maximum velocity.
    """

    start: Array  # (n,)
    distance: Array  # (n,)
    ramp: Array  # (n,), in (0, 1/2]
    delay: float
    duration: Numeric

    @property
    def end(self) -> Numeric:
        return self.delay + self.duration

    @property
    def breaks(self) -> Numeric:
        fractions = ops.concatenate([np.array([0.0, 1.0]), self.ramp, 1.0 - self.ramp])
        return self.delay + self.duration * fractions

    def sample(self, t: Numeric) -> dict[str, Numeric]:
        # with zero distances the duration is 0: any rate keeps the positions
        rate = _ratio(1.0, self.duration, 1.0)
        time = (t - self.delay) * rate
        s = ops.clip(time, 0.0, 1.0)
        rise = ops.clip(s / self.ramp, 0.0, 1.0)
        fall = ops.clip((s - (1.0 - self.ramp)) / self.ramp, 0.0, 1.0)
        top = 1.0 / (1.0 - self.ramp)
        slope = top / self.ramp
        bend = ops.where(time < 1.0 - self.ramp, 0.0, -slope)
        bend = ops.where(time < self.ramp, slope, bend)
        bend = ops.where(ops.logical_or(time < 0.0, time >= 1.0), 0.0, bend)
        return {
            "position": self.start + self.distance * top * (s + self.ramp * (0.5 * (rise**2 - fall**2) - rise)),
            "velocity": self.distance * rate * top * (rise - fall),
            "acceleration": self.distance * rate**2 * bend,
            "effort": np.zeros(len(self.distance)),
        }


def load(params: Params, joints: tuple[str, ...], folder: Path, start: Array) -> Trapezoidal:
    """Each joint's fastest profile, scaled in time to the duration of the slowest one.

    A joint that reaches its maximum velocity v takes |distance| / v + v / a, of which v / a is the rise; a shorter
    distance takes 2 √(|distance| / a), half of it rising (Biagiotti and Melchiorri, Trajectory Planning, §3.2).
    """
    _, goal = along(start, [ops.array(params.goal)], params.wrap)
    distance = goal - start
    velocity, acceleration = ops.array(params.max_velocity), ops.array(params.max_acceleration)
    rise = ops.minimum(velocity / acceleration, ops.sqrt(ops.abs(distance) / acceleration))
    top = rise * acceleration
    duration = _ratio(ops.abs(distance), top, 0.0) + rise
    longest = reduce(ops.maximum, duration, 0.0)
    return Trapezoidal(start, distance, _ratio(rise, duration, 0.5), params.delay, longest)


def _ratio(numerator: Numeric, denominator: Numeric, otherwise: float) -> Numeric:
    """Of numbers that are not negative; otherwise: the value where the denominator is 0."""
    moves = denominator > 0.0
    return ops.where(moves, numerator / ops.where(moves, denominator, 1.0), otherwise)
