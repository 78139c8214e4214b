"""The parameters of drives with the Mini Cheetah protocol and of their joints in a rig."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from cosim.core.types import param, params
from cosim.plugins.drivers.common import wiring
from cosim.plugins.drivers.mit.codec import Ranges
from cosim.plugins.drivers.mit.models import CUSTOM, ranges_of
from cosim.plugins.drivers.transport import CanParams


@params
class Params:
    """The bus, and what all drives on it have in common."""

    bus: CanParams = param()
    watchdog: float = param(unit="s", min=0.01, max=60.0, default=0.1, doc="without commands a drive stops after this")


@dataclass(frozen=True, kw_only=True)
class JointParams(wiring.JointParams):
    """The drive of a joint. Its position refers to its output."""

    id: int = param(min=1, max=255)
    master: int = param(min=0, max=0x7FE, default=0, doc="identifier of what the drive sends: MST_ID of a Damiao drive")
    model: str = param(doc="its ranges; `custom`: those given here")
    protocol: Literal["damiao", "mini_cheetah"] | None = param(default=None, doc="of a custom model")
    max_position: float | None = param(unit="rad", above=0, default=None, doc="range of a custom model")
    max_velocity: float | None = param(unit="rad/s", above=0, default=None, doc="range of a custom model")
    max_effort: float | None = param(unit="N*m", above=0, default=None, doc="range of a custom model")
    kp: float = param(unit="N*m/rad", min=0, max=500, default=0.0, doc="gain of the drive in position mode")
    kd: float = param(
        unit="N*m*s/rad", min=0, max=5, default=0.0, doc="of the drive in the modes position and velocity"
    )

    def __post_init__(self) -> None:
        assert self.ranges
        if (self.protocol is None) == (self.model == CUSTOM):
            raise ValueError("give 'protocol' for 'model: custom', and for no other model")

    @property
    def ranges(self) -> Ranges:
        """Raises ValueError."""
        keys = ("max_position", "max_velocity", "max_effort")
        return ranges_of(self.model, {key: getattr(self, key) for key in keys})

    @property
    def damiao(self) -> bool:
        """Whether it is a Damiao drive, which has registers, or one that answers as a Mini Cheetah."""
        return self.protocol == "damiao" or self.model.startswith("DM")

    @property
    def heads(self) -> list[int]:
        """The first bytes of what the drive sends."""
        return [state << 4 | self.id & 0xF for state in range(16)] if self.damiao else [self.id]
