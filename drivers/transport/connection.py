"""The connection to drives: items are sent and received, each with a deadline. A connection that is lost stays lost
until its owner opens it again."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Generic, NamedTuple, Protocol

from cosim.core.driver_contract import Item
from cosim.core.errors import InputError, RunError, SourceLocation

Locate = Callable[..., SourceLocation]  # locate(*keys): the place of a key of the connection's section

RETRY_NS = 100_000_000  # between two attempts to open a lost connection
NOT_OPEN = "the connection is not open"
CHECK_CABLE = "check the cable and the power of the adapter"

now = time.monotonic_ns


class CanFrame(NamedTuple):
    """A CAN frame; t_ns: the monotonic time at which it was received (0 for one to be sent).

    fd: CAN FD, whose data have one of its lengths; switched: data at the higher bit rate. Of the data of a remote frame
    only the length matters.
    """

    id: int
    data: bytes
    extended: bool = False
    fd: bool = False
    switched: bool = False
    remote: bool = False
    t_ns: int = 0


class LinkFrame(Protocol):
    """A CAN frame, or what corresponds to it on other lines: data from or for the drive with a number."""

    @property
    def id(self) -> int: ...

    @property
    def data(self) -> bytes: ...

    @property
    def extended(self) -> bool: ...

    @property
    def remote(self) -> bool: ...

    @property
    def t_ns(self) -> int: ...

    def _replace(self, /, **changes: Any) -> Any: ...


class ConnectionLost(RunError):
    """A connection failed in use: unplugged, bus off, or an item that could not be sent by its deadline."""


class TrafficMeter:
    """The traffic of a connection: items and bits in each direction, and errors (of the bus, or invalid items)."""

    __slots__ = ("bits_in", "bits_out", "errors", "items_in", "items_out")

    def __init__(self) -> None:
        self.items_in = self.items_out = self.errors = 0
        self.bits_in = self.bits_out = 0.0

    def sent(self, bits: float) -> None:
        self.items_out += 1
        self.bits_out += bits

    def received(self, bits: float) -> None:
        self.items_in += 1
        self.bits_in += bits

    def load(self, seconds: float, bitrate: float) -> float:
        """Bus load, 0…1: bits in both directions during this time, relative to the bit rate [bit/s]."""
        return (self.bits_in + self.bits_out) / (seconds * bitrate)


class BaseConnection(ABC, Generic[Item]):
    """Base of the connections here: a name, a traffic meter, loss and reopening.

    After a failure the connection is lost: every later `send` and `receive` raises the same ConnectionLost without
    touching the hardware, so that nothing reaches a drive that came back by itself and was not checked. Opening may
    take seconds; therefore only `reopen` does it, which the owner calls outside of its cycle.
    """

    now = staticmethod(time.monotonic_ns)  # see `cosim.core.driver_contract.Connection`

    def __init__(self, name: str, locate: Locate) -> None:
        self.name, self.meter = name, TrafficMeter()
        self._locate = locate
        self._unusable = NOT_OPEN  # the reason, "" if it is usable
        self._lost = False
        self._retry_ns = 0

    @property
    def lost(self) -> bool:
        """Whether it failed and was not reopened."""
        return self._lost

    @property
    def why_not_compiled(self) -> str:
        """See `Connection`."""
        return f"{self.name} is used in Python"

    def check(self) -> InputError | None:
        """What of its opening can be known without opening it: raises InputError for what is wrong on every machine;
        the error of what is missing on this one now, None where nothing is. `open` raises both."""
        return None

    def open(self) -> None:
        """See `Connection`."""
        self.close()
        self._connect()
        self._unusable, self._lost = "", False

    def close(self) -> None:
        """See `Connection`."""
        self._unusable, self._lost = NOT_OPEN, False
        self._release()

    def reopen(self) -> bool:
        """Whether the connection is open; a lost one is opened again, with at most one attempt per 100 ms.

        Items received before the loss are discarded, and drives may have been without power: the owner sets them up
        again.
        """
        if not self._lost or now() < self._retry_ns:
            return not self._unusable
        self._release()
        try:
            self._connect()
        except InputError:  # still absent; the error of the first opening has the fix
            self._retry_ns = now() + RETRY_NS
            return False
        self._unusable, self._lost = "", False
        return True

    def bus_off(self) -> None:
        """See `Connection`; no effect here."""
        return None

    def reserve(self, items: Iterable[Item]) -> None:
        """See `Connection`; no effect here: a serial port has one program."""
        return None

    @abstractmethod
    def send(self, item: Item, deadline_ns: int) -> None: ...

    @abstractmethod
    def receive(self, deadline_ns: int) -> Item | None: ...

    @abstractmethod
    def _connect(self) -> None:
        """Open; after an InputError nothing is left open."""

    @abstractmethod
    def _disconnect(self) -> None:
        """Close whatever is open; may raise."""

    def _release(self) -> None:
        with suppress(Exception):  # a broken connection may fail to close
            self._disconnect()

    def _unusable_error(self) -> ConnectionLost:
        """The error of a connection that is lost or not open."""
        return ConnectionLost(self._unusable, self.name)

    def mark_lost(self, cause: str) -> ConnectionLost:
        """Mark the connection as lost; it is closed later, because that may take time."""
        if not self._unusable:  # not if it was closed meanwhile
            self._unusable, self._lost = cause, True
            self._retry_ns = 0
        return self._unusable_error()

    def connection_failed(self, error: BaseException) -> ConnectionLost:
        return self.mark_lost(f"the connection is lost ({one_line(error)}); {CHECK_CABLE}")

    def not_sent(self) -> ConnectionLost:
        return ConnectionLost(
            "a command could not be sent by its deadline; the connection is too slow or blocked", self.name
        )


def one_line(error: BaseException) -> str:
    """The text of an error of another library, in one line."""
    return " ".join((getattr(error, "strerror", None) or str(error) or type(error).__name__).split()).rstrip(".")
