"""VESCs (Benjamin Vedder's firmware 6 and 7), on a CAN bus or behind a UART."""

from __future__ import annotations

from collections.abc import Sequence

from cosim.core.driver_contract import DriverContext
from cosim.core.errors import InputError
from cosim.plugins.drivers.common import family
from cosim.plugins.drivers.common.driver import MODES
from cosim.plugins.drivers.common.family import check_watchdog, connection_name, device
from cosim.plugins.drivers.common.motor import Motor, Rotor
from cosim.plugins.drivers.transport import BaseConnection, Traffic
from cosim.plugins.drivers.transport.content_packets import identifiers, with_valid_checksum
from cosim.plugins.drivers.vesc.driver import VescDriver
from cosim.plugins.drivers.vesc.emulator import Emulator, VescDrive
from cosim.plugins.drivers.vesc.params import JointParams, Params
from cosim.plugins.drivers.vesc.wires import ANSWERS, CanWire, PortWire

__all__ = [
    "MODES",
    "TURNS_AT_POWER_OFF",
    "JointParams",
    "Params",
    "connection_name",
    "device",
    "emulate",
    "host",
    "load",
    "traffic",
    "with_valid_checksum",
]

# its position is an angle within one turn, also of a multi-turn encoder: m_pos_pid_now in motor/mcpwm_foc.c (firmware)
TURNS_AT_POWER_OFF = "lost"


def load(params: Params, context: DriverContext) -> VescDriver:
    """Raises InputError for a watchdog that would trip between two commands, and for drives that cannot be reached."""
    check_watchdog(params, context)
    local = [name for name, joint in zip(context.joints, context.wiring, strict=True) if not joint.forward]
    for name, joint in zip(context.joints, context.wiring, strict=True):
        place = context.place("joints", name, "forward" if joint.forward else "id")
        if params.bus is not None and joint.forward:
            raise InputError("'forward' is for drives behind a 'port'; leave it out", place)
        if params.port is not None and name in local[1:]:
            what = f"the drive of joint '{local[0]}' has the port; give 'forward: true' for those on its CAN bus"
            raise InputError(what, place)
    wire = PortWire(context.wiring) if params.bus is None else CanWire()
    return VescDriver(context, host(params, context), params.watchdog, wire)


def emulate(params: Params, context: DriverContext, motors: Sequence[Motor]) -> Emulator:
    """The device side: a drive for each motor, with the timeout of the rig."""
    drives = zip(context.wiring, motors, strict=True)
    return Emulator({joint.id: VescDrive(motor, joint, round(1e3 * params.watchdog)) for joint, motor in drives})


def host(params: Params, context: DriverContext) -> BaseConnection:
    """The program's end of the connection; of a bus only the answers to it are received."""
    return family.filtered_host(params, context, identifiers(joint.id + ANSWERS for joint in context.wiring))


def traffic(params: Params, context: DriverContext) -> Traffic:
    """What one cycle sends and receives."""
    return load(params, context).cycle(emulate(params, context, [Rotor() for _ in context.joints]))
