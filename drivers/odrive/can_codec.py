"""CANSimple: classic CAN frames ↔ values in SI.

An 11-bit id is node << 5 | command; payloads are little endian, angles in turns. Layouts, lengths and factors
come from the manufacturer's message tables for firmware 0.6 (docs.odriverobotics.com, manual/can-protocol;
ODriveArduino, src/can_simple_messages.hpp). Arguments and results are in rad, rad/s, N·m, A, V, °C, W.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from cosim.core.units import TURN
from cosim.plugins.drivers.transport import CanFrame

BROADCAST = 0x3F  # a command to this node is for every drive; a drive with this node id has no address yet

GET_VERSION, HEARTBEAT, ESTOP, GET_ERROR, RX_SDO, TX_SDO, ADDRESS, SET_AXIS_STATE = range(0x00, 0x08)
GET_ENCODER_ESTIMATES = 0x09
SET_CONTROLLER_MODE, SET_INPUT_POS, SET_INPUT_VEL, SET_INPUT_TORQUE, SET_LIMITS = range(0x0B, 0x10)
SET_TRAJ_VEL_LIMIT, SET_TRAJ_ACCEL_LIMITS, SET_TRAJ_INERTIA, GET_IQ, GET_TEMPERATURE, REBOOT = range(0x11, 0x17)
GET_BUS_VOLTAGE_CURRENT, CLEAR_ERRORS, SET_ABSOLUTE_POSITION, SET_POS_GAIN, SET_VEL_GAINS = range(0x17, 0x1C)
GET_TORQUES, GET_POWERS = 0x1C, 0x1D
ENTER_DFU_MODE = 0x1F

READ, WRITE = 0, 1  # opcodes of RxSdo; writing without a value calls a function

FEEDFORWARD = 1000  # steps per turn/s and per N·m of the two feedforward fields: the factory setting
FEEDFORWARD_MAX = 32767


class MessageLayout(NamedTuple):
    """A payload: format for sending, smallest format for receiving, SI per unit of each field (None: integers)."""

    whole: Struct
    least: Struct
    si: tuple[float, ...] | None


class Message(NamedTuple):
    """A decoded frame; values: numbers in SI (bytes for the value of an endpoint), in the order of the payload."""

    node: int
    command: int
    values: tuple


def _layout(fields: str, si: tuple[float, ...] | None = None, length: int = 8) -> MessageLayout:
    least = Struct("<" + fields)
    return MessageLayout(Struct(f"<{fields}{length - least.size}x"), least, si)


LAYOUTS: dict[int, MessageLayout] = {
    GET_VERSION: _layout("8B"),  # protocol, three of the hardware, four of the firmware
    HEARTBEAT: _layout("I3B"),  # errors, state, procedure result, trajectory done
    ESTOP: _layout("", length=0),
    GET_ERROR: _layout("II"),  # active errors, disarm reason
    ADDRESS: _layout("B6s", length=8),  # node, serial number, (connection)
    SET_AXIS_STATE: _layout("I"),
    GET_ENCODER_ESTIMATES: _layout("ff", (TURN, TURN)),
    SET_CONTROLLER_MODE: _layout("II"),  # control mode, input mode
    SET_INPUT_POS: _layout("fhh", (TURN, TURN / FEEDFORWARD, 1.0 / FEEDFORWARD)),
    SET_INPUT_VEL: _layout("ff", (TURN, 1.0)),
    SET_INPUT_TORQUE: _layout("f", (1.0,)),
    SET_LIMITS: _layout("ff", (TURN, 1.0)),  # velocity, current
    SET_TRAJ_VEL_LIMIT: _layout("f", (TURN,)),
    SET_TRAJ_ACCEL_LIMITS: _layout("ff", (TURN, TURN)),
    SET_TRAJ_INERTIA: _layout("f", (1.0 / TURN,)),
    GET_IQ: _layout("ff", (1.0, 1.0)),  # setpoint, measured
    GET_TEMPERATURE: _layout("ff", (1.0, 1.0)),  # inverter, motor
    REBOOT: _layout("B", length=1),
    GET_BUS_VOLTAGE_CURRENT: _layout("ff", (1.0, 1.0)),
    CLEAR_ERRORS: _layout("B", length=1),
    SET_ABSOLUTE_POSITION: _layout("f", (TURN,)),
    SET_POS_GAIN: _layout("f", (1.0,)),
    SET_VEL_GAINS: _layout("ff", (1.0 / TURN, 1.0 / TURN)),
    GET_TORQUES: _layout("ff", (1.0, 1.0)),  # target, estimate
    GET_POWERS: _layout("ff", (1.0, 1.0)),  # electrical, mechanical
    ENTER_DFU_MODE: _layout("", length=0),
}
# answers of a drive; ADDRESS is both the request and the command to set it
ANSWERS = frozenset(
    {
        *(GET_VERSION, HEARTBEAT, GET_ERROR, ADDRESS, GET_ENCODER_ESTIMATES, GET_IQ, GET_TEMPERATURE),
        *(GET_BUS_VOLTAGE_CURRENT, GET_TORQUES, GET_POWERS),
    }
)

_SDO = Struct("<BHx")
_FLOATS = Struct("<ff").unpack_from
_PAIRS = {code: layout.si for code, layout in LAYOUTS.items() if layout.si is not None and layout.least.format == "<ff"}


def encode(node: int, command: int, *values: float) -> CanFrame:
    """The frame of a command or of an answer. Raises struct.error for a value that does not fit its
    field, ValueError for a wrong number of values."""
    layout = LAYOUTS[command]
    if layout.si is not None:
        values = tuple(value / si for value, si in zip(values, layout.si, strict=True))
    if command == SET_INPUT_POS:  # steps of the feedforward fields
        position, *feedforward = values
        values = position, *(round(min(max(steps, -FEEDFORWARD_MAX), FEEDFORWARD_MAX)) for steps in feedforward)
    return CanFrame(node << 5 | command, layout.whole.pack(*values))


def request(node: int, command: int) -> CanFrame:
    """The remote frame that requests an answer."""
    return CanFrame(node << 5 | command, b"", remote=True)


def feedforward_limit(steps: float) -> float:
    """The largest feedforward, with so many steps per unit."""
    return FEEDFORWARD_MAX / steps


def endpoint(node: int, opcode: int, number: int, value: bytes = b"", command: int = RX_SDO) -> CanFrame:
    """RxSdo (or TxSdo): read, write or call the endpoint of that number; at most four bytes of value."""
    return CanFrame(node << 5 | command, _SDO.pack(opcode, number) + value)


def version(node: int, hardware: tuple[int, int, int], firmware: tuple[int, int, int]) -> CanFrame:
    return encode(node, GET_VERSION, 2, *hardware, *firmware, 0)


def address(node: int, serial: int) -> CanFrame:
    """A drive's answer to a request for its address."""
    pack = LAYOUTS[ADDRESS].whole.pack
    return CanFrame(node << 5 | ADDRESS, pack(node, serial.to_bytes(6, "little")))


