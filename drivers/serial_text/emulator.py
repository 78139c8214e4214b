"""The device side: a board that speaks the patterns of the rig."""

from __future__ import annotations

from cosim.drivers.common.emulated_drive import EmulatedDrive, EmulatedDrives
from cosim.drivers.serial_text import codec
from cosim.drivers.serial_text.driver import fault_table, patterns, scales_of
from cosim.drivers.serial_text.params import Params
from cosim.drivers.transport.lines import LineSplitter

UNKNOWN = 255  # code of a fault that the table does not name
MODES = ("effort", "velocity", "position")
COMMANDS = ("enable", "disable", *MODES, "poll", "clear", "identify")


class Emulator(EmulatedDrives[EmulatedDrive]):
    def __init__(self, params: Params, drives: dict[int, EmulatedDrive], models: dict[int, str]) -> None:
        super().__init__(drives)
        self.models, self._params = models, params
        self._patterns, self._scales, self._words = patterns(params), scales_of(params.scales), vars(params.modes)
        self._lines = LineSplitter(codec.MAX_LINE)
        self._limits = {id: drive.motor.max_effort for id, drive in drives.items()}
        self._watchdog_ns = dict.fromkeys(drives, round(params.watchdog * 1e9))
        table = fault_table(params).items()
        self._code = lambda fault: next((code for code, (name, _) in table if fault in name.lower()), UNKNOWN)

    def reset(self, t_ns: int) -> None:
        self._lines = LineSplitter(codec.MAX_LINE)
        super().reset(t_ns)

    def handle(self, item: bytes, t_ns: int) -> list[bytes]:
        """Bytes from the link; the answers to the lines that they complete."""
        texts = (codec.unwrap(raw, self._params.checksum) for raw in self._lines.feed(item))
        answers = (self._execute(text, t_ns) for text in texts if text is not None)
        return [codec.line(text, self._params.checksum) for text in answers if text]

    def _execute(self, text: str, t_ns: int) -> str:
        """The answer to a line, empty for none."""
        for key in COMMANDS:
            if key in self._patterns and (found := self._patterns[key].match(text)) is not None:
                id = found.get("id", min(self.drives))
                return self._act(key, id, found, t_ns) if id in self.drives else ""
        return ""

    def _act(self, key: str, id: int, found: dict, t_ns: int) -> str:
        drive, motor, scales = self.drives[id], self.drives[id].motor, self._scales
        if "effort_limit" in found:
            self._limits[id] = found["effort_limit"] * scales["effort_limit"]
        if 0 < (seconds := found.get("watchdog", 0) * scales["watchdog"]) < 1e6:
            self._watchdog_ns[id] = round(seconds * 1e9)
        mode = next((mode for mode in MODES if found.get("mode") == self._words[mode]), "")
        if key == "enable":
            drive.enable(t_ns)
            key, found = mode, {"position": motor.position / scales["position"], "velocity": 0.0, "effort": 0.0}
        if key in MODES:
            drive.command(key, found[key] * scales[key], self._limits[id], self._watchdog_ns[id], t_ns)
        elif key == "disable":
            drive.switch_off()
        elif key == "clear":
            drive.clear()
        elif key == "poll":
            return self._state(id)
        elif key == "identify":
            limits = {"max_effort": motor.max_effort, "max_velocity": motor.max_velocity}
            return self._answer("identity", id, limits) if self.models[id] else ""
        return ""

    def _state(self, id: int) -> str:
        drive, motor = self.drives[id], self.drives[id].motor
        numbers = {name: getattr(motor, name) for name in ("position", "velocity", "effort", "temperature")}
        return self._answer("state", id, numbers, self._words[drive.mode or "off"], drive.fault)

    def _answer(self, key: str, id: int, numbers: dict[str, float], mode: str = "", fault: str = "") -> str:
        scaled = {name: value / self._scales[name] for name, value in numbers.items()}
        code = self._code(fault) if fault else 0
        return self._patterns[key].text({**scaled, "id": id, "model": self.models[id], "mode": mode, "fault": code})
