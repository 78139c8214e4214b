"""Keys of the terminal while a joint is moved by hand."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Protocol

from cosim.core.errors import InputError, RunError

# what a terminal sends -> the key; arrows in both of their forms
SEQUENCES = {
    **{start + b"A": "+" for start in (b"\x1b[", b"\x1bO")},
    **{start + b"B": "-" for start in (b"\x1b[", b"\x1bO")},
    **{start + b"C": "+" for start in (b"\x1b[", b"\x1bO")},
    **{start + b"D": "-" for start in (b"\x1b[", b"\x1bO")},
}
SINGLE = {b"+": "+", b"=": "+", b"-": "-", b"_": "-", b" ": "stop", b"\x1b": "stop", b"q": "quit", b"Q": "quit"}


class Keys(Protocol):
    """What the operator has pressed since the last look: `+`, `-`, `stop` or `quit`. Raises RunError without him."""

    def poll(self) -> list[str]: ...


def decode(data: bytes) -> Iterator[str]:
    """The keys in what a terminal sent; a key without a meaning stops, for it was meant to do something."""
    while data:
        head = data[:3]
        if head in SEQUENCES:
            yield SEQUENCES[head]
            data = data[3:]
        else:
            yield SINGLE.get(data[:1], "stop")
            data = data[1:]


class TerminalKeys:
    """The keys of a terminal that delivers each of them immediately and echoes none."""

    def __init__(self, file: int) -> None:
        self._file, self._poll = file, select.poll()
        self._poll.register(file, select.POLLIN)

    def poll(self) -> list[str]:
        if not self._poll.poll(0):
            return []
        try:
            typed = os.read(self._file, 1024)
        except OSError:
            typed = b""
        if not typed:
            raise RunError("the terminal is gone")
        return list(decode(typed))


@contextmanager
def terminal_keys(terminal: int | None = None) -> Iterator[TerminalKeys]:
    """The keys of standard input, or of this terminal. Raises InputError without a terminal."""
    import termios

    try:
        file = sys.stdin.fileno() if terminal is None else terminal
        saved = termios.tcgetattr(file)
    except (AttributeError, ValueError, OSError, termios.error):
        what = "there is no terminal whose keys could move the joint; give the motion with --by"
        raise InputError(what, "cosim drives jog") from None
    mode = termios.tcgetattr(file)
    mode[0] &= ~termios.IXON
    mode[3] &= ~(termios.ICANON | termios.ECHO)
    mode[6][termios.VMIN], mode[6][termios.VTIME] = 1, 0
    mode[6][termios.VSUSP] = mode[6][termios.VQUIT] = b"\0"
    termios.tcsetattr(file, termios.TCSANOW, mode)
    try:
        yield TerminalKeys(file)
    finally:
        with suppress(termios.error, OSError):  # the terminal may be gone
            termios.tcflush(file, termios.TCIFLUSH)
            termios.tcsetattr(file, termios.TCSANOW, saved)
