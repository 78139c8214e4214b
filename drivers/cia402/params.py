"""The parameters of CiA 402 drives and of their joints in a rig."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Literal

from cosim.core.types import param, params
from cosim.plugins.drivers.cia402.ethercat import EthercatParams
from cosim.plugins.drivers.cia402.factor_group import velocity_unit_of
from cosim.plugins.drivers.common import wiring
from cosim.plugins.drivers.transport import CanParams


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
    """Homing before a drive is enabled. Speeds refer to the drive, before the gear."""

    method: int = param(min=-128, max=127, doc="homing method, 6098h")
    search: float | None = param(unit="rad/s", above=0, default=None, doc="speed during the search for the switch")
    slow: float | None = param(unit="rad/s", above=0, default=None, doc="speed during the search for zero")
    timeout: float = param(unit="s", above=0, default=30.0, doc="maximum duration")


@params
class JointParams(wiring.JointParams):
    """The drive of a joint."""

    _: KW_ONLY
    id: int = param(min=1, max=127)
    cpr: int | None = param(
        min=1, default=None, doc="position units per revolution of the shaft; default: by the drive's factor group"
    )
    velocity_unit: str | None = param(default=None, doc="of the drive, as '0.1 rpm'; default: by its factor group")
    rated_torque: float | None = param(unit="N*m", above=0, default=None, doc="default: from the drive, 6076h")
    vendor: int | None = param(min=0, max=0xFFFFFFFF, default=None, doc="expected in 1018h")
    product: int | None = param(min=0, max=0xFFFFFFFF, default=None, doc="expected in 1018h")
    temperature: int | None = param(
        min=0x200000,
        max=0xFFFFFF,
        default=None,
        doc="a 16 bit object in 0.1 °C: index · 256 + sub-index, as 0x320101",
    )
    homing: Homing | None = param(default=None, doc="homing before the drive is enabled")

    @property
    def mapped_temperature(self) -> int | None:
        """As in process data, see `process_data`."""
        return None if self.temperature is None else self.temperature << 8 | 16

    @property
    def homed(self) -> bool:
        return self.homing is not None

    def __post_init__(self) -> None:
        if self.velocity_unit is not None:
            velocity_unit_of(self.velocity_unit)  # raises ValueError


@params
class EmulatedParams:
    """The units of an emulated drive, where they are not counts of its encoder and newton metres."""

    encoder_resolution: int | None = param(
        min=1, default=None, doc="increments per revolution of the motor, 608Fh; default: as the position units"
    )
    gear_ratio: float = param(
        above=0, max=1e6, default=1.0, doc="revolutions of the motor per revolution of the shaft, 6091h"
    )
    feed_constant: int | None = param(
        min=1, default=None, doc="position units per revolution of the shaft, 6092h; default: cpr"
    )
    velocity_unit: str = param(default="counts/s", doc="of velocities, as '0.1 rpm'")
    report: Literal["code", "factor", "none"] = param(
        default="code", doc="where it reports the unit of velocities: 60A9h, 6096h, nowhere"
    )
    reversed: bool = param(default=False, doc="positions and velocities are reversed by its polarity, 607Eh")
    torque_unit: Literal["mN*m", "uN*m"] = param(default="mN*m", doc="of its rated torque, 6076h")
    fixed_maps: bool = param(default=False, doc="its process data cannot be mapped: it has its own")

    def __post_init__(self) -> None:
        velocity_unit_of(self.velocity_unit)  # raises ValueError
