"""The entries of a driver as calls: each with what passed at the connection during it, and how it ended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from cosim.execution.hardware.traffic.traffic_log import CALLS, ENDS, ITEMS, Fields, Passing, TrafficEntry


class DriverCall(NamedTuple):
    """begin: the entry of the call; entries: of the connection, CLOCK once for each time; end: the entry of its end,
    None of a call that had not ended; mixed: another thread called the driver meanwhile, so that the entries may be of
    either call."""

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
