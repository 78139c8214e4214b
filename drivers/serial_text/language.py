"""The language of a board, as its rig gives it: between lines of text and values in SI."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from cosim.plugins.drivers.common.fault_texts import fault_table
from cosim.plugins.drivers.common.node_driver import OFF
from cosim.plugins.drivers.serial_text.codec import Pattern
from cosim.plugins.drivers.serial_text.params import Params, Patterns
from cosim.plugins.drivers.transport.lines import decode_line, encode_line

FAULTS = {
    1: "overtemperature; let it cool down",
    2: "overcurrent; check the motor's phases for a short",
    3: "undervoltage; check the supply",
    4: "encoder; check the encoder's cable",
    5: "watchdog; find out why commands stopped",
}
KEYS = tuple(field.name for field in fields(Patterns))


class BoardLanguage:
    """The translator between values in SI and the lines of a board. patterns: by key, without the empty ones; scales:
    what 1 means in SI, by field."""

    def __init__(self, params: Params) -> None:
        made = {key: Pattern(getattr(params.patterns, key)) for key in KEYS}
        self.patterns = {key: pattern for key, pattern in made.items() if pattern}
        self.faults = fault_table(params.faults or FAULTS, "the board's documentation")
        effort, velocity = params.scales.effort, params.scales.velocity
        self.scales = vars(params.scales) | {"effort_limit": effort, "max_effort": effort, "max_velocity": velocity}
        words = vars(params.modes)
        self._word_of = words | {OFF: words["off"]}
        self._mode_of = {word: OFF if mode == "off" else mode for mode, word in words.items()}
        self._checked = params.checksum

    def line(self, key: str, mode: str = OFF, /, **values: Any) -> bytes:
        """With values of all fields of the pattern; nothing without the pattern."""
        if key not in self.patterns:
            return b""
        scaled = {name: value / self.scales[name] for name, value in values.items() if name in self.scales}
        return encode_line(self.patterns[key].text(values | scaled | {"mode": self._word_of[mode]}), self._checked)

    def read(self, raw: bytes, keys: Iterable[str]) -> tuple[str, dict] | None:
        """(key, values) of a line with the first of these patterns that it has; None for damaged and other ones."""
        text = decode_line(raw, self._checked)
        if text is None:
            return None
        for key in keys:
            found = self.patterns[key].match(text) if key in self.patterns else None
            if found is None or found.get("mode", self._word_of[OFF]) not in self._mode_of:
                continue
            if "mode" in found:
                found["mode"] = self._mode_of[found["mode"]]
            return key, {name: value * self.scales.get(name, 1) for name, value in found.items()}
        return None
