"""How a joint is wired to its drive: direction, gear ratio and zero, and the conversions that follow from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from cosim.types import Array, param


@dataclass(frozen=True, kw_only=True)  # families add fields that must be given
class JointParams:
    """What every family knows of a joint; families add the address of the drive and what else it has."""

    direction: Literal[1, -1] = param(default=1, doc="-1: the drive counts against the joint")
    ratio: float = param(unit="joint ratio", above=0, default=1.0, doc="rad of the drive per rad or m of the joint")
    zero: float = param(unit="joint position", default=0.0, doc="position of the joint where the drive shows 0")

    @property
    def address(self) -> int:
        """The number of the drive, unique on its connection: the value of `key`."""
        return getattr(self, self.key)

    @property
    def key(self) -> str:
        """The key that holds the address, for errors."""
        return "id"


class Units:
    """Between n joints (SI, rad or m) and their drives (rad, rad/s, N·m), elementwise on arrays (n,) or by joint.

    position_drive = direction · ratio · (position_joint − zero); efforts go by the inverse ratio, so power is the same.
    """

    def __init__(self, wiring: Sequence[JointParams]) -> None:
        self.scale = np.array([w.direction * w.ratio for w in wiring], dtype=float)
        self.zero = np.array([w.zero for w in wiring], dtype=float)
        self.square = self.scale * self.scale

    def drive_position(self, position: Array) -> Array:
        return self.scale * (position - self.zero)

    def drive_velocity(self, velocity: Array) -> Array:
        return self.scale * velocity

    def drive_effort(self, effort: Array) -> Array:
        return effort / self.scale

    def drive_gain(self, gain: Array) -> Array:
        """kp or kd of the joint as those of the drive."""
        return gain / self.square

    def joint_position(self, position: Array) -> Array:
        return position / self.scale + self.zero

    def joint_velocity(self, velocity: Array) -> Array:
        return velocity / self.scale

    def joint_effort(self, effort: Array) -> Array:
        return effort * self.scale
