"""Recorded calls again: a driver on a connection that plays what was recorded, without hardware and without a clock,
and where it does something else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np

from cosim.core.driver_contract import BusItem, HardwareDriver
from cosim.core.errors import RunError
from cosim.core.types import COMMAND, JointCommand, JointState
from cosim.execution.hardware.emulation.stepped_line import ItemCount
from cosim.execution.hardware.traffic.recorded_driver import MEASURED, failure, fields_of_state
from cosim.execution.hardware.traffic.traffic_log import DriverCall, Fields, MissingEntries, Passing, TrafficEntry

LOOK_NS = 10_000  # by which the time passes where a driver looks for an item that it had not looked for


def failure_of(text: str, place: str) -> RunError:
    """The error that a connection raised; see `recorded_connection.failure`."""
    name, _, what = text.partition(": ")
    kinds = [RunError, *RunError.__subclasses__()]
    return next((kind for kind in kinds if kind.__name__ == name), RunError)(what, place)


class PlaybackConnection:
    """Satisfies `cosim.core.driver_contract.Connection`. A driver that uses it as it was used gets the same items,
    times and failures.

    What another driver does instead is answered by the next entry that fits: an item for one that waits, no item for
    one that only looks while an item was still to be sent. Its time is the last entry's, and passes where it
    waits in vain, so that every wait ends.
    """

    lost, why_not_compiled = False, "recorded traffic is played in Python"

    def __init__(self, name: str) -> None:
        self.name, self.meter = name, ItemCount()
        self.sent: list[BusItem] = []  # in the present call
        self._entries: Sequence[TrafficEntry] = ()
        self._at, self._t_ns = 0, 0

    def play(self, entries: Sequence[TrafficEntry], t_ns: int) -> None:
        """The entries of the next call, which begins at t_ns."""
        self._entries, self._at, self.sent = entries, 0, []
        self._t_ns = max(self._t_ns, t_ns)

    def now(self) -> int:
        if self._at < len(self._entries) and self._entries[self._at].what == Passing.CLOCK:
            self._pass(self._entries[self._at])
            self._at += 1
        return self._t_ns

    def accept(self, ids: Iterable[int] | None) -> None:
        """No effect: what was recorded had been accepted."""

    def reserve(self, items: Iterable[BusItem]) -> None:
        """No effect: no other program can reach it."""

    def bus_off(self) -> None:
        """No effect: it is the host's end."""

    def open(self) -> None:
        self._use(Passing.CONNECTED)

    def close(self) -> None:
        """No effect."""

    def reopen(self) -> bool:
        entry = self._use(Passing.RECONNECTED)
        return entry is None or bool(entry.content.whole[0])

    def send(self, item: BusItem, deadline_ns: int) -> None:
        entry = self._use(Passing.SENT, Passing.SEND_FAILED)
        if entry is not None and entry.what == Passing.SEND_FAILED:
            raise failure_of(entry.content.text, self.name)
        self.sent.append(item)
        self.meter.items_out += 1

    def receive(self, deadline_ns: int) -> BusItem | None:
        waits = deadline_ns > self._t_ns
        skipped = {Passing.SENT} if waits else set()
        entry = self._use(Passing.RECEIVED, Passing.EMPTY, Passing.RECEIVE_FAILED, skipped=skipped)
        if entry is None:
            self._t_ns = max(self._t_ns + LOOK_NS, deadline_ns)
            return None
        if entry.what == Passing.RECEIVE_FAILED:
            raise failure_of(entry.content.text, self.name)
        if entry.what == Passing.EMPTY:
            return None
        self.meter.items_in += 1
        return entry.content

    def _use(self, *kinds: str, skipped: Iterable[str] = ()) -> TrafficEntry | None:
        """The next entry if it is of one of these kinds, which is behind the driver then; times that the driver did not
        read, and entries that may be skipped, are passed over."""
        passed = {Passing.CLOCK, *skipped}
        at = self._at
        while at < len(self._entries) and self._entries[at].what in passed:
            at += 1
        if at == len(self._entries) or self._entries[at].what not in kinds:
            return None
        self._at = at + 1
        self._pass(self._entries[at])
        return self._entries[at]

    def _pass(self, entry: TrafficEntry) -> None:
        self._t_ns = max(self._t_ns, entry.t_ns)


class PlayedDifference(NamedTuple):
    """Where a driver does not do what was recorded: in a call at run_ns, an item, a measured number or the end of it.

    what: `item`, `end`, `fault`, or the name of the number; recorded, now: item, number or text, None for none; joint:
    its index, None where it is not known; given: what the driver was called with."""

    run_ns: int
    call: str
    what: str
    recorded: Any
    now: Any
    joint: int | None = None
    given: Fields = Fields()

    def command_of(self, joint: int) -> dict[str, float]:
        """What was commanded of a joint in this call, in SI; empty unless it is a `write`."""
        if self.call != Passing.WRITE:
            return {}
        rows = np.frombuffer(self.given.numbers).reshape(len(COMMAND), -1)
        return dict(zip(COMMAND, rows[:, joint].tolist(), strict=True))


