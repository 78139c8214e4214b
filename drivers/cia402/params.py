"""The parameters of CiA 402 drives and of their joints in a rig."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Literal

from cosim.drivers.cia402.ethercat import EthercatParams
from cosim.drivers.common import wiring
from cosim.drivers.transport import CanParams
from cosim.types import param, params


@params
class Params:
    """The bus, and the parameters that all drives on it share."""

    bus: CanParams | None = param(default=None, doc="CAN bus of the drives")
    ethercat: EthercatParams | None = param(default=None, doc="EtherCAT segment of the drives, instead of 'bus'")
    watchdog: float = param(
        unit="s", above=0, max=65.535, default=0.1, doc="time without commands, in whole milliseconds"
    )
    master: int = param(min=1, max=127, default=127, doc="id of this program, whose heartbeat the drives monitor")
    stop: Literal["quick", "off"] = param(default="quick", doc="quick stop ramp of the drives, or voltage off")

    def __post_init__(self) -> None:
        if (self.bus is None) == (self.ethercat is None):
            raise ValueError("give either 'bus' or 'ethercat'")


@params
class Homing:
    """Homing before a drive is enabled. Speeds are those of the drive, before the gear."""

    method: int = param(min=-128, max=127, doc="homing method, 6098h")
    search: float | None = param(unit="rad/s", above=0, default=None, doc="speed during the search for the switch")
    slow: float | None = param(unit="rad/s", above=0, default=None, doc="speed during the search for zero")
    timeout: float = param(unit="s", above=0, default=30.0, doc="maximum duration")


@params
class JointParams(wiring.JointParams):
    """The drive of a joint."""

    _: KW_ONLY
    id: int = param(min=1, max=127)
    cpr: int | None = param(min=1, default=None, doc="counts per revolution; default: those of the encoder, 608Fh")
    rated_torque: float | None = param(unit="N*m", above=0, default=None, doc="default: that of the drive, 6076h")
    vendor: int | None = param(min=0, max=0xFFFFFFFF, default=None, doc="expected in 1018h")
    product: int | None = param(min=0, max=0xFFFFFFFF, default=None, doc="expected in 1018h")
    temperature: int | None = param(
        min=0x200000,
        max=0xFFFFFF,
        default=None,
        doc="a 16 bit object in 0.1 °C: index · 256 + sub-index, as 0x320101",
    )
    homing: Homing | None = param(default=None, doc="homing before the drive is enabled")