def request_of(frame: CanFrame) -> tuple[int, int] | None:
    """(node, command) of a request for an answer: a remote frame, or an empty one."""
    command = frame.id & 0x1F
    if frame.extended or not 0 <= frame.id < 0x800 or command not in ANSWERS:
        return None
    return (frame.id >> 5, command) if frame.remote or not frame.data else None


def decode(frame: CanFrame) -> Message | None:
    """A decoded data frame; None for another kind of frame, an unknown command or a payload that is too short."""
    number, data = frame.id, frame.data
    if frame.remote or frame.extended or not 0 <= number < 0x800:
        return None
    command = number & 0x1F
    pair = _PAIRS.get(command)
    if pair is not None:
        if len(data) < 8:
            return None
        first, second = _FLOATS(data)
        return Message(number >> 5, command, (first * pair[0], second * pair[1]))
    if command in (RX_SDO, TX_SDO):
        if len(data) < 4:
            return None
        return Message(number >> 5, command, (*_SDO.unpack_from(data), bytes(data[4:8])))
    layout = LAYOUTS.get(command)
    if layout is None or len(data) < layout.least.size:
        return None
    values = layout.least.unpack_from(data)
    if layout.si is not None:
        values = tuple(value * si for value, si in zip(values, layout.si, strict=True))
    return Message(number >> 5, command, values)
