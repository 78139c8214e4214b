"""The parameters of boards that speak lines of text: the patterns of the lines, their units, and the joints."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Annotated

from cosim.core.types import param, params
from cosim.plugins.drivers.common import wiring
from cosim.plugins.drivers.common.fault_texts import check_fault_texts
from cosim.plugins.drivers.serial_text.codec import pattern_of
from cosim.plugins.drivers.transport import UartParams

_SETTINGS = ("id", "mode", "watchdog", "effort_limit")
_MEASURED = ("position", "velocity", "effort", "temperature")

# patterns: the fields that they may have, and those that they must have
_OfAxis = Annotated[str, pattern_of(("id",))]
_Enable = Annotated[str, pattern_of(_SETTINGS)]
_Effort = Annotated[str, pattern_of((*_SETTINGS, "effort"), ("effort",))]
_Velocity = Annotated[str, pattern_of((*_SETTINGS, "velocity"), ("velocity",))]
_Position = Annotated[str, pattern_of((*_SETTINGS, "position"), ("position",))]
_State = Annotated[str, pattern_of(("id", *_MEASURED, "mode", "fault"), ("position", "velocity"))]
_Identity = Annotated[str, pattern_of(("id", "model", "max_effort", "max_velocity"))]


@params
class Patterns:
    """Lines to the board, and its answers; the defaults match the sketch in the documentation."""

    enable: _Enable = param(default="E{id} {mode} {watchdog:.3f} {effort_limit:.6g}")
    disable: _OfAxis = param(default="D{id}")
    effort: _Effort = param(default="T{id} {effort:.6g}")
    velocity: _Velocity = param(default="V{id} {velocity:.6g}")
    position: _Position = param(default="P{id} {position:.8g}")
    poll: _OfAxis = param(default="Q{id}", doc="requests `state`; feeds no watchdog")
    clear: _OfAxis = param(default="C{id}", doc="clears faults; empty: nothing does")
    identify: _OfAxis = param(default="I{id}", doc="requests `identity`; empty: no identity")
    state: _State = param(default="S{id} {position} {velocity} {effort} {mode} {fault}")
    identity: _Identity = param(default="I{id} {model} {max_effort} {max_velocity}")

    def __post_init__(self) -> None:
        for key in ("enable", "disable", "poll", "state"):
            if not getattr(self, key).strip():
                raise ValueError(f"'{key}' is empty; give the text")
        if not (self.effort or self.velocity or self.position):
            raise ValueError("no mode has a command; give 'effort', 'velocity' or 'position'")
        if bool(self.identify.strip()) != bool(self.identity.strip()):
            raise ValueError("give both 'identify' and 'identity', or make both empty")


@params
class Scales:
    """What 1 in a line means."""

    position: float = param(unit="rad", above=0, default=1.0)
    velocity: float = param(unit="rad/s", above=0, default=1.0)
    effort: float = param(unit="N*m", above=0, default=1.0)
    temperature: float = param(unit="degC", above=0, default=1.0)
    watchdog: float = param(unit="s", above=0, default=1.0)


@params
class ModeWords:
    """How the board names its modes."""

    off: str = param(default="0")
    effort: str = param(default="1")
    velocity: str = param(default="2")
    position: str = param(default="3")

    def __post_init__(self) -> None:
        words = (self.off, self.effort, self.velocity, self.position)
        if len(set(words)) < len(words) or any(not word or " " in word or "*" in word for word in words):
            raise ValueError("each mode has a word of its own, without blanks and asterisks")


@params
class Params:
    """The serial link of a board, and its language."""

    port: UartParams = param()
    watchdog: float = param(unit="s", min=0.01, default=0.1, doc="of the board: without commands it stops")
    checksum: bool = param(default=True, doc="every line ends with one")
    patterns: Patterns = param(default=Patterns())
    scales: Scales = param(default=Scales())
    modes: ModeWords = param(default=ModeWords())
    faults: dict | None = param(default=None, doc="name and fix by fault code; default: the sketch's")

    def __post_init__(self) -> None:
        check_fault_texts(self.faults)


@params
class JointParams(wiring.JointParams):
    """An axis of the board."""

    _: KW_ONLY
    id: int = param(min=0, max=255)
    model: str | None = param(default=None, doc="expected in the identity")
