"""From rest to rest along a polynomial of the fifth degree, the path of least jerk."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cosim import ops
from cosim.types import Array, PerJoint, param, params


@params
class Params:
    goal: PerJoint = param(unit="joint position", doc="where the joints go")
    duration: float = param(unit="s", above=0, doc="time of the motion")
    start: PerJoint | None = param(unit="joint position", default=None, doc="default: the initial positions")
    delay: float = param(unit="s", min=0, default=0.0, doc="time to wait before the motion")
    back: bool = param(default=False, doc="return to the start afterwards, in the same time")


def minimum_jerk(s: Any) -> tuple[Any, Any, Any]:
    """10s³ − 15s⁴ + 6s⁵ and its first two derivatives for s in [0, 1], resting at 0 and 1 outside.

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
    """start + (goal − start) · minimum_jerk, and the same way back when asked for."""

    start: Array  # (n,)
    goal: Array  # (n,)
    delay: float
    duration: float
    back: bool

    @property
    def end(self) -> float:
        return self.delay + self.duration * (2 if self.back else 1)

    def sample(self, t: Any) -> dict[str, Any]:
        s = (t - self.delay) / self.duration
        value, rate, bend = minimum_jerk(s)
        if self.back:
            returned = minimum_jerk(s - 1.0)
            value, rate, bend = value - returned[0], rate - returned[1], bend - returned[2]
        way = self.goal - self.start
        return {
            "position": self.start + way * value,
            "velocity": way / self.duration * rate,
            "acceleration": way / self.duration**2 * bend,
            "effort": np.zeros(len(way)),
        }


def load(params: Params, joints: tuple[str, ...], folder: Path, start: Array) -> Quintic:
    begin = start if params.start is None else params.start
    return Quintic(np.array(begin), np.array(params.goal), params.delay, params.duration, params.back)
