"""moteus drives by mjbots: CAN FD, or mjbots' fdcanusb adapter (and a drive's own UART) on a serial port."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from cosim.core.driver_contract import DriverContext
from cosim.core.types import param, params
from cosim.plugins.drivers.common import family, wiring
from cosim.plugins.drivers.common.driver import MODES
from cosim.plugins.drivers.common.family import check_one_connection, check_watchdog, connection_name
from cosim.plugins.drivers.common.motor import Motor
from cosim.plugins.drivers.moteus.codec import ServoFeedback, arbitration, command, command_tail, encode_feedback
from cosim.plugins.drivers.moteus.driver import MoteusDriver
from cosim.plugins.drivers.moteus.emulator import Emulator
from cosim.plugins.drivers.moteus.fdcanusb import (
    AdapterDevice,
    AdapterHost,
    received_line,
    send_line,
    with_valid_checksum,
)
from cosim.plugins.drivers.transport import CanFrame, CanParams, Connection, Pty, SerialParams, Traffic

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

# start at 0 and are referenced to a turn of the rotor or of the output (`homed` in fw/motor_position.h), the
# latter by motor_position.output.reference_source (docs/reference/configuration.md of the moteus repository)
TURNS_AT_POWER_OFF = "lost"


@params
class Params:
    """The connection of moteus drives, either a CAN bus or a serial port."""

    bus: CanParams | None = param(default=None, doc="CAN FD, at 1 and 5 Mbit/s as the drives come")
    port: SerialParams | None = param(default=None, doc="an fdcanusb, or the UART of a drive")
    checksum: bool = param(
        default=False, doc="with a port: append a checksum to every line of text, as a drive's own UART requires"
    )
    watchdog: float = param(unit="s", min=0.001, max=30.0, default=0.1, doc="without commands a drive stops after this")
    prefix: int = param(min=0, max=0x1FFF, default=0, doc="can.prefix of the drives")
    stop: Literal["off", "brake"] = param(
        default="off", doc="torque off (coasting), or dynamic braking: the phases shorted"
    )

    def __post_init__(self) -> None:
        check_one_connection(self)
        if self.bus is not None and not self.bus.fd:
            raise ValueError("moteus drives speak CAN FD; give 'fd: true' in 'bus'")
        if self.checksum and self.port is None:
            raise ValueError("'checksum' is for a 'port'; leave it out")


@dataclass(frozen=True, kw_only=True)  # `id` has no default, but the fields of every family before it do
class JointParams(wiring.JointParams):
    """The drive of a joint. Its position refers to its output, after the ratio that is configured in the drive."""

    id: int = param(min=1, max=126, doc="id.id of the drive")


def _nodes(context: DriverContext) -> list[int]:
    return [joint.id for joint in context.wiring]


def load(params: Params, context: DriverContext) -> MoteusDriver:
    """Raises InputError for a watchdog that would trip between two commands."""
    check_watchdog(params, context)
    brake = params.stop == "brake"
    return MoteusDriver(host(params, context), context, _nodes(context), params.watchdog, params.prefix, brake)


def emulate(params: Params, context: DriverContext, motors: Sequence[Motor]) -> Emulator:
    """The device side: a drive for each motor."""
    emulator = Emulator(_nodes(context), motors)
    for servo in emulator.servos:
        servo.saved["can.prefix"] = params.prefix
    emulator.reset(0)
    return emulator


def host(params: Params, context: DriverContext) -> Connection[CanFrame]:
    """The program's end of the connection."""
    if params.port is not None:
        return AdapterHost(family.host(params, context), params.checksum)
    return family.filtered_host(params, context, {arbitration(node, 0, params.prefix) for node in _nodes(context)})


def device(params: Params, context: DriverContext) -> Connection[CanFrame]:
    """The drives' end of the connection. A port without checksums is the fdcanusb, which is on USB."""
    link = family.device(params, context)
    if params.port is None:
        return link
    if isinstance(link, Pty) and not params.checksum:
        link.ignore_baudrate()
    return AdapterDevice(link)


def traffic(params: Params, context: DriverContext) -> Traffic:
    """What one cycle sends and receives."""
    data = command(command_tail(params.watchdog, integral=False))
    feedback = encode_feedback(ServoFeedback(10, 0.0, 0.0, 0.0, 24.0, 25.0, 0))
    request_ids = [arbitration(0, node, params.prefix, reply=True) for node in _nodes(context)]
    answer_ids = [arbitration(node, 0, params.prefix) for node in _nodes(context)]
    out = [CanFrame(id, data, True, True, True) for id in request_ids]
    back = [CanFrame(id, feedback, id > 0x7FF, True, True) for id in answer_ids]
    if params.bus is not None:
        return Traffic(out, back)
    checksum = b" *00" if params.checksum else b""
    answers = [b"OK" + checksum + b"\r\n" + received_line(frame) + checksum + b"\r\n" for frame in back]
    return Traffic([send_line(frame) + checksum + b"\r\n" for frame in out], answers)
