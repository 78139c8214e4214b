"""Drives and servo inverters with Modbus RTU on a half-duplex serial link, by a map of their registers in the rig."""

from __future__ import annotations

from collections.abc import Sequence

from cosim.core.driver_contract import DriverContext
from cosim.core.errors import InputError
from cosim.plugins.drivers.common.driver import MODES
from cosim.plugins.drivers.common.family import connection_name, device, host
from cosim.plugins.drivers.common.motor import Motor, Rotor
from cosim.plugins.drivers.modbus import codec
from cosim.plugins.drivers.modbus.codec import with_valid_checksum
from cosim.plugins.drivers.modbus.driver import ModbusDriver
from cosim.plugins.drivers.modbus.emulator import Emulator, ModbusDrive
from cosim.plugins.drivers.modbus.params import JointParams, Params
from cosim.plugins.drivers.transport.half_duplex import Exchanges, HalfDuplexLink

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

TURNS_AT_POWER_OFF = "unknown"  # as the drive behind the map keeps them


def load(params: Params, context: DriverContext) -> ModbusDriver:
    """Raises InputError for a watchdog that would trip between two commands, and a mode without a target register."""
    if params.watchdog <= 2.0 * context.period:  # one of them for reads, see `driver`
        what = f"must be longer than 2 periods of {context.period:.6g} s, is {params.watchdog:.6g} s"
        raise InputError(what, context.place("watchdog"))
    link, baudrate = host(params, context), params.port.baudrate
    line = HalfDuplexLink(link, codec, baudrate, params.response_time, _pause(params))
    return ModbusDriver(context, line, params.watchdog)


def emulate(params: Params, context: DriverContext, motors: Sequence[Motor]) -> Emulator:
    """The device side: a drive for each motor."""
    drives = zip(context.wiring, motors, strict=True)
    return Emulator({joint.id: ModbusDrive(motor, joint.registers) for joint, motor in drives})


def traffic(params: Params, context: DriverContext) -> Exchanges:
    """What one cycle sends and receives, at most, with the pauses in between; nothing in a mode without a target."""
    pause = params.response_time + _pause(params)
    if not all(joint.registers.target(context.mode) for joint in context.wiring):
        return Exchanges([], [], pause)
    rotors = [Rotor() for _ in context.joints]
    items = load(params, context).cycle(emulate(params, context, rotors))
    return Exchanges(items.out, items.back, pause)


def _pause(params: Params) -> float:
    return codec.silence(params.port.baudrate) if params.pause is None else params.pause
