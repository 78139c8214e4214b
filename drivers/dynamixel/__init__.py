"""Robotis Dynamixel drives of the X series (Protocol 2.0) on a half-duplex serial link."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY
from typing import Literal

from cosim.drivers.common import wiring
from cosim.drivers.common.family import connection_name, device, host
from cosim.drivers.common.motor import Motor
from cosim.drivers.dynamixel import cyclic_frames
from cosim.drivers.dynamixel.driver import DynamixelDriver
from cosim.drivers.dynamixel.emulator import Emulator
from cosim.drivers.dynamixel.node import Node
from cosim.drivers.dynamixel.tables import MODELS
from cosim.drivers.transport import SerialParams, Traffic
from cosim.types import Driver, DriverContext, param, params

__all__ = [
    "MODES",
    "JointParams",
    "Params",
    "SerialSettings",
    "connection_name",
    "device",
    "emulate",
    "host",
    "load",
    "traffic",
]

MODES = frozenset({"effort", "velocity", "position"})


@params
class SerialSettings(SerialParams):
    """A serial port, at the bit rate that drives are delivered with unless another one is given."""

    baudrate: float = param(unit="bit/s", above=0, default=57600.0)


@params
class Params:
    """The serial link, and what all drives on it have in common."""

    port: SerialSettings = param()
    watchdog: float = param(unit="s", above=0, default=0.1, doc="without commands for so long, drives stop; in 20 ms")
    return_delay: float = param(unit="s", min=0, default=5e-4, doc="the longest return delay time drives may have set")
    fast: bool | None = param(default=None, doc="fast sync read; unset: if the firmware of all drives has it")


@params
class JointParams(wiring.JointParams):
    """The drive of a joint."""

    _: KW_ONLY
    id: int = param(min=0, max=252)
    model: Literal["XM430-W350", "XM430-W210", "XM540-W270", "XM540-W150", "XL430-W250"] = param(default="XM430-W350")
    torque_constant: float | None = param(
        unit="N*m/A", above=0, default=None, doc="unset: the manufacturer's for the model"
    )

    @property
    def address(self) -> int:
        """The number of the drive, unique on its connection."""
        return self.id


def load(params: Params, context: DriverContext) -> Driver:
    """Raises InputError for a watchdog too short for the period, or a model without the mode."""
    return DynamixelDriver(params, context, host(params, context))


def emulate(params: Params, context: DriverContext, motors: Sequence[Motor]) -> Emulator:
    """The device side. Efforts follow the model's torque constant, not the motor's."""
    pairs = zip(context.wiring, motors, strict=True)
    return Emulator([Node(w.id, MODELS[w.model], MODELS[w.model].effort(w.torque_constant), m) for w, m in pairs])


def traffic(params: Params, context: DriverContext) -> Traffic:
    """One cycle: a command to all drives, the request for their state, and the answer."""
    return cyclic_frames.traffic([w.id for w in context.wiring], context.mode, params.fast is not False)
