"""The emergency stop: a key of the terminal, a file like that of a GPIO pin, a message on a CAN bus.

Looked at once per tick, so no look waits. In doubt it is pressed: an input that cannot be read stops the run. A CAN bus
that is silent is no doubt: a torn cable is noticed only where the bus itself reports an error.
"""

from __future__ import annotations

import atexit
import os
import select
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing, suppress
from typing import Any, Protocol

from cosim.errors import InputError, RunError
from cosim.types import param, params

PlaceOf = Callable[..., Any]

KEYS = {"space": b" ", "esc": b"\x1b"}
MOST = 128  # messages in one look: more than a bus brings in a tick, few enough not to hold the loop up
MOST_OLD = 10_000  # messages that may have gathered until a reset
FILTERING = {"socketcan"}  # interfaces that filter by themselves


@params
class EstopParams:
    """What stops a run; at least one of a key, a file and a message.

    key: "space", "esc" or one character, in either case of a letter. file: its first character counts; anything but
    the one that means released is pressed. interface, channel, id: a message that carries nothing, or anything but 0
    first, stops; one that carries 0 first releases. Errors that the bus reports stop too.
    """

    key: str | None = param(default=None)
    file: str | None = param(default=None)
    pressed: str = param(default="1")
    released: str = param(default="0")
    interface: str | None = param(default=None)
    channel: str | None = param(default=None)
    id: int | None = param(min=0, max=0x1FFFFFFF, default=None)

    def __post_init__(self) -> None:
        message = [self.interface, self.channel, self.id]
        if self.key is None and self.file is None and message == [None] * 3:
            raise ValueError("give at least one of 'key', 'file' and a message ('interface', 'channel' and 'id')")
        if None in message and message != [None] * 3:
            raise ValueError("a message needs all of 'interface', 'channel' and 'id'")
        if self.key is not None and self.key not in KEYS and not (len(self.key) == 1 and " " <= self.key <= "~"):
            raise ValueError(f"'key' is {self.key!r}; say space, esc or one character of plain ASCII")
        if len(self.pressed) != 1 or len(self.released) != 1 or self.pressed == self.released:
            words = f"are {self.pressed!r} and {self.released!r}"
            raise ValueError(f"'pressed' and 'released' {words}; give one character each, not the same")


class EstopSource(Protocol):
    """One input of the emergency stop. Looks may raise anything: then the input is pressed."""

    name: str

    def look(self) -> str:
        """Without waiting: how it was pressed since the last look, or is; empty if it was not."""
        ...

    def held(self) -> str:
        """The same for a reset: what stops it."""
        ...

    def close(self) -> None:
        """Let go of what was opened; idempotent."""
        ...


class Estop:
    """Inputs that stop a run; once one was pressed, the stop stays until `reset`."""

    def __init__(self, sources: Sequence[EstopSource]) -> None:
        self._sources = tuple(sources)
        self._looks = tuple((source.look, source.name) for source in sources)
        self._cause = ""

    def pressed(self) -> str:
        """The cause in words, empty while nothing is pressed. Never raises, never waits; for every tick."""
        if not self._cause:
            for look, name in self._looks:
                cause = _ask(look, name)
                if cause:
                    self._cause = cause
                    break
        return self._cause

    def reset(self) -> None:
        """Raises RunError, and stays pressed, while an input is pressed (a key: was pressed again meanwhile)."""
        for source in self._sources:
            if cause := _ask(source.held, source.name):
                self._cause = cause
                raise RunError(f"{cause}; it cannot be reset while it is pressed, release it and reset again")
        self._cause = ""


def open_estop(params: EstopParams, place: PlaceOf, stack: ExitStack) -> Estop:
    """The inputs of `params`; `stack` closes them. place(*keys): where keys of `params` stand.

    Raises InputError at the place of an input that cannot be had. One that is pressed already is found by `pressed`.
    """
    sources: list[EstopSource] = []
    # the terminal comes last: nothing that fails after it has to give it back
    for given, kind in ((params.file, FileSource), (params.interface, CanSource), (params.key, KeySource)):
        if given is not None:
            sources.append(stack.enter_context(closing(kind(params, place))))
    return Estop(sources)


def _ask(look: Callable[[], str], name: str) -> str:
    """What a look finds, as the cause of a stop; whatever it raises is one."""
    try:
        cause = look()
    except Exception as error:
        cause = f"{name} cannot be read ({_why(error)})"
    return cause and f"the emergency stop: {cause}"


def _why(error: Exception) -> str:
    return getattr(error, "strerror", None) or " ".join(str(error).split()) or type(error).__name__


