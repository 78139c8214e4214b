"""The parameters of VESCs and of their joints in a rig."""

from __future__ import annotations

from dataclasses import dataclass

from cosim.core.types import param, params
from cosim.plugins.drivers.common import wiring
from cosim.plugins.drivers.common.family import check_one_connection
from cosim.plugins.drivers.transport import CanParams, UartParams


@params
class Params:
    """The connection, and what all drives on it have in common."""

    bus: CanParams | None = param(default=None, doc="CAN bus of the drives")
    port: UartParams | None = param(default=None, doc="UART or USB of one drive, and behind it the CAN bus")
    watchdog: float = param(
        unit="s", min=0.01, default=0.1, doc="time without commands within which the drives' timeout must stop them"
    )

    def __post_init__(self) -> None:
        check_one_connection(self)


@dataclass(frozen=True, kw_only=True)
class JointParams(wiring.JointParams):
    """The drive of a joint, and its motor."""

    id: int = param(min=0, max=126, doc="VESC ID")
    forward: bool = param(default=False, doc="with a port: the drive is on the CAN bus of the one with the port")
    pole_pairs: int = param(min=1, max=127, doc="of the motor")
    torque_constant: float = param(unit="N*m/A", above=0, doc="of the motor, of its torque-producing current")
