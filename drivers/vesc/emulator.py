"""The device side: VESCs on a CAN bus, or one on a UART with the others behind it. They keep their faults until they
are restarted, as with a Fault Stop Time of -1."""

from __future__ import annotations

import math
import struct
from typing import Any

from cosim.drivers.common.emulated_drive import CountingDrive, EmulatedDrives
from cosim.drivers.common.motor import Motor
from cosim.drivers.transport import CanFrame
from cosim.drivers.transport.content_packets import ASK, TELL, FrameReader, PacketReader, frames, packet
from cosim.drivers.vesc import codec
from cosim.drivers.vesc.params import JointParams

BOOT_NS, NEVER_NS = 150_000_000, 1 << 62
CONFIGURATION = 480  # bytes of the motor's and of the app's
FAULT_CODES = {"overtemperature": 6, "overcurrent": 4, "undervoltage": 2, "encoder": 28, "": 0}
MODES = {command: (mode, steps) for mode, (command, _, steps) in codec.SETPOINTS.items()}
KINDS = {kind: command for command, kind, _ in codec.SETPOINTS.values()}


class VescDrive(CountingDrive):
    firmware = (6, 5)

    def __init__(self, motor: Motor, own: JointParams, timeout_ms: int) -> None:
        self.own, self.timeout_ms = own, timeout_ms
        self.speed = 60 * own.pole_pairs / (2 * math.pi)  # rpm of the field per rad/s
        super().__init__(motor)
        self.boot_ns = 0  # until then it does nothing

    def reset(self) -> None:
        super().reset()
        self.fed_ns = -NEVER_NS
        speed, current = self.motor.max_velocity * self.speed, 100.0
        self.limits = (1.0, 1.0, -speed, speed, 0.005, 0.95, -1e5, 1e5, -current, current)

    def timed_out(self, t_ns: int) -> bool:
        return t_ns - self.fed_ns > 1_000_000 * self.timeout_ms

    def process(self, t_ns: int) -> None:
        if self.timed_out(t_ns) or t_ns < self.boot_ns:
            self.switch_off()
        super().process(t_ns)

    def restart(self, t_ns: int) -> None:
        self.reset()
        self.boot_ns = t_ns + BOOT_NS

    def follow(self, mode: str, value: float, t_ns: int) -> None:
        """A setpoint in A, rpm of the field or degrees."""
        motor, self.fed_ns = self.motor, t_ns
        if mode == "effort" and not value:
            return self.switch_off()
        angle = motor.position + math.remainder(math.radians(value) - motor.position, 2 * math.pi)
        target = {"effort": value * self.own.torque_constant, "velocity": value / self.speed, "position": angle}[mode]
        self.enable(t_ns)
        scale = min(max(min(self.limits[:2]), 0.0), 1.0)
        self.command(mode, target, scale * motor.max_effort, NEVER_NS, t_ns)

    def answer(self, content: bytes, t_ns: int) -> bytes | None:
        """To a command, if it has an answer."""
        command, rest = content[0], content[1:]
        if command in MODES and len(rest) >= 4:
            mode, steps = MODES[command]
            self.follow(mode, struct.unpack_from(">i", rest)[0] / steps, t_ns)
        elif command == codec.ALIVE:
            self.fed_ns = t_ns
        elif command == codec.SET_LIMITS and len(content) == codec.LIMITS.size:
            self.limits = codec.LIMITS.unpack(content)[5:]
            return content[:1]
        elif command == codec.REBOOT:
            self.restart(t_ns)
        elif command == codec.GET_VALUES and int.from_bytes(rest[:4], "big") in codec.LAYOUTS:
            return self._values(int.from_bytes(rest[:4], "big"), t_ns)
        elif command == codec.FW_VERSION:
            return bytes([command, *self.firmware]) + b"emulated\0" + bytes(24)
        elif command in codec.HEADS:
            return (bytes([command]) + codec.HEADS[command].pack(*self._head(command))).ljust(CONFIGURATION, b"\0")
        return None

    def _head(self, command: int) -> tuple[Any, ...]:
        motor, own = self.motor, self.own
        current = motor.max_effort / own.torque_constant
        if command == codec.GET_MCCONF:
            return 0, 0, 0, 2, 2, current, -current
        if command == codec.GET_APPCONF:
            return 0, own.id, self.timeout_ms, 0.0
        return *self.limits, 2 * own.pole_pairs

    def _values(self, mask: int, t_ns: int) -> bytes:
        motor, own = self.motor, self.own
        degrees = min(max(motor.temperature, -3000.0), 3000.0)
        angle, speed = math.degrees(self.encoder.position()) % 360.0, self.encoder.velocity() * self.speed
        id = own.id if mask & codec.VALUES_ID else None
        values = degrees, motor.effort / own.torque_constant, min(max(speed, -2e9), 2e9)
        return codec.encode_values(
            codec.Values(*values, FAULT_CODES[self.fault], angle, id, self.timed_out(t_ns)), mask
        )


class Emulator(EmulatedDrives[VescDrive]):
    def __init__(self, drives: dict[int, VescDrive]) -> None:
        super().__init__(drives)
        self._packets, self._frames = PacketReader(), FrameReader()

    def reset(self, t_ns: int) -> None:
        self._packets, self._frames = PacketReader(), FrameReader()
        for drive in self.drives.values():
            drive.restart(t_ns)

    def handle(self, item: CanFrame | bytes, t_ns: int) -> list[Any]:
        """A frame or a chunk of bytes, of any content; the answers."""
        if isinstance(item, CanFrame):
            return self._frame(item, t_ns)
        answers = []
        for content in self._packets.feed(item):
            forward = content[0] == codec.FORWARD_CAN
            local = (id for id, drive in self.drives.items() if not drive.own.forward)
            id = (content[1] if len(content) > 2 else None) if forward else next(local, None)
            answers.append(self._answer(id, content[2:] if forward else content, t_ns))
        return [packet(answer) for answer in answers if answer]

    def _frame(self, item: CanFrame, t_ns: int) -> list[CanFrame]:
        command = KINDS.get(item.id >> 8)
        if command is not None and item.extended and not item.remote:
            self._answer(item.id & 0xFF, bytes([command]) + item.data, t_ns)
        content = self._frames.complete(item)
        answer = self._answer(content.receiver, content.data, t_ns) if content else None
        if content is None or answer is None or content.what != ASK:
            return []
        return frames(content.sender, content.receiver, answer, TELL)

    def _answer(self, id: int | None, content: bytes, t_ns: int) -> bytes | None:
        drive = self.drives.get(id) if id is not None else None
        return None if drive is None or t_ns < drive.boot_ns else drive.answer(content, t_ns)
