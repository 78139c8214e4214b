"""A connection that plays recorded traffic: without hardware, without a clock."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cosim.core.driver_contract import BusItem
from cosim.core.errors import RunError
from cosim.execution.hardware.emulation.stepped_line import ItemCount
from cosim.execution.hardware.traffic.traffic_log import Passing, TrafficEntry

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
