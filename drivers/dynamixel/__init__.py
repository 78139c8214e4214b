"""Robotis Dynamixel drives of the X series (Protocol 2.0) on a half-duplex serial link."""

from __future__ import annotations

from collections.abc import Sequence

from cosim.core.driver_contract import Driver, DriverContext
from cosim.plugins.drivers.common.family import connection_name, device, host
from cosim.plugins.drivers.common.motor import Motor
from cosim.plugins.drivers.dynamixel import cyclic_frames
from cosim.plugins.drivers.dynamixel.codec import with_valid_checksum
from cosim.plugins.drivers.dynamixel.driver import DynamixelDriver
from cosim.plugins.drivers.dynamixel.emulator import Emulator
from cosim.plugins.drivers.dynamixel.node import Node
from cosim.plugins.drivers.dynamixel.params import JointParams, Params, SerialSettings
from cosim.plugins.drivers.dynamixel.tables import MODELS
from cosim.plugins.drivers.transport import Traffic

__all__ = [
    "MODES",
    "TURNS_AT_POWER_OFF",
    "JointParams",
    "Params",
    "SerialSettings",
    "connection_name",
    "device",
    "emulate",
    "host",
    "load",
    "traffic",
    "with_valid_checksum",
]

# at power-on and after a reboot within one turn, in every operating mode: e-Manual, note of Present Position (132)
TURNS_AT_POWER_OFF = "lost"

MODES = frozenset({"effort", "velocity", "position"})


def load(params: Params, context: DriverContext) -> Driver:
    """Raises InputError for a watchdog too short for the period, or a model without the mode."""
    return DynamixelDriver(params, context, host(params, context))


def emulate(params: Params, context: DriverContext, motors: Sequence[Motor]) -> Emulator:
    """The device side. The torque constant is the model's, not the motor's."""
    pairs = zip(context.wiring, motors, strict=True)
    return Emulator([Node(w.id, MODELS[w.model], MODELS[w.model].effort(w.torque_constant), m) for w, m in pairs])


def traffic(params: Params, context: DriverContext) -> Traffic:
    """One cycle: a command to all drives, the request for their state, and the answer."""
    return cyclic_frames.traffic([w.id for w in context.wiring], context.mode, params.fast is not False)
