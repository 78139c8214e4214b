"""The device side: emulated drives on one bus."""

from __future__ import annotations

from collections.abc import Sequence

from cosim.plugins.drivers.common.motor import Motor
from cosim.plugins.drivers.common.unknown_requests import UnknownRequests
from cosim.plugins.drivers.moteus.codec import BROADCAST, arbitration, pad
from cosim.plugins.drivers.moteus.device import console
from cosim.plugins.drivers.moteus.device.server import answer
from cosim.plugins.drivers.moteus.device.servo import Servo
from cosim.plugins.drivers.transport import CanFrame


class Emulator:
    """Frames in, frames out; it reads no clock: times are arguments."""

    def __init__(self, nodes: Sequence[int], motors: Sequence[Motor]) -> None:
        """nodes: ids on the bus, in the order of the motors."""
        self.servos = [Servo(node, motor) for node, motor in zip(nodes, motors, strict=True)]
        self.unknown = UnknownRequests()
        for servo in self.servos:
            servo.unknown = self.unknown

    def handle(self, item: CanFrame, t_ns: int) -> list[CanFrame]:
        """The answers of the addressed drives to a frame from the bus, whatever its contents."""
        destination, source, prefix = item.id & 0xFF, item.id >> 8 & 0xFF, item.id >> 16
        answers = []
        for servo in self.servos:
            node = servo.config["id.id"]
            if item.remote or destination not in (node, BROADCAST) or prefix != servo.config["can.prefix"]:
                continue
            data = answer(servo, item.data, source & 0x80 != 0, t_ns)
            if data is not None:
                id = arbitration(int(node), source & 0x7F, prefix)
                answers.append(CanFrame(id, pad(data), id > 0x7FF, item.fd or len(data) > 8, item.switched))
        return answers

    def process(self, t_ns: int) -> list[CanFrame]:
        """One step (at most 1 ms), after the motors were measured. Drives send nothing unrequested; the telemetry of
        `tel rate` waits until it is polled."""
        for servo in self.servos:
            servo.process(t_ns)
            if servo.rates:
                console.emit(servo, t_ns)
        return []

    def reset(self, t_ns: int) -> None:
        """Power-on."""
        for servo in self.servos:
            servo.reset(t_ns)
