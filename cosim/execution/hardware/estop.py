"""The emergency stop: a key of the terminal, a file such as a GPIO pin's, or a message on a CAN bus.

Every input is polled in each tick and never blocks. It fails safe: an input that cannot be read stops the run. A silent
CAN bus is a failure only with a heartbeat; without it, a broken cable is detected only where the bus reports an error.
"""

from __future__ import annotations

import atexit
import os
import select
import socket
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing, suppress
from functools import partial
from typing import Any, Protocol

from cosim.core.errors import InputError, RunError, SourceLocation
from cosim.core.types import param, params

PlaceOf = Callable[..., SourceLocation]

KEYS = {"space": b" ", "esc": b"\x1b"}
MAX_PER_POLL = 128  # messages; more than a bus carries in a tick, and few enough not to delay the loop
MAX_BEFORE_RESET = 10_000  # messages that may have accumulated before a reset
FILTERING = {"socketcan"}  # interfaces with a receive filter
# IP_MULTICAST_ALL and IPV6_MULTICAST_ALL of Linux, which `socket` does not name
MULTICAST_ALL = {socket.AF_INET: (socket.IPPROTO_IP, 49), socket.AF_INET6: (socket.IPPROTO_IPV6, 29)}


@params
class EstopParams:
    """The inputs that stop a run; at least one of a key, a file and a message.

    key: "space", "esc" or one character, a letter in either case. file: its first character is read; every character
    except `released` means pressed. interface, channel, id: a message whose first byte is 0 releases; any other
    message, an empty one included, presses. An error that the bus reports stops the run too. heartbeat [s]: dead-man
    switch, the longest time between two messages that release; silence means pressed.
    """

    key: str | None = param(default=None)
    file: str | None = param(default=None)
    pressed: str = param(default="1")
    released: str = param(default="0")
    interface: str | None = param(default=None)
    channel: str | None = param(default=None)
    id: int | None = param(min=0, max=0x1FFFFFFF, default=None)
    heartbeat: float | None = param(unit="s", above=0, default=None)

    def __post_init__(self) -> None:
        message = [self.interface, self.channel, self.id]
        if self.key is None and self.file is None and message == [None] * 3:
            raise ValueError("give at least one of 'key', 'file' and a message ('interface', 'channel' and 'id')")
        if None in message and message != [None] * 3:
            raise ValueError("a message needs all of 'interface', 'channel' and 'id'")
        if self.heartbeat is not None and self.id is None:
            raise ValueError("'heartbeat' is of a message; give 'interface', 'channel' and 'id'")
        if self.key is not None and self.key not in KEYS and not (len(self.key) == 1 and " " <= self.key <= "~"):
            raise ValueError(f"'key' is {self.key!r}; give space, esc or one ASCII character")
        if len(self.pressed) != 1 or len(self.released) != 1 or self.pressed == self.released:
            words = f"are {self.pressed!r} and {self.released!r}"
            raise ValueError(f"'pressed' and 'released' {words}; give one character each, not the same")


class EstopSource(Protocol):
    """One input of the emergency stop. An input that raises any exception counts as pressed."""

    name: str

    def poll(self) -> str:
        """Cause, if the input is pressed or was pressed since the last poll; else empty. Never blocks."""
        ...

    def blocks_reset(self) -> str:
        """Cause, if the input prevents a reset; else empty."""
        ...

    def close(self) -> None:
        """Release the resources; idempotent."""
        ...


class Estop:
    """Inputs that stop a run; once one was pressed, the stop stays until `reset`."""

    def __init__(self, sources: Sequence[EstopSource]) -> None:
        self._sources = tuple(sources)
        self._polls = tuple((source.poll, source.name) for source in sources)
        self._cause = ""

    def pressed(self) -> str:
        """The cause, empty while no input is pressed. Called in every tick; never raises and never blocks."""
        if not self._cause:
            for poll, name in self._polls:
                cause = _cause(poll, name)
                if cause:
                    self._cause = cause
                    break
        return self._cause

    def reset(self) -> None:
        """Clear the stop. Raises RunError while an input is pressed, or if the key was pressed again since."""
        for source in self._sources:
            if cause := _cause(source.blocks_reset, source.name):
                self._cause = cause
                raise RunError(f"{cause}; release it, then start again")
        self._cause = ""


