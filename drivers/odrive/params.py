"""The parameters of ODrives and of their joints in a rig."""

from __future__ import annotations

from cosim.core.types import param, params
from cosim.plugins.drivers.common import wiring
from cosim.plugins.drivers.common.family import check_one_connection
from cosim.plugins.drivers.transport import CanParams, SerialParams


@params
class Params:
    """ODrives with firmware 0.6 on one CAN bus (CANSimple), or one of them on a serial port (ASCII protocol)."""

    bus: CanParams | None = param(default=None, doc="CAN bus of the drives")
    port: SerialParams | None = param(default=None, doc="serial port of the drive")
    watchdog: float = param(
        unit="s", above=0, default=0.1, doc="time without commands after which a drive stops by itself"
    )
    endpoints: str | None = param(
        default=None,
        doc="the manufacturer's flat_endpoints.json of the drives' firmware; 0.6.10 of the S1 is known without",
    )
    checksum: bool = param(default=True, doc="append a checksum to every line of text on the serial port")
    homing_timeout: float = param(unit="s", above=0, default=30.0, doc="for homing")

    def __post_init__(self) -> None:
        check_one_connection(self)
        if self.endpoints is not None and self.bus is None:
            raise ValueError("'endpoints' is for drives on a 'bus'; leave it out")


@params
class JointParams(wiring.JointParams):
    """A joint and its axis."""

    id: int | None = param(min=0, max=62, default=None, doc="on CAN: node id")
    axis: int | None = param(min=0, max=1, default=None, doc="on a serial port: motor number")
    torque_constant: float | None = param(
        unit="N*m/A",
        above=0,
        default=None,
        doc="to compute the effort from the current; default: the effort that the drive reports",
    )
    homing: bool = param(default=False, doc="home the axis when it is switched on")

    def __post_init__(self) -> None:
        if (self.id is None) == (self.axis is None):
            raise ValueError("give either 'id' (on CAN) or 'axis' (on a serial port)")

    @property
    def homed(self) -> bool:
        return self.homing

    @property
    def address(self) -> int:
        """The number of the axis, unique on its connection."""
        return self.id if self.id is not None else self.axis  # pyright: ignore[reportReturnType]

    @property
    def key(self) -> str:
        """The key of the address."""
        return "id" if self.id is not None else "axis"
