"""How VESCs are reached: each on a CAN bus by frames, or one on a UART by packets, which forwards to the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from cosim.plugins.drivers.transport import CanFrame
from cosim.plugins.drivers.transport.content_packets import (
    ASK,
    SHORT,
    TELL,
    FrameReader,
    PacketReader,
    frames,
    packet,
)
from cosim.plugins.drivers.vesc import codec
from cosim.plugins.drivers.vesc.params import JointParams

ANSWERS = 128  # + id: to this number on the CAN bus a drive sends its answers


class VescWire(Protocol):
    """The way to the drives of a bus or a link: requests to items, items to answers."""

    why_not_compiled: str  # why machine code cannot use it; empty if it can

    @property
    def lost(self) -> int:
        """Damaged items that the cycle does not count."""
        ...

    @property
    def encode(self) -> Callable[[CanFrame], Any] | None:
        """Frame of the cycle -> item, unless it is one."""
        ...

    def values(self, joint: JointParams) -> CanFrame:
        """The frame that requests the measured values of a drive."""
        ...

    def request(self, joint: JointParams, content: bytes) -> list[Any]:
        """Items."""
        ...

    def measured(self, content: bytes) -> list[CanFrame]:
        """The frames of the cycle that content with the measured values of a drive is in, where it came in another
        form."""
        ...

    def contents(self, item: Any) -> list[tuple[int | None, bytes]]:
        """(id of the drive, content) of the answers that an item completes; packets have no id."""
        ...


class CanWire:
    """Drives on a CAN bus, each reached by its id."""

    encode = None
    why_not_compiled, lost = "", 0

    def __init__(self) -> None:
        self._reader = FrameReader()

    def values(self, joint: JointParams) -> CanFrame:
        """A drive is known by the receiver of its answer."""
        (frame,) = self.request(joint, _request_of(codec.VALUES))
        return frame

    def request(self, joint: JointParams, content: bytes) -> list[CanFrame]:
        return frames(joint.id, joint.id + ANSWERS, content, ASK)

    def measured(self, content: bytes) -> list[CanFrame]:
        return []

    def contents(self, item: CanFrame) -> list[tuple[int | None, bytes]]:
        content = self._reader.complete(item)
        return [] if content is None else [(content.receiver - ANSWERS, content.data)]


class PortWire:
    """A drive on a UART, and those to which it forwards on its CAN bus."""

    why_not_compiled = "the packets of VESCs are read in Python"

    def __init__(self, joints: Sequence[JointParams]) -> None:
        self._reader = PacketReader()
        self._joints = {joint.id: joint for joint in joints}

    @property
    def lost(self) -> int:
        return self._reader.lost

    def encode(self, frame: CanFrame) -> bytes:
        kind, joint = frame.id >> 8, self._joints[frame.id & 0xFF]
        content = frame.data[2:] if kind == SHORT else bytes([codec.COMMANDS[kind]]) + frame.data
        return self.request(joint, content)[0]

    def values(self, joint: JointParams) -> CanFrame:
        """Packets have no sender: the answer holds it."""
        (frame,) = frames(joint.id, joint.id + ANSWERS, _request_of(codec.VALUES | codec.VALUES_ID), ASK)
        return frame

    def request(self, joint: JointParams, content: bytes) -> list[bytes]:
        return [packet((bytes([codec.FORWARD_CAN, joint.id]) if joint.forward else b"") + content)]

    def measured(self, content: bytes) -> list[CanFrame]:
        """On a CAN bus the answer has no id."""
        if content[1:5] != (codec.VALUES | codec.VALUES_ID).to_bytes(4, "big") or len(content) != codec.LENGTH_WITH_ID:
            return []
        id, bare = content[-2], content[:1] + codec.VALUES.to_bytes(4, "big") + content[5:-2] + content[-1:]
        return frames(id + ANSWERS, id, bare, TELL) if id in self._joints else []

    def contents(self, item: bytes) -> list[tuple[int | None, bytes]]:
        return [(None, content) for content in self._reader.feed(item)]


def _request_of(mask: int) -> bytes:
    return bytes([codec.GET_VALUES_SELECTIVE]) + mask.to_bytes(4, "big")
