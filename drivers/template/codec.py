"""Bytes of the template protocol: frames on classic CAN with 11 bit identifiers, numbers little endian.

    identifier   sender   data
    0x100 + id   host     mode u8, watchdog u8 [10 ms], effort limit u16 [mN·m], target f32 [N·m, rad/s or rad]
    0x180 + id   host     request u32: STATE, WHO, CLEAR or ENABLE
    0x200 + id   drive    position f32 [rad], velocity f32 [rad/s]
    0x280 + id   drive    effort f32 [N·m], temperature i16 [0.1 °C], mode u8, fault u8
    0x300 + id   drive    version u8, padding, velocity limit u16 [0.1 rad/s], effort limit f32 [N·m]

A drive answers commands and requests with its motion, then its status; the request WHO with its identity.
"""

from __future__ import annotations

import struct

from cosim.plugins.drivers.transport import CanFrame

COMMAND, REQUEST, MOTION, STATUS, IDENTITY = 0x100, 0x180, 0x200, 0x280, 0x300
FORMATS = {COMMAND: "<BBHf", REQUEST: "<I", MOTION: "<ff", STATUS: "<fhBB", IDENTITY: "<BxHf"}
STATE, WHO, CLEAR, ENABLE = 0, 1, 2, 0x454E_4142  # requests; a damaged frame does not enable
MODES = ("", "effort", "velocity", "position")  # by number; 0 is off
VERSION = 1
FAULTS = {  # code -> name, fix
    1: ("overtemperature", "let it cool down"),
    2: ("overcurrent", "check the motor's phases for a short"),
    3: ("undervoltage", "check the supply"),
    4: ("encoder", "check the encoder's cable"),
    5: ("watchdog", "find out why commands stopped"),
}


def encode(kind: int, node: int, *values: float) -> CanFrame:
    """A message of a kind, to or from the drive `node`."""
    return CanFrame(kind + node, struct.pack(FORMATS[kind], *values))


def decode(frame: CanFrame) -> tuple[int, tuple] | None:
    """(kind, values); None for a frame outside the protocol or an incomplete one."""
    kind = frame.id & ~0x7F
    layout = FORMATS.get(kind)
    if layout is None or frame.extended or frame.remote or struct.calcsize(layout) != len(frame.data):
        return None
    return kind, struct.unpack(layout, frame.data)
