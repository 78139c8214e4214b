"""The device side: a board that speaks the patterns of the rig."""

from __future__ import annotations

from cosim.plugins.drivers.common.emulated_drive import EmulatedDrive, EmulatedDrives
from cosim.plugins.drivers.common.fault_texts import code_of
from cosim.plugins.drivers.common.unknown_requests import shown
from cosim.plugins.drivers.serial_text import codec
from cosim.plugins.drivers.serial_text.language import BoardLanguage
from cosim.plugins.drivers.serial_text.params import Params
from cosim.plugins.drivers.transport.lines import LineSplitter

MODES = ("effort", "velocity", "position")
COMMANDS = ("enable", "disable", *MODES, "poll", "clear", "identify")


class Emulator(EmulatedDrives[EmulatedDrive]):
    def __init__(self, params: Params, drives: dict[int, EmulatedDrive], models: dict[int, str]) -> None:
        super().__init__(drives)
        self.models, self._language = models, BoardLanguage(params)
        self._lines = LineSplitter(codec.MAX_LINE)
        self._limits = {id: drive.motor.max_effort for id, drive in drives.items()}
        self._watchdog_ns = dict.fromkeys(drives, round(params.watchdog * 1e9))

    def reset(self, t_ns: int) -> None:
        self._lines = LineSplitter(codec.MAX_LINE)
        super().reset(t_ns)

    def handle(self, item: bytes, t_ns: int) -> list[bytes]:
        """Bytes from the link; the answers to the lines that they complete."""
        answers = [self._answer(raw, t_ns) for raw in self._lines.feed(item)]
        return [answer for answer in answers if answer]

    def _answer(self, raw: bytes, t_ns: int) -> bytes:
        command = self._language.read(raw, COMMANDS)
        if command is None:
            self.unknown.note(f"a line that begins with '{shown(raw.split()[0] if raw.split() else raw)}'")
            return b""
        return self._execute(*command, t_ns)

    def _execute(self, key: str, values: dict, t_ns: int) -> bytes:
        """The answer to a line, empty for none."""
        id = values.get("id", min(self.drives))
        if id not in self.drives:
            return b""
        drive, motor = self.drives[id], self.drives[id].motor
        if "effort_limit" in values:
            self._limits[id] = values["effort_limit"]
        if 0 < (seconds := values.get("watchdog", 0)) < 1e6:
            self._watchdog_ns[id] = round(seconds * 1e9)
        match key:
            case "enable":
                drive.enable(t_ns)
                if mode := values.get("mode"):
                    rest = {"position": motor.position}.get(mode, 0.0)
                    drive.command(mode, rest, self._limits[id], self._watchdog_ns[id], t_ns)
            case "disable":
                drive.switch_off()
            case "clear":
                drive.clear()
            case "poll":
                return self._state(id)
            case "identify" if model := self.models[id]:
                limits = {"max_effort": motor.max_effort, "max_velocity": motor.max_velocity}
                return self._language.line("identity", id=id, model=model, **limits)
            case _ if key in MODES:
                drive.command(key, values[key], self._limits[id], self._watchdog_ns[id], t_ns)
        return b""

    def _state(self, id: int) -> bytes:
        drive, motor = self.drives[id], self.drives[id].motor
        motion = {name: getattr(motor, name) for name in ("position", "velocity", "effort", "temperature")}
        fault = code_of(drive.fault, self._language.faults)
        return self._language.line("state", drive.mode, id=id, fault=fault, **motion)
