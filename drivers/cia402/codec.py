"""Frames of CANopen (CiA 301) and the cyclic process data of CiA 402 in the mapping that this family uses.

RPDO1  effort: controlword, target torque; velocity: controlword, target velocity, torque offset;
       position: controlword, target position, torque offset; with RPDO2: velocity offset
TPDO1  statusword, mode display, position; TPDO2  velocity, torque and, if the drive has one, a temperature
All values are little-endian; positions, velocities and efforts are SI units at the drive (rad, rad/s, N·m).
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from cosim.plugins.drivers.transport import CanFrame

# function codes of the predefined connection set; the node's id is added
NMT, SYNC_ID, EMCY, TPDO, RPDO = 0x000, 0x080, 0x080, 0x180, 0x200
SDO_ANSWER, SDO_REQUEST, HEARTBEAT = 0x580, 0x600, 0x700
PDO_STRIDE = 0x100  # from PDO n to PDO n + 1

# NMT commands and states
START, STOP, PRE_OPERATIONAL, RESET_NODE, RESET_COMMUNICATION = 0x01, 0x02, 0x80, 0x81, 0x82
BOOTING, STOPPED, RUNNING, PREPARED = 0, 4, 5, 127

SYNC = CanFrame(SYNC_ID, b"")

_TORQUE = Struct("<Hh")
_TARGET = Struct("<Hih")
_OFFSET = Struct("<i")
_STATUS = Struct("<Hbi")
_MOTION = Struct("<ih")
_MOTION_WARM = Struct("<ihh")
_EMCY = Struct("<HB5x")


class Step(NamedTuple):
    """One unit of the drive in SI: of position [rad], velocity [rad/s], torque [N·m], temperature [K].

    velocity: infinite if unknown, so that commands of it are 0; effort: negative where the drive counts against it.
    """

    position: float
    velocity: float
    effort: float
    temperature: float = 0.1


class DriveStatus(NamedTuple):
    statusword: int
    mode: int
    position: float  # rad


class MotionFeedback(NamedTuple):
    velocity: float  # rad/s
    effort: float  # N·m
    temperature: float | None  # °C


def nmt(command: int, node: int) -> CanFrame:
    """An NMT command to one node; to all of them with node 0."""
    return CanFrame(NMT, bytes((command, node)))


def heartbeat(node: int, state: int) -> CanFrame:
    return CanFrame(HEARTBEAT + node, bytes((state,)))


def emergency(node: int, code: int, register: int) -> CanFrame:
    return CanFrame(EMCY + node, _EMCY.pack(code, register))


def _i16(value: float) -> int:
    return round(min(max(value, -32768.0), 32767.0))


def _i32(value: float) -> int:
    return round(min(max(value, -2147483648.0), 2147483647.0))


def command_numbers(mode: str, position: float, velocity: float, effort: float, step: Step) -> tuple[int, ...]:
    """Target, torque offset and velocity offset of a mode, clipped to their fields. Raises ValueError for NaN."""
    torque = _i16(effort / step.effort)
    if mode == "effort":
        return (torque,)
    speed = _i32(velocity / step.velocity)
    return (speed, torque) if mode == "velocity" else (_i32(position / step.position), torque, speed)


def effort_command(node: int, control: int, effort: float, step: Step) -> CanFrame:
    """RPDO1 of cyclic synchronous torque; values are clipped to the field. Raises ValueError for NaN."""
    return CanFrame(RPDO + node, _TORQUE.pack(control, _i16(effort / step.effort)))


def velocity_command(node: int, control: int, velocity: float, effort: float, step: Step) -> CanFrame:
    """RPDO1 of cyclic synchronous velocity: the target and the torque offset 60B2h."""
    return CanFrame(RPDO + node, _TARGET.pack(control, _i32(velocity / step.velocity), _i16(effort / step.effort)))


def position_command(node: int, control: int, position: float, effort: float, step: Step) -> CanFrame:
    """RPDO1 of cyclic synchronous position: the target and the torque offset 60B2h."""
    return CanFrame(RPDO + node, _TARGET.pack(control, _i32(position / step.position), _i16(effort / step.effort)))


def velocity_offset(node: int, velocity: float, step: Step) -> CanFrame:
    """RPDO2 of cyclic synchronous position: 60B1h."""
    return CanFrame(RPDO + PDO_STRIDE + node, _OFFSET.pack(_i32(velocity / step.velocity)))


def status_answer(node: int, status: DriveStatus, step: Step) -> CanFrame:
    """TPDO1, as a drive of this mapping sends it."""
    return CanFrame(TPDO + node, _STATUS.pack(status.statusword, status.mode, _i32(status.position / step.position)))


def motion_answer(node: int, motion: MotionFeedback, step: Step) -> CanFrame:
    """TPDO2, as a drive of this mapping sends it."""
    velocity, effort = _i32(motion.velocity / step.velocity), _i16(motion.effort / step.effort)
    if motion.temperature is None:
        return CanFrame(TPDO + PDO_STRIDE + node, _MOTION.pack(velocity, effort))
    return CanFrame(
        TPDO + PDO_STRIDE + node, _MOTION_WARM.pack(velocity, effort, _i16(motion.temperature / step.temperature))
    )


def decode_status(data: bytes, step: Step) -> DriveStatus | None:
    """TPDO1; None for another length."""
    if len(data) != 7:
        return None
    statusword, mode, position = _STATUS.unpack(data)
    return DriveStatus(statusword, mode, position * step.position)


def decode_motion(data: bytes, step: Step) -> MotionFeedback | None:
    """TPDO2 with or without a temperature; None for another length."""
    if len(data) == 6:
        velocity, effort = _MOTION.unpack(data)
        return MotionFeedback(velocity * step.velocity, effort * step.effort, None)
    if len(data) == 8:
        velocity, effort, warm = _MOTION_WARM.unpack(data)
        return MotionFeedback(velocity * step.velocity, effort * step.effort, warm * step.temperature)
    return None


def decode_emergency(data: bytes) -> tuple[int, int] | None:
    """(error code, error register); code 0: no error any more. None for another length."""
    return _EMCY.unpack(data) if len(data) == 8 else None


def decode_heartbeat(data: bytes) -> int | None:
    """The NMT state, 0 at boot-up; None for another length. The toggle bit of node guarding is masked."""
    return data[0] & 0x7F if len(data) == 1 else None
