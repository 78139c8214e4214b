"""What passes at a driver: the calls of its contract on one side, the items of its connection on the other.

A driver is a function of its calls, of what its connection returns and of the times that its clock shows, so all of
these are entries, in their order, and a driver that gets them again does the same again. Entries of a driver are
numbered; a number that is missing is an entry that was lost, because nobody took the entries before it in time.

The entries of a driver also make its calls: each with what passed at the connection during it, and how it ended.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

MOST_ENTRIES = 1 << 17  # entries that wait to be taken, about 30 MB


class Passing(StrEnum):
    """What an entry is: an item, the result of another use of the connection, or a call of the driver's contract."""

    SENT = "sent"
    RECEIVED = "received"
    EMPTY = "empty"  # nothing was received by the deadline
    CLOCK = "clock"  # times that the driver read
    CONNECTED = "connected"
    RECONNECTED = "reconnected"  # whether, as a number
    SEND_FAILED = "send_failed"
    RECEIVE_FAILED = "receive_failed"
    OPEN = "open"
    ENABLE = "enable"
    CLEAR = "clear"
    READ = "read"
    WRITE = "write"
    STOP = "stop"
    CLOSE = "close"
    RETURNED = "returned"
    RAISED = "raised"
    ENDED = "ended"  # the last entry of a driver: without it others may be missing behind the last one


ITEMS = frozenset({Passing.SENT, Passing.RECEIVED})
CALLS = frozenset({*map(Passing, ("open", "enable", "clear", "read", "write", "stop", "close"))})
ENDS = frozenset({Passing.RETURNED, Passing.RAISED})


class Fields(NamedTuple):
    """The content of an entry that is no item: a text, whole numbers, and float64 as little-endian bytes."""

    text: str = ""
    whole: Sequence[int] = ()
    numbers: bytes = b""


class TrafficEntry(NamedTuple):
    """An event at a driver: the begin or end of a call, an item on its connection, or a time that it read.

    driver: its place in the log; number: among its entries; t_ns: on the clock of its connection; content: the item of
    SENT and RECEIVED, else Fields; run_ns: the time in the run, of one that was read from a recording.
    """

    driver: int
    number: int
    t_ns: int
    what: str
    content: Any
    run_ns: int = 0


class TrafficLog:
    """The entries of all drivers of a run until they are taken; from any thread. It never waits."""

    def __init__(self, drivers: Sequence[str], room: int = MOST_ENTRIES) -> None:
        self.drivers = tuple(drivers)
        self.lost = [0] * len(self.drivers)  # entries, by driver
        self._room, self._numbers = room, [0] * len(self.drivers)
        # fields of entries, the last one the times that the driver has read before, which are an entry of their own
        self._waiting: deque[tuple[int, int, int, str, Any, Sequence[int]]] = deque()
        self._lock = threading.Lock()
        self._ended = False

    def of(self, driver: str) -> DriverTraffic:
        return DriverTraffic(self, self.drivers.index(driver))

    def add(self, driver: int, t_ns: int, what: str, content: Any, times: Sequence[int] = ()) -> None:
        """times: that the driver has read since its last entry. In a tick this is what recording costs."""
        with self._lock:
            number = self._numbers[driver]
            self._numbers[driver] = number + (2 if times else 1)
            if len(self._waiting) < self._room and not self._ended:
                self._waiting.append((driver, number, t_ns, what, content, times))
            elif not self._ended:
                self.lost[driver] += 2 if times else 1

    def take(self, count: int) -> list[TrafficEntry]:
        """The oldest entries, at most about so many, which are removed."""
        with self._lock:
            taken = [self._waiting.popleft() for _ in range(min(count, len(self._waiting)))]
        found = []
        for driver, number, t_ns, what, content, times in taken:
            if times:
                found.append(TrafficEntry(driver, number, times[0], Passing.CLOCK, Fields(whole=times)))
                number += 1
            found.append(TrafficEntry(driver, number, t_ns, what, content))
        return found

    def lose(self, entries: Sequence[TrafficEntry]) -> None:
        """Entries that were taken and could not be recorded."""
        for entry in entries:
            self.lost[entry.driver] += 1

    def end(self, t_ns: int) -> None:
        """Add ENDED of every driver; from now on nothing is added."""
        with self._lock:
            self._ended = True
            for driver, number in enumerate(self._numbers):
                self._waiting.append((driver, number, t_ns, Passing.ENDED, Fields(), ()))


class DriverTraffic:
    """The part of a driver in a log. `now` is the clock of its connection."""

    def __init__(self, log: TrafficLog, place: int) -> None:
        self._log, self._place = log, place
        self.now: Callable[[], int] = lambda: 0  # until the driver has a connection
        self.connected = False
        self._times: list[int] = []  # that the driver has read since the last entry

    def read_clock(self) -> int:
        """The time for the driver."""
        t_ns = self.now()
        self._times.append(t_ns)
        return t_ns

    def add(self, what: str, content: Any) -> None:
        times: Sequence[int] = ()
        if self._times:
            times, self._times = self._times, []
        self._log.add(self._place, self.now(), what, content, times)


class DriverCall(NamedTuple):
    """A call of a driver, with what passed on its connection meanwhile.

    begin: the entry of the call; entries: of the connection, CLOCK once for each time; end: the entry of its end, None
    of a call that had not ended; mixed: another thread called the driver meanwhile, so that the entries may be of
    either call.
    """

    begin: TrafficEntry
    entries: tuple[TrafficEntry, ...]
    end: TrafficEntry | None
    mixed: bool = False

    @property
    def what(self) -> str:
        return self.begin.what

    @property
    def items(self) -> list[TrafficEntry]:
        return [entry for entry in self.entries if entry.what in ITEMS]


class MissingEntries(NamedTuple):
    """Entries that are missing; run_ns: time in the run of the last one before them, None where these are the first;
    entries: how many, None where the end is missing."""

    entries: int | None
    run_ns: int | None


def calls_of(entries: Iterable[TrafficEntry]) -> Iterator[DriverCall | MissingEntries]:
    """The calls of one driver, from its entries in their order. A gap is the last; what follows it is not known."""
    begun: list[TrafficEntry] = []  # calls, more than one only of several threads
    running, passed = 0, []
    expected, last = 0, None
    for entry in entries:
        if entry.number != expected:
            yield MissingEntries(entry.number - expected, last)
            return
        expected, last = entry.number + 1, entry.run_ns
        if entry.what == Passing.ENDED:
            break
        if entry.what in CALLS:
            begun.append(entry)
            running += 1
        elif entry.what == Passing.CLOCK:
            passed += [entry._replace(t_ns=t_ns, content=Fields()) for t_ns in entry.content.whole]
        elif entry.what not in ENDS:
            passed.append(entry)
        elif running:
            running -= 1
            if not running:
                yield from _ended(begun, tuple(passed), entry)
                begun, passed = [], []
    else:
        yield MissingEntries(None, last)
        return
    if running:
        yield from _ended(begun, tuple(passed), None)


def _ended(
    begun: Sequence[TrafficEntry], passed: tuple[TrafficEntry, ...], end: TrafficEntry | None
) -> Iterator[DriverCall]:
    """Of calls that were mixed the first one has all entries."""
    if len(begun) == 1:
        yield DriverCall(begun[0], passed, end)
        return
    for k, begin in enumerate(begun):
        yield DriverCall(begin, () if k else passed, None, mixed=True)
