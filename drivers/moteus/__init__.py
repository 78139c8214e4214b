"""moteus drives by mjbots: CAN FD, or mjbots' fdcanusb adapter (and a drive's own UART) on a serial port."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from cosim.drivers.common import wiring
from cosim.drivers.common.driver import MODES
from cosim.drivers.common.motor import Motor
from cosim.drivers.moteus.codec import ServoFeedback, arbitration, command_tail, encode_command, encode_feedback
from cosim.drivers.moteus.driver import MoteusDriver
from cosim.drivers.moteus.emulator import Emulator
from cosim.drivers.moteus.fdcanusb import AdapterDevice, AdapterHost, received_line, send_line
from cosim.drivers.transport import CanFrame, CanParams, Connection, SerialParams, Traffic, device_link, host_link
from cosim.errors import InputError
from cosim.types import DriverContext, param, params

__all__ = ["MODES", "JointParams", "Params", "device", "emulate", "host", "line", "load", "traffic"]


@params
class Params:
    """A line of moteus drives, either a CAN bus or a serial port."""

    bus: CanParams | None = param(default=None, doc="CAN FD, at 1 and 5 Mbit/s as the drives come")
    port: SerialParams | None = param(default=None, doc="an fdcanusb, or the UART of a drive")
    checksum: bool = param(default=False, doc="with a port: seal every line, as a drive's own UART wants it")
    watchdog: float = param(unit="s", min=0.001, max=30.0, default=0.1, doc="without commands a drive stops after this")
    prefix: int = param(min=0, max=0x1FFF, default=0, doc="can.prefix of the drives")
    stop: Literal["off", "brake"] = param(default="off", doc="the motor let go, or its phases shorted")

    def __post_init__(self) -> None:
        if (self.bus is None) == (self.port is None):
            raise ValueError("give either 'bus' or 'port'")
        if self.bus is not None and not self.bus.fd:
            raise ValueError("moteus drives speak CAN FD; give 'fd: true' in 'bus'")
        if self.checksum and self.port is None:
            raise ValueError("'checksum' is for a 'port'; leave it out")


@dataclass(frozen=True, kw_only=True)  # `id` has no default, but the fields of every family before it do
class JointParams(wiring.JointParams):
    """The drive of a joint. What it counts is its output: after the ratio that is configured in the drive itself."""

    id: int = param(min=1, max=126, doc="id.id of the drive")

    @property
    def address(self) -> int:
        """The node on its line."""
        return self.id


def _nodes(context: DriverContext) -> list[int]:
    return [joint.id for joint in context.wiring]


def load(params: Params, context: DriverContext) -> MoteusDriver:
    """The driver of the joints of a context, on its line.

    Raises InputError where the watchdog would bite between two commands.
    """
    if params.watchdog <= context.period:
        what = f"must be longer than the period of {context.period:.6g} s, is {params.watchdog:.6g} s"
        raise InputError(what, context.place("watchdog"))
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
    """The program's end of the line."""
    if params.port is not None:
        serial = host_link(params.port, lambda *keys: context.place("port", *keys))
        return AdapterHost(serial, params.checksum)
    assert params.bus is not None
    bus = host_link(params.bus, lambda *keys: context.place("bus", *keys))
    bus.accept(arbitration(node, 0, params.prefix) for node in _nodes(context))
    return bus


def device(params: Params, context: DriverContext) -> Connection[CanFrame]:
    """The drives' end of the line."""
    if params.port is not None:
        return AdapterDevice(device_link(params.port, lambda *keys: context.place("port", *keys)))
    assert params.bus is not None
    return device_link(params.bus, lambda *keys: context.place("bus", *keys))


def line(params: Params) -> str:
    """What the line is called."""
    section = params.bus or params.port
    assert section is not None
    return section.line


def traffic(params: Params, context: DriverContext) -> Traffic:
    """What one cycle sends and gets back."""
    tail = command_tail(params.watchdog, integral=False)
    command = encode_command(tail, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0)
    feedback = encode_feedback(ServoFeedback(10, 0.0, 0.0, 0.0, 24.0, 25.0, 0))
    asked = [arbitration(0, node, params.prefix, reply=True) for node in _nodes(context)]
    told = [arbitration(node, 0, params.prefix) for node in _nodes(context)]
    out = [CanFrame(id, command, True, True, True) for id in asked]
    back = [CanFrame(id, feedback, id > 0x7FF, True, True) for id in told]
    if params.bus is not None:
        return Traffic(out, back)
    seal = b" *00" if params.checksum else b""
    answers = [b"OK" + seal + b"\r\n" + received_line(frame) + seal + b"\r\n" for frame in back]
    return Traffic([send_line(frame) + seal + b"\r\n" for frame in out], answers)
