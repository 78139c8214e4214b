"""The device side: drives with the registers of the rig. Any valid request feeds their watchdog."""

from __future__ import annotations

from cosim.drivers.common.emulated_drive import CountingDrive, EmulatedDrives
from cosim.drivers.common.fault_texts import code_of, fault_table
from cosim.drivers.common.motor import Motor
from cosim.drivers.modbus import codec
from cosim.drivers.modbus.params import Registers

ILLEGAL_FUNCTION, ILLEGAL_ADDRESS, ILLEGAL_VALUE = 1, 2, 3
WRITTEN = ("control", "mode", "timeout", "effort_limit", "effort_target", "velocity_target", "position_target")
MODES = ("effort", "velocity", "position")


class ModbusDrive(CountingDrive):
    """A drive and its memory of registers."""

    def __init__(self, motor: Motor, map: Registers) -> None:
        self.map, self.model = map, map.model.value if map.model else 0
        self._faults = fault_table(map.faults or {}, "")
        super().__init__(motor)

    def reset(self) -> None:
        super().reset()
        points = (point for name in WRITTEN if (point := getattr(self.map, name)) is not None)
        self.written = {register: 0 for point in points for register in point.span}
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
        frames, self._received = codec.split(self._received + item)
        self._heard_ns = t_ns
        return [answer for frame in frames for answer in self._answers(frame, t_ns)]

    def reset(self, t_ns: int) -> None:
        self._received = b""
        super().reset(t_ns)

    def _answers(self, frame: bytes, t_ns: int) -> list[bytes]:
        request = codec.decode(frame)
        drive = None if request is None else self.drives.get(request.node)
        if request is None or drive is None:
            return []
        drive.command_ns = t_ns
        exception = drive.write(request.at, request.words, t_ns) if request.words else 0
        memory, span = drive.memory(), range(request.register, request.register + request.quantity)
        if not exception and not memory.keys() >= set(span):
            exception = ILLEGAL_ADDRESS
        if exception:
            return [codec.refusal(request, exception)]
        return [codec.answer(request, [memory[register] for register in span])]
