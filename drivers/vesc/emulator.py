"""The device side: VESCs on a CAN bus, or one on a UART with the others behind it. They keep their faults until they
are restarted, as with a Fault Stop Time of -1."""

from __future__ import annotations

import math
import struct
from typing import Any

from cosim.plugins.drivers.common.emulated_drive import CountingDrive, EmulatedDrives
from cosim.plugins.drivers.common.motor import Motor
from cosim.plugins.drivers.transport import CanFrame
from cosim.plugins.drivers.transport.content_packets import (
    ASK,
    ASK_AS_REQUEST,
    SILENT,
    TELL,
    FrameReader,
    PacketReader,
    frames,
    packet,
)
from cosim.plugins.drivers.vesc import codec, electrical, values
from cosim.plugins.drivers.vesc.electrical import Electrical
from cosim.plugins.drivers.vesc.params import JointParams
from cosim.plugins.drivers.vesc.ping import PING_CAN, pong

BOOT_NS, NEVER_NS = 150_000_000, 1 << 62
CONFIGURATION = 480  # bytes of the motor's and of the app's
FAULT_CODES = {"overtemperature": 6, "overcurrent": 4, "undervoltage": 2, "encoder": 28, "": 0}
SETPOINTS = codec.SETPOINTS | codec.OTHER_SETPOINTS
MODES = {command: mode for mode, (command, _, _) in SETPOINTS.items() if command is not None}
KINDS = {kind: mode for mode, (_, kind, _) in SETPOINTS.items()}
ALL_DRIVES = 255  # receiver of a frame
SETTERS = {get - 1: get for get in (codec.GET_MCCONF, codec.GET_APPCONF)}  # COMM_SET_MCCONF, COMM_SET_APPCONF
DEFAULTS = {get + 1: get for get in SETTERS.values()}  # COMM_GET_MCCONF_DEFAULT, COMM_GET_APPCONF_DEFAULT
GET_VALUES_SETUP, GET_VALUES_SETUP_SELECTIVE, PRINT, TERMINAL = 47, 51, 21, (20, 64)
# COMM_GET_DECODED_PPM, _ADC and _CHUK: commands of remote controls, which are not emulated
DECODED = {31: bytes(8), 32: bytes(16), 33: bytes(4)}
NAME = b"emulated\0"


