"""ODrives with firmware 0.6: on a CAN bus by CANSimple, or one of them on a serial port by the ASCII protocol."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cosim.core.driver_contract import DriverContext
from cosim.core.errors import InputError
from cosim.core.paths import locate
from cosim.plugins.drivers.common.driver import MODES
from cosim.plugins.drivers.common.family import check_watchdog, connection_key, connection_name, device, host
from cosim.plugins.drivers.common.motor import Motor
from cosim.plugins.drivers.odrive import ascii_codec, codes
from cosim.plugins.drivers.odrive import can_codec as can
from cosim.plugins.drivers.odrive.ascii_codec import with_valid_checksum
from cosim.plugins.drivers.odrive.ascii_driver import AsciiDriver
from cosim.plugins.drivers.odrive.ascii_emulator import AsciiEmulator
from cosim.plugins.drivers.odrive.can_driver import CanDriver
from cosim.plugins.drivers.odrive.driver import CONTROL, ODrive
from cosim.plugins.drivers.odrive.emulator import Emulator
from cosim.plugins.drivers.odrive.params import JointParams, Params
from cosim.plugins.drivers.odrive.properties import read_endpoints
from cosim.plugins.drivers.transport import CanFrame, Connection, Traffic

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

# encoders of one turn, such as the board's, lose them; one with a battery, such as an RLS Orbis, keeps them
# (forum of ODrive Robotics, topic 13268)
TURNS_AT_POWER_OFF = "unknown"


def load(params: Params, context: DriverContext, link: Connection | None = None) -> ODrive:
    """The driver, on `link` or on its own connection.

    Raises InputError for a watchdog that would trip between two commands, a joint with the address of the other
    transport, and endpoints that cannot be read.
    """
    check_watchdog(params, context)
    key = "id" if params.bus is not None else "axis"
    for name, wiring in zip(context.joints, context.wiring, strict=True):
        if wiring.key != key:
            place = context.place("joints", name, wiring.key)
            raise InputError(
                f"on a '{connection_key(params)}' a joint is wired by '{key}', not by '{wiring.key}'", place
            )
    link = link or host(params, context)
    if params.port is not None:
        return AsciiDriver(params, context, link)
    if params.endpoints is None:
        return CanDriver(params, context, link)
    place = context.place("endpoints")
    folder = Path(getattr(place, "file", "")).parent  # the path is relative to the rig file
    return CanDriver(params, context, link, [read_endpoints(locate(params.endpoints, folder), place)])


def emulate(params: Params, context: DriverContext, motors: Sequence[Motor]) -> Emulator | AsciiEmulator:
    """The drives; those whose joints are homed have an end switch at the motor's position 0."""
    addresses, stops = [w.address for w in context.wiring], [w.homing for w in context.wiring]
    kind = Emulator if params.bus is not None else AsciiEmulator
    return kind(motors, addresses, stops)


def traffic(params: Params, context: DriverContext) -> Traffic:
    """What one cycle sends and receives at most."""
    addresses, mode = [w.address for w in context.wiring], context.mode
    if params.port is not None:
        return _lines(addresses, mode, params.checksum)
    out: list[CanFrame | bytes] = []
    back: list[CanFrame | bytes] = []
    for node in addresses:
        command = {
            "effort": can.encode(node, can.SET_INPUT_TORQUE, 0.0),
            "velocity": can.encode(node, can.SET_INPUT_VEL, 0.0, 0.0),
            "position": can.encode(node, can.SET_INPUT_POS, 0.0, 0.0, 0.0),
        }[mode]
        answers = (can.GET_ENCODER_ESTIMATES, can.GET_TORQUES)
        out += [command, *(can.request(node, answer) for answer in answers)]
        back += [can.encode(node, answer, 0.0, 0.0) for answer in answers]
    out.append(can.request(addresses[0], can.GET_TEMPERATURE))
    back.append(can.encode(addresses[0], can.GET_TEMPERATURE, 0.0, 0.0))
    return Traffic(out, back)


def _lines(axes: Sequence[int], mode: str, checked: bool) -> Traffic:
    long = -1234.56789  # a number with many digits
    out, back = [], []
    for axis in axes:
        command = {
            codes.TORQUE_CONTROL: ascii_codec.torque(axis, long),
            codes.VELOCITY_CONTROL: ascii_codec.velocity(axis, long, long),
            codes.POSITION_CONTROL: ascii_codec.position(axis, long, long, long),
        }[CONTROL[mode]]
        requests = (
            f"f {axis}",
            f"r axis{axis}.motor.torque_estimate",
            f"r axis{axis}.motor.fet_thermistor.temperature",
        )
        out += [ascii_codec.line(text, checked) for text in (command, *requests)]
        answers = (f"{long:f} {long:f}", f"{long:f}", f"{long:f}")
        back += [ascii_codec.line(text, checked, "\r\n") for text in answers]
    return Traffic(out, back)
