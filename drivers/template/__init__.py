"""The template of a family of drives: a small invented protocol on CAN, with its emulator. Copy it for a new family."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cosim.core.driver_contract import DriverContext
from cosim.core.types import param, params
from cosim.plugins.drivers.common import wiring
from cosim.plugins.drivers.common.driver import MODES
from cosim.plugins.drivers.common.emulated_drive import EmulatedDrive
from cosim.plugins.drivers.common.family import check_watchdog, connection_name, device, host
from cosim.plugins.drivers.common.motor import Motor, Rotor
from cosim.plugins.drivers.template.driver import TemplateDriver
from cosim.plugins.drivers.template.emulator import Emulator
from cosim.plugins.drivers.transport import CanParams, Traffic

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

TURNS_AT_POWER_OFF = "lost"  # the invented drive counts from where it is switched on


@params
class Params:
    """The bus, and what all drives on it have in common."""

    bus: CanParams = param()
    watchdog: float = param(unit="s", min=0.01, max=2.55, default=0.1, doc="without commands a drive stops after this")


@dataclass(frozen=True, kw_only=True)
class JointParams(wiring.JointParams):
    """The drive of a joint."""

    id: int = param(min=1, max=127)


def load(params: Params, context: DriverContext) -> TemplateDriver:
    """Raises InputError for a watchdog that would trip between two commands."""
    check_watchdog(params, context)
    return TemplateDriver(context, host(params, context), params.watchdog)


def emulate(params: Params, context: DriverContext, motors: Sequence[Motor]) -> Emulator:
    """The device side: a drive for each motor."""
    drives = zip(context.wiring, motors, strict=True)
    return Emulator({joint.id: EmulatedDrive(motor) for joint, motor in drives})


def traffic(params: Params, context: DriverContext) -> Traffic:
    """What one cycle sends and receives."""
    rotors = [Rotor() for _ in context.joints]
    return load(params, context).cycle(emulate(params, context, rotors))
