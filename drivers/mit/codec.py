"""Bytes of the protocol of MIT's Mini Cheetah actuators: classic CAN with 11 bit identifiers.

    identifier  sender  data
    id          host    position u16, velocity u12, kp u12, kd u12, effort u12
    id          host    0xFF seven times, then ENTER, EXIT or (Damiao) CLEAR
    master      drive   id u8, position u16, velocity u12, effort u12 [, temperature + 40 °C u8, error u8]
    master      drive   Damiao: state u4, id u4, position u16, velocity u12, effort u12, two temperatures u8 [°C]
    0x7FF       host    Damiao: id u16, READ, WRITE or REFRESH, register u8, value u32 or f32
    master      drive   Damiao: the same, in answer to READ and WRITE

The fields of motion are big endian, registers little endian. A field of n bits maps 0 … 2ⁿ − 1 onto its range; drives
round down, so that what they report is half a step more.
"""

from __future__ import annotations

import math
import struct
from typing import NamedTuple

from cosim.plugins.drivers.transport import CanFrame

ENTER, EXIT, CLEAR = 0xFC, 0xFD, 0xFB
REGISTERS, READ, WRITE, REFRESH = 0x7FF, 0x33, 0x55, 0xCC  # an identifier, and what is to be done
TIMEOUT, CONTROL_MODE, LIMITS = 9, 10, (21, 22, 23)  # registers; LIMITS: ranges of position, velocity and effort
TIMEOUT_UNIT, MIT_MODE = 50e-6, 1  # s; of CONTROL_MODE
WHOLE_NUMBERS = frozenset({*range(7, 11), *range(13, 17), 35, 36})  # registers that are no f32
LAST_ERROR = 15  # of an AK drive, with reserve: its manual has 6
MAX_U12 = 4095  # of the fields with 12 bits
FAULTS = {  # code -> name, fix; Damiao drives from 8 on
    1: ("overtemperature", "let it cool down"),
    2: ("overcurrent", "check the motor's phases for a short"),
    3: ("overvoltage", "check the supply, and where braking motors feed it"),
    4: ("undervoltage", "check the supply"),
    5: ("encoder fault", "check the encoder and its magnet"),
    6: ("phase currents unbalanced", "check the motor's phases; its driver may be damaged"),
    8: ("overvoltage", "check the supply, and where braking motors feed it"),
    9: ("undervoltage", "check the supply"),
    10: ("overcurrent", "check the motor's phases for a short"),
    11: ("overtemperature of the MOSFETs", "let it cool down"),
    12: ("overtemperature of the winding", "let it cool down"),
    13: ("communication lost, the watchdog tripped", "find out why commands stopped"),
    14: ("overload", "check the load, and the encoder"),
}


class Ranges(NamedTuple):
    """rad, rad/s, N·m, ± each; N·m/rad and N·m·s/rad from 0"""

    position: float
    velocity: float
    effort: float
    kp: float
    kd: float


class DriveState(NamedTuple):
    """rad, rad/s, N·m, °C (NaN if it is not reported), and the state (Damiao) or the error."""

    position: float
    velocity: float
    effort: float
    temperature: float
    code: int


def decode_command(frame: CanFrame, ranges: Ranges) -> tuple[float, ...]:
    """(position, velocity, kp, kd, effort) of eight bytes, as drives decode them."""
    word = int.from_bytes(frame.data, "big")
    kp, kd = (high * (word >> shift & MAX_U12) / MAX_U12 for shift, high in ((24, ranges.kp), (12, ranges.kd)))
    velocity, effort = (
        _value(word >> shift & MAX_U12, high, MAX_U12) for shift, high in ((36, ranges[1]), (0, ranges[2]))
    )
    return _value(word >> 48, ranges.position, 65535), velocity, kp, kd, effort


def special(id: int, what: int) -> CanFrame:
    """ENTER, EXIT or CLEAR."""
    return CanFrame(id, b"\xff" * 7 + bytes([what]))


def register(frame_id: int, id: int, what: int, number: int = 0, value: float = 0.0) -> CanFrame:
    """READ, WRITE or REFRESH, or the answer to it."""
    layout = "<HBBI" if number in WHOLE_NUMBERS else "<HBBf"
    return CanFrame(frame_id, struct.pack(layout, id, what, number, int(value) if layout[-1] == "I" else value))


def decode_register(frame: CanFrame) -> tuple[int, int, int, float] | None:
    """(id, READ, WRITE or REFRESH, register, value); None for anything else. A Damiao drive that is off reports its
    state with the same first bytes within 0.1 % of the lower end of its range of positions."""
    if len(frame.data) != 8 or frame.extended or frame.remote or frame.data[2] not in (READ, WRITE, REFRESH):
        return None
    return struct.unpack("<HBBI" if frame.data[3] in WHOLE_NUMBERS else "<HBBf", frame.data)


def state(master: int, head: int, ranges: Ranges, value: DriveState, tail: bytes) -> CanFrame:
    """As drives send it; head, tail: the bytes before and behind the motion."""
    highs = zip(value[:3], ranges[:3], (65535, MAX_U12, MAX_U12), strict=True)
    position, velocity, effort = (math.floor(_share(x, high) * full) for x, high, full in highs)
    return CanFrame(master, bytes([head]) + (position << 24 | velocity << 12 | effort).to_bytes(5, "big") + tail)


def _share(value: float, high: float) -> float:
    return min(max(0.5 + 0.5 * value / high, 0.0), 1.0)


def _value(code: float, high: float, full: int) -> float:
    return high * (2 * code / full - 1)
