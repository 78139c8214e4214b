"""The device side of the template protocol: a drive in front of each motor. It reads no clock."""

from __future__ import annotations

from collections.abc import Sequence

from cosim.drivers.common.motor import FAULT_CAUSES, Motor
from cosim.drivers.template import codec
from cosim.drivers.transport import CanFrame

WATCHDOG = 5  # fault code
POSITION_GAIN, VELOCITY_GAIN = 20.0, 0.2  # 1/s, N·m·s/rad


class Drive:
    def __init__(self, node: int, motor: Motor) -> None:
        self.node, self.motor = node, motor
        self.reset()

    def reset(self) -> None:
        self.mode, self.fault, self.watchdog_ns, self.fed_ns = codec.OFF, 0, 0, 0
        self.largest = self.target = 0.0
        self.motor.request(0.0)

    def handle(self, kind: int, values: tuple, t_ns: int) -> list[CanFrame]:
        motor, node = self.motor, self.node
        if kind == codec.COMMAND:
            if values[0] == codec.OFF:
                self.switch_off()
            elif self.mode != codec.OFF and values[0] in codec.MODES.values():
                self.mode, watchdog, largest, self.target = values
                self.largest, self.watchdog_ns, self.fed_ns = 1e-3 * largest, 10_000_000 * watchdog, t_ns
        elif kind != codec.REQUEST:
            return []
        elif values[0] == codec.WHO:
            fastest = min(round(10 * motor.max_velocity), 0xFFFF)
            return [codec.encode(codec.IDENTITY, node, codec.VERSION, fastest, motor.max_effort)]
        elif values[0] == codec.CLEAR:
            self.fault = self.cause()
        elif values[0] == codec.ENABLE and self.mode == codec.OFF and not self.fault:
            self.mode, self.watchdog_ns, self.fed_ns = codec.MODES["effort"], 100_000_000, t_ns
        warmth = min(max(round(10 * motor.temperature), -0x8000), 0x7FFF)
        return [
            codec.encode(codec.MOTION, node, motor.position, motor.velocity),
            codec.encode(codec.STATUS, node, motor.effort, warmth, self.mode, self.fault),
        ]

    def switch_off(self) -> None:
        self.mode, self.target = codec.OFF, 0.0
        self.motor.request(0.0)

    def cause(self) -> int:
        """The code of what is wrong now, 0 for nothing."""
        hot = self.motor.temperature > self.motor.max_temperature
        return 1 if hot else FAULT_CAUSES.index(self.motor.fault_cause) + 1 if self.motor.fault_cause else 0

    def process(self, t_ns: int) -> None:
        motor, expired = self.motor, self.mode != codec.OFF and t_ns - self.fed_ns > self.watchdog_ns
        self.fault = self.fault or self.cause() or (WATCHDOG if expired else 0)
        if self.fault or self.mode == codec.OFF:
            return self.switch_off()
        effort = velocity = self.target
        if self.mode == codec.MODES["position"]:
            velocity = POSITION_GAIN * (self.target - motor.position)
        if self.mode != codec.MODES["effort"]:
            velocity = min(max(velocity, -motor.max_velocity), motor.max_velocity)
            effort = VELOCITY_GAIN * (velocity - motor.velocity)
        largest = min(self.largest, motor.max_effort)
        motor.request(min(max(effort, -largest), largest) if effort == effort else 0.0)


class Emulator:
    """The drives on one bus."""

    def __init__(self, nodes: Sequence[int], motors: Sequence[Motor]) -> None:
        self.drives = {node: Drive(node, motor) for node, motor in zip(nodes, motors, strict=True)}

    def handle(self, item: CanFrame, t_ns: int) -> list[CanFrame]:
        """A frame from the bus, of any content; the answers."""
        kind, node, values = codec.decode(item) or (0, -1, ())
        return self.drives[node].handle(kind, values, t_ns) if node in self.drives else []

    def process(self, t_ns: int) -> list[CanFrame]:
        """Time has passed; drives send nothing unasked."""
        for drive in self.drives.values():
            drive.process(t_ns)
        return []

    def reset(self, t_ns: int) -> None:
        """Power comes back."""
        for drive in self.drives.values():
            drive.reset()
