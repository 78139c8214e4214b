"""The parameters of Dynamixel drives and of their joints in a rig."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Literal

from cosim.core.types import param, params
from cosim.plugins.drivers.common import wiring
from cosim.plugins.drivers.transport import SerialParams


@params
class SerialSettings(SerialParams):
    """A serial port; the default is the factory bit rate of the drives."""

    baudrate: float = param(unit="bit/s", above=0, default=57600.0)


@params
class Params:
    """The serial link, and the parameters that all drives on it share."""

    port: SerialSettings = param()
    watchdog: float = param(
        unit="s", above=0, default=0.1, doc="time without commands after which drives stop, in steps of 20 ms"
    )
    return_delay: float = param(unit="s", min=0, default=5e-4, doc="longest return delay time of the drives")
    fast: bool | None = param(default=None, doc="fast sync read; default: if the firmware of all drives has it")


@params
class JointParams(wiring.JointParams):
    """The drive of a joint."""

    _: KW_ONLY
    id: int = param(min=0, max=252)
    model: Literal["XM430-W350", "XM430-W210", "XM540-W270", "XM540-W150", "XL430-W250"] = param(default="XM430-W350")
    torque_constant: float | None = param(
        unit="N*m/A", above=0, default=None, doc="default: the manufacturer's for the model"
    )

    @property
    def address(self) -> int:
        """The number of the drive, unique on its connection."""
        return self.id
