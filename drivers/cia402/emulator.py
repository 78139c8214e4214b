"""The device side of CiA 402 on CANopen: emulated drives on one CAN bus, each in front of a motor."""

from __future__ import annotations

from collections.abc import Sequence

from cosim.drivers.cia402.device import network
from cosim.drivers.cia402.device.node import Node
from cosim.drivers.transport import CanFrame


class Emulator:
    """A state machine without clock or line: frames and times in, frames out. Every node hears every frame."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes = tuple(nodes)

    def handle(self, item: CanFrame, t_ns: int) -> list[CanFrame]:
        """A frame from the bus at t_ns; what the drives answer. Any frame at all: never raises."""
        for node in self.nodes:
            network.receive(node, item, t_ns)
        return self._collect()

    def process(self, t_ns: int) -> list[CanFrame]:
        """Time has passed (≤ 1 ms) and the motors' measured values are new; what the drives send of themselves."""
        for node in self.nodes:
            network.proceed(node, t_ns)
        return self._collect()

    def reset(self, t_ns: int) -> None:
        """Power comes back: motors off, all settings as stored."""
        for node in self.nodes:
            node.restart(t_ns)

    def _collect(self) -> list[CanFrame]:
        frames = []
        for node in self.nodes:
            frames += node.outbox
            node.outbox = []
        return frames
