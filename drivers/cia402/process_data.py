"""The process data that the driver exchanges, in terms of the objects of CiA 402: what it maps, and what it needs.

Mapped objects are index · 65536 + sub-index · 256 + bits, as in 1600h and 1A00h.
"""

from __future__ import annotations

from collections.abc import Iterable

CONTROL, MODE, TORQUE, VELOCITY, POSITION = 0x60400010, 0x60600008, 0x60710010, 0x60FF0020, 0x607A0020
VELOCITY_OFFSET, TORQUE_OFFSET = 0x60B10020, 0x60B20010
STATUS, DISPLAY, PLACE, SPEED, EFFORT = 0x60410010, 0x60610008, 0x60640020, 0x606C0020, 0x60770010
TARGETS = {"effort": TORQUE, "velocity": VELOCITY, "position": POSITION}

# per mode, the objects of RPDO1 and RPDO2
RPDO_OBJECTS = {
    "effort": ((CONTROL, TORQUE), ()),
    "velocity": ((CONTROL, VELOCITY, TORQUE_OFFSET), ()),
    "position": ((CONTROL, POSITION, TORQUE_OFFSET), (VELOCITY_OFFSET,)),
}
TPDO_OBJECTS = ((STATUS, DISPLAY, PLACE), (SPEED, EFFORT))
NAMES = {
    CONTROL: "controlword, 6040h",
    TORQUE: "target torque, 6071h",
    VELOCITY: "target velocity, 60FFh",
    POSITION: "target position, 607Ah",
    VELOCITY_OFFSET: "velocity offset, 60B1h",
    TORQUE_OFFSET: "torque offset, 60B2h",
    STATUS: "statusword, 6041h",
    DISPLAY: "mode display, 6061h",
    PLACE: "position, 6064h",
    SPEED: "velocity, 606Ch",
    EFFORT: "torque, 6077h",
}


def needed(mode: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(received, transmitted) by the drive in a mode, all that the driver maps."""
    return tuple(sum(RPDO_OBJECTS[mode], ())), tuple(sum(TPDO_OBJECTS, ()))


def named(objects: Iterable[int]) -> str:
    return ", ".join(f"{NAMES[each]}" for each in objects)
