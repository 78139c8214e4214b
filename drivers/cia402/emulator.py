"""The device side of CiA 402 on CANopen: emulated drives on one CAN bus, each with a motor."""

from __future__ import annotations

from collections.abc import Sequence

from cosim.drivers.cia402.device import network
from cosim.drivers.cia402.device.node import Node
from cosim.drivers.transport import CanFrame


class Emulator:
    """A state machine without a clock or a bus: frames and times in, frames out. Every node receives every frame."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes = tuple(nodes)

    def handle(self, item: CanFrame, t_ns: int) -> list[CanFrame]:
        """The answers of the drives to a frame from the bus at t_ns. Never raises, whatever the frame."""
        for node in self.nodes:
            network.receive(node, item, t_ns)
        return self._collect()

    def process(self, t_ns: int) -> list[CanFrame]:
        """One step (≤ 1 ms), after the motors were measured; the frames that the drives send unrequested."""
        for node in self.nodes:
            network.process(node, t_ns)
        return self._collect()

    def reset(self, t_ns: int) -> None:
        """Power-on: motors off, all settings as stored."""
        for node in self.nodes:
            node.restart(t_ns)

    def _collect(self) -> list[CanFrame]:
        frames = []
        for node in self.nodes:
            frames += node.outbox
            node.outbox = []
        return frames
