"""The signals that end a run in good order: motors off, recording kept."""

from __future__ import annotations

import signal
from types import FrameType
from typing import NoReturn

NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT")


def termination_signals() -> list[int]:
    """Those that this platform has and that are not ignored, as SIGHUP is under nohup."""
    numbers = [getattr(signal, name) for name in NAMES if hasattr(signal, name)]
    return [number for number in numbers if signal.getsignal(number) not in (signal.SIG_IGN, None)]


class SignalInterrupt(KeyboardInterrupt):
    """The interrupt by another signal than that of Ctrl-C, such as a time limit sends. name: of the signal."""

    def __init__(self, name: str) -> None:
        super().__init__(f"interrupted by {name}")
        self.name = name


def interrupted(error: KeyboardInterrupt) -> str:
    """What happened, in words."""
    return str(error) or "interrupted"


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    raise SignalInterrupt(signal.Signals(number).name)


def raises(handler: object) -> bool:
    """Whether a handler of Python raises KeyboardInterrupt."""
    return handler in (signal.default_int_handler, _interrupt)


def raise_on_termination() -> None:
    """Raise KeyboardInterrupt on each of them from now on; in the main thread only."""
    for number in termination_signals():
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else _interrupt)
