"""Drives of the profile CiA 402: cyclic synchronous torque, velocity and position on CANopen (classic CAN), and on
EtherCAT (CoE) by `ethercat`.

SYNC and the heartbeat that feeds the drives' watchdog are sent with every command. The SDO client is this family's own:
the one in the package `canopen` waits for answers in its own threads, and logs; the tests use it as a reference.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from cosim.core.driver_contract import Driver, DriverContext
from cosim.core.errors import InputError
from cosim.plugins.drivers.cia402 import codec, cycle, profile
from cosim.plugins.drivers.cia402.cycle import of_joint
from cosim.plugins.drivers.cia402.device.node import Node
from cosim.plugins.drivers.cia402.device.objects import PRODUCT, VENDOR
from cosim.plugins.drivers.cia402.driver import Cia402Driver
from cosim.plugins.drivers.cia402.emulator import Emulator
from cosim.plugins.drivers.cia402.ethercat import EthercatLink, EthercatParams, ProcessData
from cosim.plugins.drivers.cia402.network import RECEIVED
from cosim.plugins.drivers.cia402.params import EmulatedParams, Homing, JointParams, Params
from cosim.plugins.drivers.common import family
from cosim.plugins.drivers.common.family import check_watchdog
from cosim.plugins.drivers.common.frame_layout import Role
from cosim.plugins.drivers.common.motor import Motor
from cosim.plugins.drivers.transport import BaseConnection, Traffic

__all__ = [
    "MODES",
    "TURNS_AT_POWER_OFF",
    "EmulatedParams",
    "EthercatParams",
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

TURNS_AT_POWER_OFF = "unknown"  # a multi-turn encoder keeps them, and the profile has no object for that

MODES = frozenset(profile.MODES)
_CPR = 65536  # of an emulated drive, by default


def load(params: Params, context: DriverContext) -> Driver:
    """Raises InputError for a watchdog that would trip between two commands, and for a drive with the id of this
    program."""
    check_watchdog(params, context)
    for name, wired in zip(context.joints, context.wiring, strict=True):
        if wired.id == params.master:
            what = f"{params.master} is the id of the drive of joint '{name}'; use an id that no drive has"
            raise InputError(what, context.place("master"))
    return Cia402Driver(params, context, host(params, context))


def emulate(params: Params, context: DriverContext, motors: Sequence[Motor]) -> Emulator:
    """The drives of these joints with these motors, just switched on."""
    settings = context.emulated or (EmulatedParams(),) * len(context.joints)
    return Emulator([_node(*each) for each in zip(context.wiring, motors, settings, strict=True)])


def _node(wired: JointParams, motor: Motor, settings: EmulatedParams) -> Node:
    identity = (VENDOR if wired.vendor is None else wired.vendor, PRODUCT if wired.product is None else wired.product)
    return Node(wired.id, motor, wired.cpr or _CPR, wired.rated_torque, identity, wired.temperature, settings)


def host(params: Params, context: DriverContext) -> BaseConnection:
    """The program's end of the bus; it receives the drives' frames only."""
    if params.ethercat is not None:
        if context.ends is not None:
            return context.ends[0]
        nodes = [wired.id for wired in context.wiring]
        return context.tapped(EthercatLink(params.ethercat, nodes, partial(context.place, "ethercat")))
    return family.filtered_host(params, context, {base + wired.id for wired in context.wiring for base in RECEIVED})


def device(params: Params, context: DriverContext) -> BaseConnection:
    """The drives' end of the bus. Raises InputError for EtherCAT."""
    if params.ethercat is not None:
        what = "drives on EtherCAT cannot be emulated; give a 'bus' to emulate the same drives on CANopen"
        raise InputError(what, context.place("ethercat"))
    return family.device(params, context)


def connection_name(params: Params) -> str:
    """The name of the bus in messages."""
    return (params.ethercat or params.bus).name  # pyright: ignore[reportOptionalMemberAccess]


def traffic(params: Params, context: DriverContext) -> Traffic | ProcessData:
    """One cycle of commands and answers."""
    drives = [of_joint(wired, context.mode) for wired in context.wiring]
    sent = cycle.transmission(context.mode, drives, codec.heartbeat(params.master, codec.RUNNING)).frames
    back: list[Any] = [each.frame for each in cycle.reception(drives).frames if each.role is Role.MEASUREMENT]
    out: list[Any] = [each.frame for each in sent if each.fields or params.ethercat is None]
    if params.ethercat is not None:
        return ProcessData(out, back, max(drive.node for drive in drives))
    return Traffic(out, back)
