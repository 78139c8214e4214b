"""From rest to rest along a polynomial of degree five: the minimum-jerk motion."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cosim.core import ops
from cosim.core.types import Array, Numeric, PerJoint, param, params
from cosim.plugins.trajectories._turns import Wrap, along, wrap_key


@params
class Params:
    goal: PerJoint = param(unit="joint position", doc="final positions")
    duration: float = param(unit="s", above=0, doc="time of the motion")
    start: PerJoint | None = param(unit="joint position", default=None, doc="default: the initial positions")
    delay: float = param(unit="s", min=0, default=0.0, doc="delay before the motion")
    back: bool = param(default=False, doc="return to the start afterwards, in the same time")
    wrap: Wrap = wrap_key()


def minimum_jerk(s: Numeric) -> tuple[Numeric, Numeric, Numeric]:
    """10s³ − 15s⁴ + 6s⁵ and its first two derivatives for s in [0, 1], constant outside.

    The straight path that minimises the integral of the squared jerk (Flash and Hogan, 1985).
    """
    s = ops.clip(s, 0.0, 1.0)
    rest = 1.0 - s
    return (
        s * s * s * (10.0 + s * (6.0 * s - 15.0)),
        30.0 * (s * rest) ** 2,
        60.0 * s * rest * (rest - s),
    )


@dataclass(frozen=True, eq=False)
class Quintic:
    """start + (goal − start) · minimum_jerk, and the reverse motion if `back` is set."""

    start: Array  # (n,)
    goal: Array  # (n,)
    delay: float
    duration: float
    back: bool

    @property
    def end(self) -> float:
        return self.delay + self.duration * (2 if self.back else 1)

    @property
    def breaks(self) -> Array:
        return self.delay + self.duration * np.arange(3 if self.back else 2)

    def sample(self, t: Numeric) -> dict[str, Numeric]:
        s = (t - self.delay) / self.duration
        value, rate, bend = minimum_jerk(s)
        if self.back:
            back = minimum_jerk(s - 1.0)
            value, rate, bend = value - back[0], rate - back[1], bend - back[2]
        distance = self.goal - self.start
        return {
            "position": self.start + distance * value,
            "velocity": distance / self.duration * rate,
            "acceleration": distance / self.duration**2 * bend,
            "effort": np.zeros(len(distance)),
        }


def load(params: Params, joints: tuple[str, ...], folder: Path, start: Array) -> Quintic:
    begin = np.array(start if params.start is None else params.start)
    _, goal = along(begin, [np.array(params.goal)], params.wrap)
    return Quintic(begin, goal, params.delay, params.duration, params.back)
