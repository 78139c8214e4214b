"""The device side of CiA 402 on CANopen: emulated drives on one CAN bus, each with a motor."""

from __future__ import annotations

from collections.abc import Sequence

from cosim.plugins.drivers.cia402 import codec, sdo
from cosim.plugins.drivers.cia402.device import network
from cosim.plugins.drivers.cia402.device.node import Node
from cosim.plugins.drivers.common.unknown_requests import UnknownRequests
from cosim.plugins.drivers.transport import CanFrame

LSS = 0x7E5  # COB-ID of the master of the layer setting services (CiA 305), which the nodes do not have


class Emulator:
    """A state machine without a clock or a bus: frames and times in, frames out. Every node receives every frame."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes = tuple(nodes)
        self.unknown = UnknownRequests()

    def handle(self, item: CanFrame, t_ns: int) -> list[CanFrame]:
        """The answers of the drives to a frame from the bus at t_ns. Never raises, whatever the frame."""
        if item.id == LSS and not item.extended and not item.remote and item.data:
            self.unknown.note(f"LSS command {item.data[0]:#04x}")
        for node in self.nodes:
            network.receive(node, item, t_ns)
        answers = self._collect()
        for answer in answers:
            self._note_unknown(answer, item)
        return answers

    def process(self, t_ns: int) -> list[CanFrame]:
        """One step (≤ 1 ms), after the motors were measured; the frames that the drives send unrequested."""
        for node in self.nodes:
            network.process(node, t_ns)
        return self._collect()

    def reset(self, t_ns: int) -> None:
        """Power-on: motors off, all settings as stored."""
        for node in self.nodes:
            node.restart(t_ns)

    def _note_unknown(self, answer: CanFrame, request: CanFrame) -> None:
        """An SDO service that a node refuses as one that it does not have."""
        node, refused = answer.id - codec.SDO_ANSWER, answer.data[4:] == sdo.COMMAND_UNKNOWN.to_bytes(4, "little")
        if 0 < node < 128 and answer.data[:1] == bytes([sdo.ABORT]) and refused:
            self.unknown.note(f"node {node}: SDO command {request.data[0] & sdo.KIND:#04x}, aborted")

    def _collect(self) -> list[CanFrame]:
        frames = []
        for node in self.nodes:
            frames += node.outbox
            node.outbox = []
        return frames
