"""The device side: drives with the registers of the rig. Any valid request feeds their watchdog."""

from __future__ import annotations

import struct

from cosim.plugins.drivers.common.emulated_drive import CountingDrive, EmulatedDrives
from cosim.plugins.drivers.common.fault_texts import code_of, fault_table
from cosim.plugins.drivers.common.motor import Motor
from cosim.plugins.drivers.modbus import codec, identification
from cosim.plugins.drivers.modbus.codec import ILLEGAL_ADDRESS, ILLEGAL_FUNCTION, ILLEGAL_VALUE
from cosim.plugins.drivers.modbus.params import Registers

DIAGNOSTICS, MASK_WRITE = 8, 22  # of the former `return query data` only
WRITTEN = ("control", "mode", "timeout", "effort_limit", "effort_target", "velocity_target", "position_target")
MODES = ("effort", "velocity", "position")
IDENTITY = ("cosim", "emulated drive", "1.0")


class ModbusDrive(CountingDrive):
    """A drive and its memory of registers."""

    def __init__(self, motor: Motor, map: Registers) -> None:
        self.map, self.model = map, map.model.value if map.model else 0
        self._faults = fault_table(map.faults or {}, "")
        self.kept = {register: 0 for point in map.setting_points.values() for register in point.span}  # without power
        super().__init__(motor)

    def reset(self) -> None:
        super().reset()
        points = (point for name in WRITTEN if (point := getattr(self.map, name)) is not None)
        self.written = {register: 0 for point in points for register in point.span}
        self.written |= self.kept | ({self.map.store.register: 0} if self.map.store else {})
        self.timeout_ns = self.watchdog_ns

    def memory(self) -> dict[int, int]:
        """All registers."""
        map, motor = self.map, self.motor
        values = {
            "position": self.encoder.position(),
            "velocity": self.encoder.velocity(),
            "effort": motor.effort,
            "temperature": motor.temperature,
            "fault": code_of(self.fault, self._faults),
            "max_effort": motor.max_effort,
            "max_velocity": motor.max_velocity,
        }
        found = dict(self.written)
        for name, value in values.items():
            if (point := getattr(map, name)) is not None:
                found.update(zip(point.span, point.words(value), strict=True))
        found[map.status.register] = (map.status.on if self.mode else 0) | (map.status.fault if self.fault else 0)
        if map.model is not None:
            found[map.model.register] = self.model
        return found

    def write(self, at: int, words: tuple[int, ...], t_ns: int) -> int:
        """Write registers; the exception, 0 for none."""
        map, touched = self.map, range(at, at + len(words))
        if not self.written.keys() >= set(touched):
            return ILLEGAL_ADDRESS
        modes = [mode for mode in MODES if map.target(mode)]
        if map.mode is not None and map.mode.register in touched:
            asked = words[map.mode.register - at]
            if asked not in [getattr(map.mode, mode) for mode in modes]:
                return ILLEGAL_VALUE
        self.written.update(zip(touched, words, strict=True))
        if map.store is None or self.written[map.store.register] == map.store.value:
            self.kept = {register: self.written[register] for register in self.kept}
            self.written |= {map.store.register: 0} if map.store else {}
        if map.timeout is not None and map.timeout.register in touched:
            self.timeout_ns = round(map.timeout.value(self.written) * 1e9)
        if map.control.register in touched:
            self._control(words[map.control.register - at], t_ns)
        selected = self.written[map.mode.register] if map.mode else None
        for mode in modes:
            point = map.target(mode)
            if point and point.span[-1] in touched and selected in (None, getattr(map.mode, mode, None)):
                limit = map.effort_limit.value(self.written) if map.effort_limit else self.motor.max_effort
                self.command(mode, point.value(self.written), limit, self.timeout_ns, t_ns)
        return 0

    def write_masked(self, at: int, ones: int, others: int, t_ns: int) -> int:
        """Keep the bits of a register that are set in `ones`, and take the rest from `others`; see `write`."""
        if at not in self.written:
            return ILLEGAL_ADDRESS
        return self.write(at, ((self.written[at] & ones) | (others & ~ones & 0xFFFF),), t_ns)

    def _control(self, word: int, t_ns: int) -> None:
        control = self.map.control
        if word == control.clear[0]:
            self.clear()
        elif word == control.on[-1]:
            self.enable(t_ns)
        elif word == control.off[-1]:
            self.switch_off()


class Emulator(EmulatedDrives[ModbusDrive]):
    _received, _heard_ns = b"", 0
    silence_ns = 3_500_000  # after which an incomplete request is dropped

    def handle(self, item: bytes, t_ns: int) -> list[bytes]:
        """Bytes from the link; the answers to the requests that they complete."""
        if t_ns - self._heard_ns > self.silence_ns:
            self._received = b""
        frames, self._received = codec.split_of(self._received + item, (codec.BROADCAST, *self.drives))
        self._heard_ns = t_ns
        return [answer for frame in frames for answer in self._answers(frame, t_ns)]

    def reset(self, t_ns: int) -> None:
        self._received = b""
        super().reset(t_ns)

    def _answers(self, frame: bytes, t_ns: int) -> list[bytes]:
        if frame[0] == codec.BROADCAST:
            for drive in self.drives.values():
                self._execute(drive, frame, t_ns)
            return []
        drive = self.drives.get(frame[0])
        return [] if drive is None else [self._execute(drive, frame, t_ns)]

    def _execute(self, drive: ModbusDrive, frame: bytes, t_ns: int) -> bytes:
        """The answer of a drive to a complete frame."""
        node, function = frame[:2]
        drive.command_ns = t_ns
        if function == identification.FUNCTION:
            return identification.reply(frame, IDENTITY)
        if function == DIAGNOSTICS and frame[2:4] == bytes(2):
            return frame
        if function == MASK_WRITE and len(frame) == 10:
            exception = drive.write_masked(*struct.unpack(">HHH", frame[2:-2]), t_ns)
            return codec.refusal_of(node, function, exception) if exception else frame
        request = codec.decode(frame)
        if request is not None:
            return self._registers(drive, request, t_ns)
        exception = codec.mistaken(frame) if function in codec.FUNCTIONS else ILLEGAL_FUNCTION
        if exception == ILLEGAL_FUNCTION:
            self.unknown.note(f"node {node}: function {function}, answered by exception {exception}")
        return codec.refusal_of(node, function, exception)

    def _registers(self, drive: ModbusDrive, request: codec.RtuRequest, t_ns: int) -> bytes:
        span = range(request.register, request.register + request.quantity)
        exception = 0 if drive.memory().keys() >= set(span) else ILLEGAL_ADDRESS
        if not exception and request.words:
            exception = drive.write(request.at, request.words, t_ns)
        if exception:
            return codec.refusal(request, exception)
        memory = drive.memory()
        return codec.answer(request, [memory[register] for register in span])
