"""Drives of the profile CiA 402 on CANopen (classic CAN): cyclic synchronous torque, velocity and position.

SYNC and the heartbeat that feeds the drives' watchdog are sent with every command. The SDO client is this family's own:
that of the `canopen` package waits in threads of its own for answers, and logs; the tests use that one as a reference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY
from typing import Literal

from cosim.drivers.cia402 import codec, profile
from cosim.drivers.cia402.bus import command_frames
from cosim.drivers.cia402.device.node import Node
from cosim.drivers.cia402.device.objects import PRODUCT, VENDOR
from cosim.drivers.cia402.driver import Cia402Driver
from cosim.drivers.cia402.emulator import Emulator
from cosim.drivers.cia402.feedback import HEARD
from cosim.drivers.common import family, wiring
from cosim.drivers.common.family import check_watchdog, connection_name, device
from cosim.drivers.common.motor import Motor
from cosim.drivers.transport import BaseConnection, CanFrame, CanParams, Traffic
from cosim.errors import InputError
from cosim.types import Driver, DriverContext, param, params

__all__ = [
    "MODES",
    "Homing",
    "JointParams",
    "Params",
    "connection_name",
    "device",
    "emulate",
    "host",
    "load",
    "traffic",
]

MODES = frozenset(profile.MODES)
_COUNTS = 65536  # of an emulated drive that is not told its own


@params
class Params:
    """The bus, and what all drives on it have in common."""

    bus: CanParams = param()
    watchdog: float = param(unit="s", above=0, max=65.535, default=0.1, doc="without commands, in whole milliseconds")
    master: int = param(min=1, max=127, default=127, doc="id of this program, whose heartbeat the drives watch")
    stop: Literal["quick", "off"] = param(default="quick", doc="the drives' quick stop, or no voltage at once")


@params
class Homing:
    """How a drive finds its zero when it is enabled. Speeds are those of the drive's side of the gear."""

    method: int = param(min=-128, max=127, doc="number of the homing method, 6098h")
    search: float | None = param(unit="rad/s", above=0, default=None, doc="while it looks for the switch")
    slow: float | None = param(unit="rad/s", above=0, default=None, doc="while it looks for zero")
    timeout: float = param(unit="s", above=0, default=30.0, doc="after which it is given up")


@params
class JointParams(wiring.JointParams):
    """The drive of a joint."""

    _: KW_ONLY
    id: int = param(min=1, max=127)
    counts: int | None = param(min=1, default=None, doc="increments per turn; unset: those of the encoder, 608Fh")
    rated_torque: float | None = param(unit="N*m", above=0, default=None, doc="unset: the drive's own, 6076h")
    vendor: int | None = param(min=0, max=0xFFFFFFFF, default=None, doc="expected in 1018h")
    product: int | None = param(min=0, max=0xFFFFFFFF, default=None, doc="expected in 1018h")
    temperature: int | None = param(
        min=0x200000,
        max=0xFFFFFF,
        default=None,
        doc="a 16 bit object in 0.1 °C: index · 256 + sub-index, as 0x320101",
    )
    homing: Homing | None = param(default=None, doc="find zero when enabled")


def load(params: Params, context: DriverContext) -> Driver:
    """Raises InputError for a watchdog that would trip between two commands, or a drive has the id of this program."""
    check_watchdog(params, context)
    for name, wired in zip(context.joints, context.wiring, strict=True):
        if wired.id == params.master:
            what = f"{params.master} is the id of the drive of joint '{name}'; give one that no drive has"
            raise InputError(what, context.place("master"))
    return Cia402Driver(params, context, host(params, context))


def emulate(params: Params, context: DriverContext, motors: Sequence[Motor]) -> Emulator:
    """The drives of these joints in front of these motors, as switched on."""
    return Emulator([_node(wired, motor) for wired, motor in zip(context.wiring, motors, strict=True)])


def _node(wired: JointParams, motor: Motor) -> Node:
    identity = (VENDOR if wired.vendor is None else wired.vendor, PRODUCT if wired.product is None else wired.product)
    return Node(wired.id, motor, wired.counts or _COUNTS, wired.rated_torque, identity, wired.temperature)


def host(params: Params, context: DriverContext) -> BaseConnection:
    """The program's end of the bus; it receives what the drives send, and no other traffic."""
    return family.filtered_host(params, context, {base + wired.id for wired in context.wiring for base in HEARD})


def traffic(params: Params, context: DriverContext) -> Traffic:
    """One cycle of commands and answers."""
    step = codec.Step(1.0, 1.0, 1.0)
    out: list[CanFrame] = []
    back: list[CanFrame] = []
    for wired in context.wiring:
        out += command_frames(context.mode, wired.id, profile.ENABLE, 0.0, 0.0, 0.0, step)
        warm = None if wired.temperature is None else 0.0
        back.append(codec.status_answer(wired.id, codec.DriveStatus(0, 0, 0.0), step))
        back.append(codec.motion_answer(wired.id, codec.MotionFeedback(0.0, 0.0, warm), step))
    return Traffic([*out, codec.heartbeat(params.master, codec.RUNNING), codec.SYNC], back)
