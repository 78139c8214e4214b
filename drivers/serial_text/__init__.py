"""Boards that people build themselves: lines of text on a serial link, by patterns in the rig."""

from __future__ import annotations

from collections.abc import Sequence

from cosim.core.driver_contract import DriverContext
from cosim.plugins.drivers.common.driver import MODES
from cosim.plugins.drivers.common.emulated_drive import EmulatedDrive
from cosim.plugins.drivers.common.family import check_watchdog, connection_name, device, host
from cosim.plugins.drivers.common.motor import Motor, Rotor
from cosim.plugins.drivers.serial_text.driver import TextDriver
from cosim.plugins.drivers.serial_text.emulator import Emulator
from cosim.plugins.drivers.serial_text.params import JointParams, Params
from cosim.plugins.drivers.transport import Traffic
from cosim.plugins.drivers.transport.lines import with_valid_checksum

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

TURNS_AT_POWER_OFF = "unknown"  # as the board keeps them

LONG = -1.2345678e-5  # a number with as many characters as there may be


def load(params: Params, context: DriverContext) -> TextDriver:
    """Raises InputError for a watchdog that would trip between two commands, and patterns that fit no joint."""
    check_watchdog(params, context)
    return TextDriver(params, context, host(params, context))


def emulate(params: Params, context: DriverContext, motors: Sequence[Motor]) -> Emulator:
    """The device side: a board with an axis for each motor."""
    drives = {joint.id: EmulatedDrive(motor) for joint, motor in zip(context.wiring, motors, strict=True)}
    return Emulator(params, drives, {joint.id: joint.model or "emulated" for joint in context.wiring})


def traffic(params: Params, context: DriverContext) -> Traffic:
    """What one cycle sends and receives; nothing in a mode without a command."""
    if not getattr(params.patterns, context.mode):
        return Traffic([], [])
    rotors = [Rotor() for _ in context.joints]
    board = emulate(params, context, rotors)
    for rotor in rotors:
        rotor.position, rotor.velocity = LONG * params.scales.position, LONG * params.scales.velocity
        rotor.effort = LONG * params.scales.effort
    return load(params, context).cycle(board)
