"""Drives with the CAN protocol of MIT's Mini Cheetah: T-Motor and CubeMars AK, Damiao DM, and kin."""

from __future__ import annotations

from collections.abc import Sequence

from cosim.core.driver_contract import DriverContext
from cosim.core.errors import InputError
from cosim.plugins.drivers.common import family
from cosim.plugins.drivers.common.driver import MODES
from cosim.plugins.drivers.common.family import check_watchdog, connection_name, device
from cosim.plugins.drivers.common.motor import Motor, Rotor
from cosim.plugins.drivers.mit.driver import MitDriver
from cosim.plugins.drivers.mit.emulator import Emulator, MitDrive
from cosim.plugins.drivers.mit.params import JointParams, Params
from cosim.plugins.drivers.transport import BaseConnection, Traffic

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
]

# the firmware of the Mini Cheetah counts turns of the rotor from 0 at power-on (`rotations` in PositionSensor.cpp); no
# document of AK and Damiao drives was found that says it
TURNS_AT_POWER_OFF = "unknown"


def load(params: Params, context: DriverContext) -> MitDriver:
    """Raises InputError for a watchdog that would trip between two commands, answers that cannot be distinguished, and
    missing gains."""
    check_watchdog(params, context)
    senders: dict[tuple[int, int], str] = {}
    commanded = {wired.id: name for name, wired in zip(context.joints, context.wiring, strict=True)}
    for name, wired in zip(context.joints, context.wiring, strict=True):
        other = [senders[key] for head in wired.heads if (key := (wired.master, head)) in senders]
        if wired.master in commanded or other:
            what = (
                f"answers with {wired.master} count as answers of joint '{other[0]}'"
                if other
                else (f"{wired.master} is the id of the drive of joint '{commanded[wired.master]}'")
            )
            raise InputError(f"{what}; give the drive a master id of its own", context.place("joints", name, "master"))
        senders.update({(wired.master, head): name for head in wired.heads})
        key = {"position": "kp", "velocity": "kd"}.get(context.mode)
        if key and not getattr(wired, key):
            what = f"in the mode '{context.mode}' the drive needs its gain '{key}', above 0; give it"
            raise InputError(what, context.place("joints", name))
    return _driver(params, context)


def _driver(params: Params, context: DriverContext) -> MitDriver:
    return MitDriver(context, host(params, context), params.watchdog)


def emulate(params: Params, context: DriverContext, motors: Sequence[Motor]) -> Emulator:
    """The device side: a drive for each motor."""
    drives = zip(context.wiring, motors, strict=True)
    return Emulator({joint.id: MitDrive(motor, joint, params.watchdog) for joint, motor in drives})


def host(params: Params, context: DriverContext) -> BaseConnection:
    """The program's end of the bus; it receives the drives' frames only."""
    return family.filtered_host(params, context, {joint.master for joint in context.wiring})


def traffic(params: Params, context: DriverContext) -> Traffic:
    """What one cycle sends and receives."""
    emulator = emulate(params, context, [Rotor() for _ in context.joints])
    for drive in emulator.drives.values():
        drive.enable(0)
    return _driver(params, context).cycle(emulator)