def open_estop(
    params: EstopParams, place: PlaceOf, stack: ExitStack, clock: Callable[[], int] = time.monotonic_ns
) -> Estop:
    """Open the inputs of `params`; `stack` closes them. place(*keys): location of the keys in the rig file. clock:
    monotonic time [ns].

    Raises InputError at the location of an input that cannot be opened. `pressed` reports one that is already pressed.
    """
    sources: list[EstopSource] = []
    # the terminal comes last, so that no later failure leaves it in raw mode
    kinds = ((params.file, FileSource), (params.interface, partial(CanSource, clock=clock)), (params.key, KeySource))
    for given, kind in kinds:
        if given is not None:
            sources.append(stack.enter_context(closing(kind(params, place))))
    return Estop(sources)


def _cause(poll: Callable[[], str], name: str) -> str:
    """The cause of a stop that `poll` returns; any exception is a cause."""
    try:
        cause = poll()
    except Exception as error:
        cause = f"{name} cannot be read ({_why(error)})"
    return cause and f"the emergency stop: {cause}"


def _why(error: Exception) -> str:
    return getattr(error, "strerror", None) or " ".join(str(error).split()) or type(error).__name__


class FileSource:
    """The first character of a file. The file is opened in every poll.

    An open file would not show that its path was replaced by another file, and comparing the two costs nearly as much.
    """

    def __init__(self, params: EstopParams, place: PlaceOf) -> None:
        self.name = f"'{params.file}'"
        self._path, self._pressed, self._released = params.file or "", params.pressed, params.released
        self._released_bytes = params.released.encode()
        # without O_NONBLOCK, a FIFO without a writer would block the loop
        self._flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            self._read()
        except (OSError, ValueError) as error:
            what = f"cannot read {self.name}: {_why(error)}; check its path and its permissions"
            raise InputError(what, place("file")) from None

    def _read(self) -> bytes:
        file = os.open(self._path, self._flags)
        try:
            return os.read(file, len(self._released_bytes))
        finally:
            os.close(file)

    def poll(self) -> str:
        content = self._read()
        if content == self._released_bytes:
            return ""
        text = content.decode(errors="replace")
        unknown = "" if text == self._pressed else f", neither {self._pressed!r} nor {self._released!r}"
        return f"{self.name} reads {text!r}{unknown}"

    blocks_reset = poll

    def close(self) -> None:
        return None


