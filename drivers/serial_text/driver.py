"""A board that speaks lines of text behind the driver contract. It answers `poll` and `identify`, and nothing else: so
every line that commands is followed by `poll`."""

from __future__ import annotations

import math

import numpy as np

from cosim.core.driver_contract import DriverContext
from cosim.core.errors import InputError
from cosim.plugins.drivers.common.node_driver import NodeDriver, Request
from cosim.plugins.drivers.serial_text import codec
from cosim.plugins.drivers.serial_text.language import BoardLanguage
from cosim.plugins.drivers.serial_text.params import JointParams, Params
from cosim.plugins.drivers.transport import Connection
from cosim.plugins.drivers.transport.lines import LineSplitter

TO_BOARD = {"state": "poll", "identity": "identify", "enable": "enable", "clear": "clear"}


class TextDriver(NodeDriver[bytes, JointParams]):
    def __init__(self, params: Params, context: DriverContext, link: Connection[bytes]) -> None:
        """Raises InputError for a mode without a command, and answers that do not name one of several axes."""
        super().__init__(context, link, params.watchdog)
        self._language = BoardLanguage(params)
        self._patterns = patterns = self._language.patterns
        self.faults = self._language.faults
        self.modes = frozenset(mode for mode in self.modes if mode in patterns)
        if context.mode not in self.modes:
            what = f"mode '{context.mode}' needs a command; give it, or another 'mode'"
            raise InputError(what, context.place("patterns", context.mode))
        for key in ("state", "identity") if len(context.joints) > 1 else ():
            if key in patterns and "id" not in patterns[key].fields:
                what = f"the answers of {len(context.joints)} axes need the field '{{id}}'; add it"
                raise InputError(what, context.place("patterns", key))
        self._lines = LineSplitter(codec.MAX_LINE)
        resolution = patterns["effort"].resolution("effort") if "effort" in self.modes else 0.0
        self.feedforward.resolution[:] = resolution * self._language.scales["effort"] * np.abs(self.units.scale)

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

    def _line(self, k: int, key: str, **target: float) -> bytes:
        settings = {"watchdog": self.watchdog, "effort_limit": min(self._guard_limits(k)["effort"], 1e9)}
        return self._language.line(key, self._mode, id=self._wiring[k].address, **settings, **target)

    def _request(self, k: int, request: Request) -> bytes:
        key = TO_BOARD[request]
        answered = key in ("poll", "identify") and key in self._patterns
        return self._line(k, key) + (b"" if answered else self._line(k, "poll"))

    def _command(self, k: int, position: float, velocity: float, effort: float) -> bytes:
        target = self._target(position, velocity, effort)
        return self._line(k, self._mode, **{self._mode: target}) + self._line(k, "poll")

    def _off(self, k: int) -> bytes:
        return b"\n" + self._line(k, "disable")  # ends an incomplete line of an earlier program

    # --- answers ---------------------------------------------------------------------------------------

    def _take(self, item: bytes) -> None:
        for raw in self._lines.feed(item):
            key, values = self._language.read(raw, ("state", "identity")) or ("", {})
            k = self._nodes.get(values["id"]) if "id" in values else 0
            if not key:
                self._lost += 1
            elif k is not None:
                self._take_answer(k, key, values)

    def _take_answer(self, k: int, key: str, values: dict) -> None:
        if key == "identity" or "identify" not in self._patterns:
            limits = (values.get("max_effort", math.inf), values.get("max_velocity", math.inf))
            self._identity[k] = (values.get("model", ""), *limits)
        if key == "state":
            for name in ("position", "velocity", "effort", "temperature"):
                getattr(self._feedback, name)[k] = values.get(name, math.nan)
            self._answered(k, values.get("mode", self._mode), values.get("fault", 0), self._now())