class VescDrive(CountingDrive):
    firmware = (6, 5)

    def __init__(self, motor: Motor, own: JointParams, timeout_ms: int) -> None:
        self.own, self.timeout_ms = own, timeout_ms
        self.speed = 60 * own.pole_pairs / (2 * math.pi)  # rpm of the field per rad/s
        self.stored: dict[int, bytes] = {}  # command -> the configuration that it gets, without power too
        self.largest = motor.max_effort / own.torque_constant  # A
        self.boot_ns = self.started_ns = 0  # until when it does nothing; when it was switched on
        super().__init__(motor)
        self.electrical = Electrical(motor, self.loops, own.pole_pairs)

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
        self.electrical.count(t_ns)
        super().process(t_ns)

    def restart(self, t_ns: int) -> None:
        self.reset()
        self.electrical.reset(t_ns)
        self.boot_ns, self.started_ns = t_ns + BOOT_NS, t_ns

    def set(self, mode: str, data: bytes, t_ns: int) -> bool:
        """Follow one of SETPOINTS; False if it is too short."""
        if len(data) < 4:
            return False
        value = struct.unpack_from(">i", data)[0] / SETPOINTS[mode][2]
        relative, _, absolute = mode.rpartition(" ")
        self.follow(absolute, value * self._current_limit() if relative else value, t_ns)
        return True

    def follow(self, mode: str, value: float, t_ns: int) -> None:
        """A setpoint in A, rpm of the field, degrees or as a duty cycle."""
        motor, self.fed_ns = self.motor, t_ns
        if mode in ("effort", "brake", "handbrake") and not value:
            return self.switch_off()
        if mode == "effort":
            value *= self.own.torque_constant
        elif mode == "velocity":
            value /= self.speed
        elif mode == "position":
            value = motor.position + math.remainder(math.radians(value) - motor.position, 2 * math.pi)
        elif mode == "duty":
            most = min(electrical.LARGEST_DUTY, max(0.0, self.limits[5]))
            value = min(max(value, -most), most)
        self.enable(t_ns)
        self.command(mode, value, self._current_limit() * self.own.torque_constant, NEVER_NS, t_ns)

    def _current_limit(self) -> float:
        """A"""
        return min(max(min(self.limits[:2]), 0.0), 1.0) * self.largest

    def requested_effort(self, limit: float) -> float:
        if self.mode in electrical.MODES:
            return self.electrical.effort(self.mode, self.target, limit)
        return super().requested_effort(limit)

    def answer(self, content: bytes, t_ns: int) -> bytes | None:
        """To a command: empty if it has no answer, None if it is not known."""
        command, rest = content[0], content[1:]
        mask = int.from_bytes(rest[:4], "big")
        if command in MODES and self.set(MODES[command], rest, t_ns):
            return b""
        if command == codec.ALIVE:
            self.fed_ns = t_ns
            return b""
        if command == codec.GET_VALUES:
            return content[:1] + values.encode(self._quantities(t_ns))
        if command == codec.GET_VALUES_SELECTIVE and len(rest) >= 4:
            return content[:5] + values.encode(self._quantities(t_ns), mask)
        if command == GET_VALUES_SETUP:
            return content[:1] + values.encode(self._quantities(t_ns), fields=values.SETUP_VALUES)
        if command == GET_VALUES_SETUP_SELECTIVE and len(rest) >= 4:
            return content[:5] + values.encode(self._quantities(t_ns), mask, values.SETUP_VALUES)
        if command == codec.SET_LIMITS and len(content) >= codec.LIMITS.size:  # limits of the input current may follow
            self.limits = codec.LIMITS.unpack_from(content)[5:]
            return content[:1] if content[3] else b""
        if command == codec.REBOOT:
            self.restart(t_ns)
            return b""
        if command == codec.FW_VERSION:
            return bytes([command, *self.firmware]) + NAME + bytes(11) + bytes([self.own.id]) + bytes(13)
        if command in SETTERS:
            return self._store(SETTERS[command], rest)
        if command in codec.HEADS or command in DEFAULTS:
            return content[:1] + self._configuration(DEFAULTS.get(command, command))
        if command in DECODED:
            return content[:1] + DECODED[command]
        if command in TERMINAL:
            return bytes([PRINT]) + b"Invalid command: " + rest.split(b"\0")[0][:64] + b"\n"
        return None

    def _configuration(self, command: int) -> bytes:
        head = codec.HEADS[command].pack(*self._head(command))
        return self.stored.get(command, head.ljust(CONFIGURATION, b"\0"))

    def _store(self, get: int, configuration: bytes) -> bytes:
        """As the firmware does: one with another signature is ignored."""
        if configuration[:4] != bytes(4) or len(configuration) != CONFIGURATION:
            return b""
        self.stored[get], values = configuration, codec.HEADS[get].unpack_from(configuration)
        if get == codec.GET_MCCONF:
            self.largest = values[5]
        else:
            self.timeout_ms = values[2]
        return bytes([get - 1])

    def _head(self, command: int) -> tuple[Any, ...]:
        own = self.own
        if command == codec.GET_MCCONF:
            return 0, 0, 0, 2, 2, self.largest, -self.largest
        if command == codec.GET_APPCONF:
            return 0, own.id, self.timeout_ms, 0.0
        return *self.limits, 2 * own.pole_pairs

    def _quantities(self, t_ns: int) -> dict[str, float]:
        """By their names in `values.py`."""
        return self.electrical.quantities() | {
            "temperature": self.motor.temperature,
            "temperature_drive": self.motor.temperature,
            "current": self.motor.effort / self.own.torque_constant,
            "erpm": self.encoder.velocity() * self.speed,
            "angle": math.degrees(self.encoder.position()) % 360.0,
            "fault": FAULT_CODES[self.fault],
            "id": self.own.id,
            "status": self.timed_out(t_ns),
            "battery_level": 1.0,
            "drives": 1,
            "uptime": 1e-9 * (t_ns - self.started_ns),
        }


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
            if content == bytes([PING_CAN]):
                behind = bytes(each for each, drive in self.drives.items() if drive.own.forward)
                answers.append(content + behind if id is not None else b"")
            else:
                answers.append(self._answer(id, content[2:] if forward else content, t_ns))
        return [packet(answer) for answer in answers if answer]

    def _frame(self, item: CanFrame, t_ns: int) -> list[CanFrame]:
        if (answer := pong(item, self.drives)) is not None:
            return [answer]
        if not item.extended or item.remote:
            return []
        mode, receivers = KINDS.get(item.id >> 8), self._receivers(item.id & 0xFF)
        if mode is not None:
            for id in receivers:
                if t_ns >= self.drives[id].boot_ns:
                    self.drives[id].set(mode, item.data, t_ns)
            return []
        content = self._frames.complete(item)
        if content is None or content.what not in (ASK, SILENT, ASK_AS_REQUEST):
            return []
        found = [(id, self._answer(id, content.data, t_ns)) for id in self._receivers(content.receiver)]
        what = ASK if content.what == ASK_AS_REQUEST else TELL
        answered = [(id, answer) for id, answer in found if answer and content.what != SILENT]
        return [frame for id, answer in answered for frame in frames(content.sender, id, answer, what)]

    def _receivers(self, id: int) -> list[int]:
        return list(self.drives) if id == ALL_DRIVES else [id] if id in self.drives else []

    def _answer(self, id: int | None, content: bytes, t_ns: int) -> bytes:
        drive = self.drives.get(id) if id is not None else None
        if drive is None or t_ns < drive.boot_ns:
            return b""
        answer = drive.answer(content, t_ns)
        if answer is None:
            self.unknown.note(f"VESC {id}: command {content[0]}")
        return answer or b""
