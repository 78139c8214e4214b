"""A line to drives as families see it: items go out and come in, each by a deadline; a line that is lost stays lost
until its owner opens it again."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, NamedTuple, Protocol, TypeVar

from cosim.errors import InputError, RunError, SourceLocation

Item = TypeVar("Item")
Locate = Callable[..., SourceLocation]  # locate(*keys): where a key of the line's section stands

RETRY_NS = 100_000_000  # between two tries to open a lost line
NOT_OPEN = "the line is not open"
UNPLUGGED = "check the cable and the power of the adapter"

now = time.monotonic_ns


class CanFrame(NamedTuple):
    """A CAN frame; t_ns: the monotonic time at which it was taken from the line (0 for one to be sent).

    fd: CAN FD, whose data have one of its lengths; switched: the data at the higher rate. The data of a remote frame
    only say how many bytes are asked for.
    """

    id: int
    data: bytes
    extended: bool = False
    fd: bool = False
    switched: bool = False
    remote: bool = False
    t_ns: int = 0


class ConnectionLost(RunError):
    """A line failed while it was used: unplugged, bus off, or an item that could not go out by its deadline."""


class TrafficMeter:
    """What went over a line: items and bits each way, and errors (of the bus, or what could not be understood)."""

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
        """The share of the bit rate [bit/s] that was used in this time, both directions together."""
        return (self.bits_in + self.bits_out) / (seconds * bitrate)


class Connection(Protocol[Item]):
    """One end of a line. Items are Frames on CAN and bytes (chunks without framing) on serial lines.

    One thread receives; any thread may send; it is closed when nobody uses it. `open`, `close` and `reopen` may take
    their time, the others may not.
    """

    name: str  # of the line: "udp_multicast 239.74.163.2", "/dev/ttyUSB0"
    meter: TrafficMeter

    @property
    def lost(self) -> bool:
        """Whether it failed and did not come back."""
        ...

    def now(self) -> int:
        """The time [ns] on the clock of its deadlines."""
        ...

    def open(self) -> None:
        """Raises InputError: no such port, interface or channel, or it is busy."""
        ...

    def close(self) -> None:
        """Idempotent; never raises."""
        ...

    def reopen(self) -> bool:
        """Whether the line is there, after another try to open it if it was lost."""
        ...

    def bus_off(self) -> None:
        """Show the other side the end of a bus, where a line can show it; for the device's end."""
        ...

    def send(self, item: Item, deadline_ns: int) -> None:
        """Raises LinkError when the line is lost or the item cannot go out by the deadline."""
        ...

    def receive(self, deadline_ns: int) -> Item | None:
        """The next item, None when there is none by the deadline; a deadline in the past: what has come already,
        without waiting. Raises LinkError when the line is lost."""
        ...


class BaseConnection(ABC, Generic[Item]):
    """What the links here share: a name, a meter, and how a line gets lost and comes back.

    A failure makes the line lost: every later `send` and `receive` raises the same LinkError at once, without touching
    the hardware, so that nothing reaches a drive that came back by itself and was not looked at. Opening may take
    seconds; therefore only `reopen` does it, when the owner calls it outside of its cycle.
    """

    now = staticmethod(time.monotonic_ns)  # see `Connection`

    def __init__(self, name: str, locate: Locate) -> None:
        self.name, self.meter = name, TrafficMeter()
        self._locate = locate
        self._trouble = NOT_OPEN  # "" when it may be used
        self._lost = False
        self._retry_ns = 0

    @property
    def lost(self) -> bool:
        """Whether the line failed and did not come back."""
        return self._lost

    def open(self) -> None:
        """See `Connection`."""
        self.close()
        self._connect()
        self._trouble, self._lost = "", False

    def close(self) -> None:
        """See `Connection`."""
        self._trouble, self._lost = NOT_OPEN, False
        self._give_up()

    def reopen(self) -> bool:
        """Whether the line is open; one that is lost is tried again, at most every 100 ms.

        What came before the loss is gone, and drives may have been without power: the owner sets them up anew.
        """
        if not self._lost or now() < self._retry_ns:
            return not self._trouble
        self._give_up()
        try:
            self._connect()
        except InputError:  # still away: the errors of the first opening told how to mend it
            self._retry_ns = now() + RETRY_NS
            return False
        self._trouble, self._lost = "", False
        return True

    def bus_off(self) -> None:
        """See `Connection`; nothing where a line cannot show it."""
        return None

    @abstractmethod
    def send(self, item: Item, deadline_ns: int) -> None: ...

    @abstractmethod
    def receive(self, deadline_ns: int) -> Item | None: ...

    @abstractmethod
    def _connect(self) -> None:
        """Raises InputError and leaves nothing open then."""

    @abstractmethod
    def _disconnect(self) -> None:
        """Whatever there is of a connection goes; may raise."""

    def _give_up(self) -> None:
        with suppress(Exception):  # what is left of a connection cannot be mended
            self._disconnect()

    def _failed(self) -> ConnectionLost:
        """The error of a line that is lost or not open."""
        return ConnectionLost(self._trouble, self.name)

    def _lose(self, cause: str) -> ConnectionLost:
        """The line is lost; its connection is given up later, because that may take time."""
        if not self._trouble:  # not when it was closed meanwhile
            self._trouble, self._lost = cause, True
            self._retry_ns = 0
        return self._failed()

    def _unplugged(self, error: BaseException) -> ConnectionLost:
        return self._lose(f"the line is lost ({reason(error)}); {UNPLUGGED}")

    def _late(self) -> ConnectionLost:
        return ConnectionLost(
            "the line did not take what was sent by its deadline; it is too slow or blocked", self.name
        )


def reason(error: BaseException) -> str:
    """What an error of someone else's says, in one line."""
    return " ".join((getattr(error, "strerror", None) or str(error) or type(error).__name__).split()).rstrip(".")