class CanSource:
    """Messages with one identifier on a CAN bus; with a heartbeat, their absence too."""

    def __init__(self, params: EstopParams, place: PlaceOf, clock: Callable[[], int] = time.monotonic_ns) -> None:
        try:
            import can
        except ImportError:
            what = "an emergency stop by message needs python-can: pip install python-can"
            raise InputError(what, place("interface")) from None
        interface, channel, self._id = params.interface or "", params.channel or "", params.id or 0
        self.name = f"message {self._id:#x} on {interface} {channel}"
        self._extended, self._state = self._id > 0x7FF, ""
        mask = 0x1FFFFFFF if self._extended else 0x7FF
        wanted: Any = [{"can_id": self._id, "can_mask": mask, "extended": self._extended}]
        # python-can's software filter returns None for a message that it drops, as if the queue were empty
        filters = wanted if interface in FILTERING else None
        try:
            self._bus = can.Bus(channel=channel, interface=interface, can_filters=filters)
            if interface == "udp_multicast":
                _only_own_group(self._bus.fileno())
        except Exception as error:  # each interface raises its own classes
            what = f"cannot open the CAN bus '{channel}' ({interface}): {_why(error)}; check its name and its cable"
            raise InputError(what, place("channel")) from None
        self._clock, self._heartbeat = clock, params.heartbeat
        self._silent_ns = 0  # from when on silence means pressed

    def _receive(self, timeout: float = 0.0) -> bool:
        """Judge the next message, waiting for it [s]; whether there was one."""
        message = self._bus.recv(timeout)
        if message is None:
            return False
        if message.is_error_frame:
            self._state = f"{self.name} may be lost, the bus reports an error"
        elif message.arbitration_id == self._id and message.is_extended_id == self._extended:
            self._state = "" if message.data[:1] == b"\0" else self.name
            if self._heartbeat is not None:
                self._silent_ns = self._clock() + int(self._heartbeat * 1e9)
        return True

    def _drain(self, limit: int) -> tuple[str, bool]:
        """Read up to `limit` queued messages: (cause of a press in any of them, whether the queue is empty)."""
        cause = ""
        for _ in range(limit):
            if not self._receive():
                return cause or self._silence(), True
            cause = cause or self._state
        return cause or self._silence(), False

    def _silence(self) -> str:
        if self._heartbeat is None or self._clock() < self._silent_ns:
            return ""
        return f"no {self.name} for {self._heartbeat:g} s"

    def poll(self) -> str:
        return self._drain(MAX_PER_POLL)[0]

    def blocks_reset(self) -> str:
        """Only the last queued message counts, since messages accumulate while nothing polls. A heartbeat in the queue
        may be old: the next one is waited for."""
        _, all_read = self._drain(MAX_BEFORE_RESET)
        if not all_read:
            return self.name
        if self._heartbeat is not None:
            now = self._clock()
            self._silent_ns, until = now, now + int(self._heartbeat * 1e9)
            while self._silence() and (rest := until - self._clock()) > 0:
                self._receive(rest * 1e-9)
        return self._state or self._silence()

    def close(self) -> None:
        with suppress(Exception):  # a bus that failed may fail to close
            self._bus.shutdown()


def _only_own_group(descriptor: int) -> None:
    """Receive from the joined multicast group only. python-can binds the port for all groups, and Linux delivers to
    such a socket what is sent to any group that a program of this machine has joined. Raises OSError."""
    with socket.socket(fileno=os.dup(descriptor)) as group:
        if sys.platform == "linux" and group.family in MULTICAST_ALL:
            group.setsockopt(*MULTICAST_ALL[group.family], 0)


class KeySource:
    """A key of the terminal. Until `close` the terminal delivers each key immediately and echoes none.

    Ctrl-C interrupts as usual. Ctrl-Z and Ctrl-S, which would halt the loop with the motors on, and Ctrl-\\, which
    would kill the program, are disabled.
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
        self._saved: list[Any] | None = termios.tcgetattr(file)
        self._poll = select.poll()
        self._poll.register(file, select.POLLIN)
        mode = termios.tcgetattr(file)
        mode[0] &= ~termios.IXON
        mode[3] &= ~(termios.ICANON | termios.ECHO)
        mode[6][termios.VMIN], mode[6][termios.VTIME] = 1, 0
        mode[6][termios.VSUSP] = mode[6][termios.VQUIT] = b"\0"
        atexit.register(self.close)
        # TCSANOW keeps what was typed before: it may be a request to stop
        termios.tcsetattr(file, termios.TCSANOW, mode)

    def poll(self) -> str:
        if not self._poll.poll(0):
            return ""
        typed = os.read(self._file, 1024)
        if not typed:
            raise RunError("the terminal is gone")
        return self.name if self._key in typed.lower() else ""

    blocks_reset = poll

    def close(self) -> None:
        import termios

        atexit.unregister(self.close)
        saved, self._saved = self._saved, None
        if saved is not None:
            with suppress(termios.error, OSError):  # the terminal may be gone
                termios.tcflush(self._file, termios.TCIFLUSH)  # keys typed during the run are not for the shell
                termios.tcsetattr(self._file, termios.TCSANOW, saved)


def _terminal() -> int | None:
    """The terminal on standard input; None if there is none, or if this process is not in its foreground."""
    try:
        file = sys.stdin.fileno()
        if not os.isatty(file):
            return None
    except (AttributeError, ValueError, OSError):  # standard input is closed or replaced
        return None
    with suppress(OSError):  # a terminal of another session has no foreground group
        return file if os.tcgetpgrp(file) == os.getpgrp() else None
    return file
