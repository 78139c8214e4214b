"""How VESCs are reached: each on a CAN bus by frames, or one on a UART by packets, which forwards to the others."""

from __future__ import annotations

from typing import Any, Protocol

from cosim.plugins.drivers.transport import CanFrame
from cosim.plugins.drivers.transport.content_packets import ASK, FrameReader, PacketReader, frames, packet
from cosim.plugins.drivers.vesc import codec
from cosim.plugins.drivers.vesc.params import JointParams

ANSWERS = 128  # + id: to this number on the CAN bus a drive sends its answers


class VescWire(Protocol):
    mask: int  # of GET_VALUES_SELECTIVE
    reader: Any  # with the counter `lost`

    def setpoint(self, joint: JointParams, mode: str, value: float) -> Any:
        """An item."""

    def request(self, joint: JointParams, content: bytes) -> list[Any]:
        """Items."""
        ...

    def contents(self, item: Any) -> list[tuple[int | None, bytes]]:
        """(id of the drive, content) of the answers that an item completes; packets have no id."""
        ...


class CanWire:
    mask = codec.VALUES  # a drive is known by the receiver of its answer

    def __init__(self) -> None:
        self.reader = FrameReader()

    def setpoint(self, joint: JointParams, mode: str, value: float) -> CanFrame:
        return codec.setpoint_frame(joint.id, mode, value)

    def request(self, joint: JointParams, content: bytes) -> list[CanFrame]:
        return frames(joint.id, joint.id + ANSWERS, content, ASK)

    def contents(self, item: CanFrame) -> list[tuple[int | None, bytes]]:
        content = self.reader.complete(item)
        return [] if content is None else [(content.receiver - ANSWERS, content.data)]


class PortWire:
    mask = codec.VALUES | codec.VALUES_ID

    def __init__(self) -> None:
        self.reader = PacketReader()

    def setpoint(self, joint: JointParams, mode: str, value: float) -> bytes:
        return self.request(joint, codec.setpoint(mode, value))[0]

    def request(self, joint: JointParams, content: bytes) -> list[bytes]:
        return [packet((bytes([codec.FORWARD_CAN, joint.id]) if joint.forward else b"") + content)]

    def contents(self, item: bytes) -> list[tuple[int | None, bytes]]:
        return [(None, content) for content in self.reader.feed(item)]
