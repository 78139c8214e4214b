"""Recorded calls again: a driver on a connection that plays what was recorded, and where it does something else."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np

from cosim.core.driver_contract import BusItem, HardwareDriver
from cosim.core.types import COMMAND, JointCommand, JointState
from cosim.execution.hardware.traffic.playback import PlaybackConnection
from cosim.execution.hardware.traffic.recorded_calls import DriverCall, MissingEntries
from cosim.execution.hardware.traffic.recorded_connection import failure
from cosim.execution.hardware.traffic.recorded_driver import MEASURED, fields_of_state
from cosim.execution.hardware.traffic.traffic_log import Fields, Passing


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
