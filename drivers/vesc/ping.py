"""Finding VESCs: a ping on CAN and its answer, and the command that lets a VESC ping its bus.

CAN_PACKET_PING and CAN_PACKET_PONG of the firmware's comm_can.c, COMM_PING_CAN of its commands.c. A ping carries the
number of its sender, to which the answer goes: the drive's id, and the kind of device.
"""

from __future__ import annotations

from collections.abc import Collection

from cosim.plugins.drivers.transport import CanFrame

PING, PONG = 17, 18  # kinds of CAN frames
PING_CAN = 62  # a command; its answer has the ids
VESC = 0  # kind of device; others are batteries and modules
IDS = range(254)
PING_TIME = 10e-3  # s that PING_CAN waits for each id that does not answer


def ping(receiver: int, sender: int) -> CanFrame:
    return CanFrame(PING << 8 | receiver, bytes([sender]), extended=True)


def pong(frame: CanFrame, ids: Collection[int]) -> CanFrame | None:
    """The answer of the VESC that the frame pings; None for another frame, or another id."""
    if frame.id >> 8 != PING or not frame.extended or frame.remote or not frame.data or frame.id & 0xFF not in ids:
        return None
    return CanFrame(PONG << 8 | frame.data[0], bytes([frame.id & 0xFF, VESC]), extended=True)


def found(frame: CanFrame, sender: int) -> int | None:
    """The id of the VESC that answered this sender's ping; older firmware does not report the kind of device."""
    if frame.id != PONG << 8 | sender or not frame.extended or frame.remote or not frame.data:
        return None
    return frame.data[0] if frame.data[1:2] in (b"", bytes([VESC])) else None
