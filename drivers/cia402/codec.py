"""Frames of CANopen (CiA 301), and the units of drives of CiA 402. All values are little-endian.

RPDO1  effort: controlword, target torque; velocity: controlword, target velocity, torque offset;
       position: controlword, target position, torque offset; with RPDO2: velocity offset
TPDO1  statusword, mode display, position; TPDO2  velocity, torque and, if the drive has one, a temperature
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from cosim.plugins.drivers.transport import CanFrame

# function codes of the predefined connection set; the node's id is added
NMT, SYNC_ID, EMCY, TPDO, RPDO = 0x000, 0x080, 0x080, 0x180, 0x200
SDO_ANSWER, SDO_REQUEST, HEARTBEAT = 0x580, 0x600, 0x700
PDO_STRIDE = 0x100  # from PDO n to PDO n + 1

# NMT commands and states
START, STOP, PRE_OPERATIONAL, RESET_NODE, RESET_COMMUNICATION = 0x01, 0x02, 0x80, 0x81, 0x82
BOOTING, STOPPED, RUNNING, PREPARED = 0, 4, 5, 127

SYNC = CanFrame(SYNC_ID, b"")

_EMCY = Struct("<HB5x")


class Step(NamedTuple):
    """One unit of the drive in SI: of position [rad], velocity [rad/s], torque [N·m], temperature [K].

    velocity: infinite if unknown, so that commands of it are 0; effort: negative where the drive counts against it.
    """

    position: float
    velocity: float
    effort: float
    temperature: float = 0.1


def nmt(command: int, node: int) -> CanFrame:
    """An NMT command to one node; to all of them with node 0."""
    return CanFrame(NMT, bytes((command, node)))


def heartbeat(node: int, state: int) -> CanFrame:
    return CanFrame(HEARTBEAT + node, bytes((state,)))


def emergency(node: int, code: int, register: int) -> CanFrame:
    return CanFrame(EMCY + node, _EMCY.pack(code, register))
