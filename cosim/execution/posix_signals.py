"""The signals that end a run in good order: motors off, recording kept."""

from __future__ import annotations

import signal

NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT")


def termination_signals() -> list[int]:
    """Those that this platform has and that are not ignored, as SIGHUP is under nohup."""
    numbers = [getattr(signal, name) for name in NAMES if hasattr(signal, name)]
    return [number for number in numbers if signal.getsignal(number) not in (signal.SIG_IGN, None)]


def raise_on_termination() -> None:
    """Raise KeyboardInterrupt on each of them from now on; in the main thread only."""
    for number in termination_signals():
        signal.signal(number, signal.default_int_handler)