class FileSource:
    """The first character of a file, opened by its path in every look.

    A file that stays open would not show that another one has taken its place; to compare the two costs nearly as much.
    """

    def __init__(self, params: EstopParams, place: PlaceOf) -> None:
        self.name = f"'{params.file}'"
        self._path, self._pressed, self._released = params.file or "", params.pressed, params.released
        self._let_go = params.released.encode()
        # without O_NONBLOCK, a FIFO that nobody writes to would hold the loop up for ever
        self._flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            self._read()
        except (OSError, ValueError) as error:
            what = f"cannot read {self.name}: {_why(error)}; look at its path and its permissions"
            raise InputError(what, place("file")) from None

    def _read(self) -> bytes:
        file = os.open(self._path, self._flags)
        try:
            return os.read(file, len(self._let_go))
        finally:
            os.close(file)

    def look(self) -> str:
        found = self._read()
        if found == self._let_go:
            return ""
        word = found.decode(errors="replace")
        doubt = "" if word == self._pressed else f", neither {self._pressed!r} nor {self._released!r}"
        return f"{self.name} reads {word!r}{doubt}"

    held = look

    def close(self) -> None:
        return None


class CanSource:
    """Messages of one identifier on a CAN bus, in any number since the last look."""

    def __init__(self, params: EstopParams, place: PlaceOf) -> None:
        try:
            import can
        except ImportError:
            what = "an emergency stop by message needs python-can: pip install 'cosim[can]'"
            raise InputError(what, place("interface")) from None
        interface, channel, self._id = params.interface or "", params.channel or "", params.id or 0
        self.name = f"message {self._id:#x} on {interface} {channel}"
        self._wide, self._state = self._id > 0x7FF, ""
        mask = 0x1FFFFFFF if self._wide else 0x7FF
        wanted: Any = [{"can_id": self._id, "can_mask": mask, "extended": self._wide}]
        # where python-can would have to filter, it gives None for each message of others, as if there were no more
        filters = wanted if interface in FILTERING else None
        try:
            self._bus = can.Bus(channel=channel, interface=interface, can_filters=filters)
        except Exception as error:  # every interface has errors of its own
            what = f"cannot open the CAN bus '{channel}' ({interface}): {_why(error)}; look at its name and its cable"
            raise InputError(what, place("channel")) from None

    def _drain(self, most: int) -> tuple[str, bool]:
        """(how it was pressed in the messages that waited, whether all were read)."""
        found = ""
        for _ in range(most):
            message = self._bus.recv(0.0)
            if message is None:
                return found, True
            if message.is_error_frame:
                self._state = f"{self.name} may be lost, the bus reports an error"
            elif message.arbitration_id == self._id and message.is_extended_id == self._wide:
                self._state = "" if message.data[:1] == b"\0" else self.name
            found = found or self._state
        return found, False

    def look(self) -> str:
        return self._drain(MOST)[0]

    def held(self) -> str:
        """Only the last message counts: many gather while nobody looks."""
        _, all_read = self._drain(MOST_OLD)
        return self._state if all_read else self.name

    def close(self) -> None:
        with suppress(Exception):  # a bus that failed may fail to close
            self._bus.shutdown()


class KeySource:
    """A key of the terminal, which gives every key at once and shows none until `close`.

    Ctrl-C interrupts as ever; Ctrl-Z and Ctrl-S, which would hold the loop up with the motors on, do nothing, nor does
    Ctrl-\\, which would end the program at once.
    """

    def __init__(self, params: EstopParams, place: PlaceOf) -> None:
        file = _terminal()
        if file is None:
            what = (
                "the emergency stop by key needs a terminal; run in the foreground of one or give 'file' or a message"
            )
            raise InputError(what, place("key"))
        import termios

        key = params.key or ""
        self.name = f"key {key}"
        self._key, self._file = KEYS.get(key, key.lower().encode()), file
        self._before: Any = termios.tcgetattr(file)
        self._poll = select.poll()
        self._poll.register(file, select.POLLIN)
        mode = termios.tcgetattr(file)
        mode[0] &= ~termios.IXON
        mode[3] &= ~(termios.ICANON | termios.ECHO)
        mode[6][termios.VMIN], mode[6][termios.VTIME] = 1, 0
        mode[6][termios.VSUSP] = mode[6][termios.VQUIT] = b"\0"
        atexit.register(self.close)
        # what was typed before stays: somebody may have wanted to stop already
        termios.tcsetattr(file, termios.TCSANOW, mode)

    def look(self) -> str:
        if not self._poll.poll(0):
            return ""
        typed = os.read(self._file, 1024)
        if not typed:
            raise RunError("the terminal is gone")
        return self.name if self._key in typed.lower() else ""

    held = look

    def close(self) -> None:
        import termios

        atexit.unregister(self.close)
        before, self._before = self._before, None
        if before is not None:
            with suppress(termios.error, OSError):  # the terminal may be gone
                termios.tcflush(self._file, termios.TCIFLUSH)  # keys of a run are none for the shell
                termios.tcsetattr(self._file, termios.TCSANOW, before)


def _terminal() -> int | None:
    """The terminal on standard input; None where there is none, or where another program has its keys."""
    try:
        file = sys.stdin.fileno()
        if not os.isatty(file):
            return None
    except (AttributeError, ValueError, OSError):  # standard input is closed, or something else took its place
        return None
    with suppress(OSError):  # a terminal that is not the one of this session has no foreground
        return file if os.tcgetpgrp(file) == os.getpgrp() else None
    return file
