"""A board that speaks lines of text behind the driver contract. It answers `poll` and `identify`, and nothing else: so
every line that commands is followed by `poll`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields

import numpy as np

from cosim.drivers.common.node_driver import OFF, NodeDriver, Request
from cosim.drivers.serial_text import codec
from cosim.drivers.serial_text.codec import Pattern
from cosim.drivers.serial_text.params import JointParams, Params, Patterns, Scales
from cosim.drivers.transport import Connection
from cosim.drivers.transport.lines import LineSplitter
from cosim.errors import InputError
from cosim.types import DriverContext

FAULTS = {
    1: "overtemperature; let it cool down",
    2: "overcurrent; check the motor's phases for a short",
    3: "undervoltage; check the supply",
    4: "encoder; check the encoder's cable",
    5: "watchdog; find out why commands stopped",
}
PATTERNS = tuple(field.name for field in fields(Patterns))
TO_BOARD = {"state": "poll", "identity": "identify", "enable": "enable", "clear": "clear"}


def patterns(params: Params) -> dict[str, Pattern]:
    """By key, without the empty ones."""
    made = {key: Pattern(getattr(params.patterns, key)) for key in PATTERNS}
    return {key: pattern for key, pattern in made.items() if pattern}


def fault_table(params: Params) -> dict[int, tuple[str, str]]:
    """Fault code -> name, fix."""
    rows = (params.faults or FAULTS).items()
    parts = ((code, text.partition("; ")) for code, text in rows)
    return {int(code): (name, fix or "see the board's documentation") for code, (name, _, fix) in parts}


def scales_of(scales: Scales) -> Mapping[str, float]:
    """Field -> what 1 means in SI, for fields that are scaled."""
    return {
        **vars(scales),
        "effort_limit": scales.effort,
        "max_effort": scales.effort,
        "max_velocity": scales.velocity,
    }


class TextDriver(NodeDriver[bytes, JointParams]):
    def __init__(self, params: Params, context: DriverContext, link: Connection[bytes]) -> None:
        """Raises InputError for a mode without a command, and answers that do not name one of several axes."""
        super().__init__(context, link, params.watchdog)
        self._checked, self._patterns, self._scales = params.checksum, patterns(params), scales_of(params.scales)
        self.faults = fault_table(params)  # pyright: ignore[reportAttributeAccessIssue]  # of the rig, not of the class
        self._words = vars(params.modes)
        self._of_word = {word: mode for mode, word in self._words.items()} | {params.modes.off: OFF}
        self.modes = frozenset(mode for mode in self.modes if mode in self._patterns)
        if context.mode not in self.modes:
            what = f"mode '{context.mode}' needs a command; give it, or another 'mode'"
            raise InputError(what, context.place("patterns", context.mode))
        for key in ("state", "identity") if len(context.joints) > 1 else ():
            if key in self._patterns and "id" not in self._patterns[key].fields:
                what = f"the answers of {len(context.joints)} axes need the field '{{id}}'; add it"
                raise InputError(what, context.place("patterns", key))
        self._lines = LineSplitter(codec.MAX_LINE)
        resolution = self._patterns["effort"].resolution("effort") if "effort" in self.modes else 0.0
        self.feedforward.resolution[:] = resolution * self._scales["effort"] * np.abs(self.units.scale)

    @property
    def lost(self) -> int:
        return self._lost + self._lines.dropped

    def _connect(self) -> None:
        self._lines = LineSplitter(codec.MAX_LINE)
        super()._connect()

    def _drive_name(self, k: int) -> str:
        return f"axis {self._wiring[k].address}"

    def _check_identity(self, k: int, identity: tuple[float, ...]) -> None:
        model, effort, velocity = identity
        if self._wiring[k].model not in (None, model):
            raise self._drive_error(k, f"{self._drive_name(k)} is '{model}', not '{self._wiring[k].model}'; correct it")
        self._check_limits(k, [("effort", effort, "max_effort"), ("velocity", velocity, "max_velocity")])

    # --- lines to the board ----------------------------------------------------------------------------

    def _text(self, k: int, key: str, **target: float) -> bytes:
        """A line, with its numbers in the units of the board; nothing without the pattern."""
        if key not in self._patterns:
            return b""
        limit = min(self._guard_limits(k)["effort"], 1e9)
        numbers = {"watchdog": self.watchdog, "effort_limit": limit, **target}
        scaled = {name: value / self._scales[name] for name, value in numbers.items()}
        values = {"id": self._wiring[k].address, "mode": self._words[self._mode], **scaled}
        return codec.line(self._patterns[key].text(values), self._checked)

    def _request(self, k: int, request: Request) -> bytes:
        key = TO_BOARD[request]
        return self._text(k, key) + (
            b"" if key in ("poll", "identify") & self._patterns.keys() else self._text(k, "poll")
        )

    def _command(self, k: int, position: float, velocity: float, effort: float) -> bytes:
        target = self._target(position, velocity, effort)
        return self._text(k, self._mode, **{self._mode: target}) + self._text(k, "poll")

    def _off(self, k: int) -> bytes:
        return b"\n" + self._text(k, "disable")  # ends an incomplete line of an earlier program

    # --- answers ---------------------------------------------------------------------------------------

    def _take(self, item: bytes) -> None:
        for raw in self._lines.feed(item):
            text = codec.unwrap(raw, self._checked)
            if text is None or not (self._take_state(text) or self._take_identity(text)):
                self._lost += 1

    def _match(self, key: str, text: str) -> tuple[int | None, dict] | None:
        """(joint, values in SI) of an answer."""
        found = self._patterns[key].match(text) if key in self._patterns else None
        if found is None:
            return None
        values = {name: value * self._scales.get(name, 1) if name != "mode" else value for name, value in found.items()}
        return self._nodes.get(found["id"]) if "id" in found else 0, values

    def _take_state(self, text: str) -> bool:
        k, values = self._match("state", text) or (None, {})
        mode = self._of_word.get(values["mode"]) if "mode" in values else self._mode
        if k is None or mode is None:
            return bool(values) and mode is not None
        feedback = self._feedback
        for name in ("position", "velocity", "effort", "temperature"):
            getattr(feedback, name)[k] = values.get(name, math.nan)
        if "identify" not in self._patterns:
            self._identity[k] = ("", math.inf, math.inf)  # type: ignore[assignment]
        self._answered(k, mode, values.get("fault", 0), self._now())
        return True

    def _take_identity(self, text: str) -> bool:
        k, values = self._match("identity", text) or (None, {})
        if k is not None:
            limits = (values.get("max_effort", math.inf), values.get("max_velocity", math.inf))
            self._identity[k] = (values.get("model", ""), *limits)
        return bool(values)