@dataclass
class PlayedTraffic:
    """What was compared. mixed: calls of two threads, which cannot be; missing: where the comparison ended early."""

    calls: int = 0
    sent: int = 0  # items
    received: int = 0
    measured: int = 0  # states
    mixed: int = 0
    differing: int = 0  # calls
    first: PlayedDifference | None = None
    missing: MissingEntries | None = None
    states: dict[int, JointState] = field(default_factory=dict)  # by their number


def play(
    driver: HardwareDriver,
    link: PlaybackConnection,
    calls: Iterable[DriverCall | MissingEntries],
) -> PlayedTraffic:
    """Call a driver, whose connection is `link`, as it was called. Its failures are part of what is compared."""
    played = PlayedTraffic()
    for call in calls:
        if isinstance(call, MissingEntries):
            played.missing = call
            break
        difference = _play_call(driver, link, call, played)
        played.calls += 1
        played.mixed += call.mixed
        if difference is not None and not call.mixed:
            played.differing += 1
            played.first = played.first or difference._replace(given=call.begin.content)
    return played


def _play_call(
    driver: HardwareDriver, link: PlaybackConnection, call: DriverCall, played: PlayedTraffic
) -> PlayedDifference | None:
    link.play(call.entries, call.begin.t_ns)
    result = Fields()
    try:
        result = _CALLS[call.what](driver, call.begin.content, played) or result
        raised = ""
    except Exception as error:  # a driver may raise what it likes
        raised = failure(error).text
    items = call.items
    played.sent += sum(entry.what == Passing.SENT for entry in items)
    played.received += sum(entry.what == Passing.RECEIVED for entry in items)
    return _difference(call, link.sent, result, raised)


def _read(driver: HardwareDriver, given: Fields, played: PlayedTraffic) -> Fields:
    deadline_ns, number = given.whole
    state = played.states.setdefault(number, JointState.zeros(len(driver.joints)))
    played.measured += 1
    driver.read(state, deadline_ns)
    return fields_of_state(state)


def _write(driver: HardwareDriver, given: Fields, played: PlayedTraffic) -> None:
    deadline_ns, valid_until_ns = given.whole
    rows = np.frombuffer(given.numbers).reshape(len(COMMAND), -1).copy()
    driver.write(JointCommand(*rows, valid_until_ns=valid_until_ns), deadline_ns)


_CALLS: Mapping[str, Callable[[HardwareDriver, Fields, PlayedTraffic], Fields | None]] = {
    Passing.OPEN: lambda driver, given, played: driver.open(),
    Passing.ENABLE: lambda driver, given, played: driver.enable(given.text),
    Passing.CLEAR: lambda driver, given, played: driver.clear(),
    Passing.READ: _read,
    Passing.WRITE: _write,
    Passing.STOP: lambda driver, given, played: driver.stop(),
    Passing.CLOSE: lambda driver, given, played: driver.close(),
}


def _difference(call: DriverCall, sent: Sequence[BusItem], result: Fields, raised: str) -> PlayedDifference | None:
    recorded = [entry for entry in call.items if entry.what == Passing.SENT]
    for entry, now in zip_longest(recorded, sent):
        was, run_ns = (None, call.begin.run_ns) if entry is None else (entry.content, entry.run_ns)
        if was != now:
            return PlayedDifference(run_ns, call.what, "item", was, now)
    if call.end is None:
        return None
    before, run_ns = call.end.content, call.end.run_ns
    then = before.text if call.end.what == Passing.RAISED else ""
    if then != raised:
        return PlayedDifference(run_ns, call.what, "end", then, raised)
    return None if raised or call.what != Passing.READ else _measured_difference(call.what, run_ns, before, result)


def _measured_difference(call: str, run_ns: int, before: Fields, now: Fields) -> PlayedDifference | None:
    was, new = (np.frombuffer(fields.numbers).reshape(len(MEASURED), -1) for fields in (before, now))
    differs = (was != new) & ~(np.isnan(was) & np.isnan(new))
    if differs.any():
        row, joint = np.argwhere(differs)[0].tolist()
        return PlayedDifference(run_ns, call, MEASURED[row], float(was[row, joint]), float(new[row, joint]), joint)
    for k, (one, other) in enumerate(zip(before.whole, now.whole, strict=True)):
        if one != other:
            what, joint = ("fault", k - 1) if k else ("time of measurement", None)
            return PlayedDifference(run_ns, call, what, one, other, joint)
    return None
