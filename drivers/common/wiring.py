"""How a joint is wired to its drive: direction, gear ratio and zero, and the conversions that follow from them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from cosim.core.types import param
from cosim.core.units import TURN


@dataclass(frozen=True, kw_only=True)  # families add fields that must be given
class JointParams:
    """What every family knows of a joint; families add the address of the drive and what else it has."""

    direction: Literal[1, -1] = param(default=1, doc="-1: the drive counts against the joint")
    ratio: float = param(unit="joint ratio", above=0, default=1.0, doc="rad of the drive per rad or m of the joint")
    zero: float = param(unit="joint position", default=0.0, doc="position of the joint where the drive shows 0")
    turns: Literal["kept"] | None = param(
        default=None, doc="kept: the drive keeps whole turns without power, or is homed at every power-on"
    )

    @property
    def homed(self) -> bool:
        """Whether the drive is homed before it is enabled: its position means nothing before."""
        return False

    @property
    def address(self) -> int:
        """The number of the drive, unique on its connection: the value of `key`."""
        return getattr(self, self.key)

    @property
    def key(self) -> str:
        """The key that holds the address, for errors."""
        return "id"


class Units:
    """Between n joints (SI, rad or m) and their drives (rad, rad/s, N·m); (n,) numbers in, (n,) out.

    In lists: for the few joints of a driver Python's own numbers are several times faster than arrays.

    position_drive = direction · ratio · (position_joint − zero); efforts go by the inverse ratio, so power is the same.
    """

    def __init__(self, wiring: Sequence[JointParams]) -> None:
        self.scale = [float(w.direction * w.ratio) for w in wiring]
        self._own_zero = [float(w.zero) for w in wiring]
        self.turns, self.zero = [0] * len(wiring), self._own_zero.copy()

    def add_turns(self, turns: Sequence[int]) -> None:
        """Count so many whole turns of each drive (n,) in addition to what it reports: they shift the zero."""
        self.turns = list(turns)
        for k, shift in enumerate(self.shifts()):
            self.zero[k] = self._own_zero[k] + shift

    def shifts(self) -> list[float]:
        """(n,) the added turns at the joints."""
        return [turns * TURN / scale for turns, scale in zip(self.turns, self.scale, strict=True)]

    def drive_position(self, position: Iterable[float]) -> list[float]:
        return [scale * (value - zero) for value, scale, zero in zip(position, self.scale, self.zero, strict=True)]

    def drive_velocity(self, velocity: Iterable[float]) -> list[float]:
        return [scale * value for value, scale in zip(velocity, self.scale, strict=True)]

    def drive_effort(self, effort: Iterable[float]) -> list[float]:
        return [value / scale for value, scale in zip(effort, self.scale, strict=True)]

    def drive_gain(self, gain: Iterable[float]) -> list[float]:
        """kp or kd of the joint, converted to the drive."""
        return [value / (scale * scale) for value, scale in zip(gain, self.scale, strict=True)]

    def joint_position(self, position: Iterable[float]) -> list[float]:
        return [value / scale + zero for value, scale, zero in zip(position, self.scale, self.zero, strict=True)]

    def joint_velocity(self, velocity: Iterable[float]) -> list[float]:
        return [value / scale for value, scale in zip(velocity, self.scale, strict=True)]

    def joint_effort(self, effort: Iterable[float]) -> list[float]:
        return [value * scale for value, scale in zip(effort, self.scale, strict=True)]
