"""The signals that end a run in good order: what they interrupt switches its motors off and keeps its recording."""

from __future__ import annotations

import signal

NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT")  # Ctrl-C, an order, a terminal that goes away, a quit by key


def termination_signals() -> list[int]:
    """Those of them that this platform has and that are not ignored: a program under nohup outlives its terminal."""
    numbers = [getattr(signal, name) for name in NAMES if hasattr(signal, name)]
    return [number for number in numbers if signal.getsignal(number) not in (signal.SIG_IGN, None)]


def raise_on_termination() -> None:
    """Each of them raises KeyboardInterrupt from now on; in the main thread only."""
    for number in termination_signals():
        signal.signal(number, signal.default_int_handler)
