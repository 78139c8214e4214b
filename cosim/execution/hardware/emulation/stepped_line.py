"""Connections in memory between drivers and emulated drives, on one simulated time: nothing waits for a clock.

An item arrives in the instant in which it is sent. Time passes only while a driver waits for an item, and from tick to
tick; the steps of the physics are taken on the way.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from functools import partial

from cosim.core.driver_contract import BusItem
from cosim.core.errors import RunError
from cosim.execution.hardware.emulation.server import EmulationServer

START_NS = 10_000_000_000  # the time at first; 0 would stand for never
NOT_OPEN = "the connection is not open"
BUS_OFF = "bus off: the controller counted too many errors; check wiring, termination and bit rate"


class SimulatedTime:
    """The time [ns] of drivers and of the emulated drives of `server`."""

    server: EmulationServer

    def __init__(self) -> None:
        self.t_ns = START_NS
        self.attend: Callable[[], object] | None = None  # called after each step of the physics
        self._attending = False

    def now(self) -> int:
        return self.t_ns

    def wait_until(self, t_ns: int) -> None:
        """Let the time pass."""
        while self.t_ns < t_ns:
            self.step(t_ns)

    def step(self, t_ns: int) -> None:
        """Let the time pass until then, at most to the next step of the physics."""
        if self.server.due_ns > t_ns:
            self.t_ns = t_ns
            return
        self.t_ns = max(self.t_ns, self.server.due_ns)
        self.server.advance_once()
        if self.attend is not None and not self._attending:
            self._attending = True
            try:
                self.attend()
            finally:
                self._attending = False


class ItemCount:
    """The traffic of an end of a line; it has no bit rate."""

    def __init__(self) -> None:
        self.items_in = self.items_out = self.errors = 0

    def load(self, seconds: float, bitrate: float) -> float:
        return 0.0


class LineEnd:
    """One end of a line; satisfies `cosim.core.driver_contract.Connection`."""

    why_not_compiled = "lines in memory are used in Python"

    def __init__(self, name: str, time: SimulatedTime, waits: bool) -> None:
        """waits: whether the time passes while it receives."""
        self.name, self.meter, self.now = name, ItemCount(), time.now
        self.other: LineEnd = self
        self.arrived: Callable[[], object] = lambda: None  # called after an item has arrived
        self._time, self._waits = time, waits
        self._queue: deque[BusItem] = deque()
        self._ids: frozenset[int] | None = None
        self._unusable, self.lost = NOT_OPEN, False

    def accept(self, ids: Iterable[int] | None) -> None:
        """From now on receive only frames with these identifiers; None: all."""
        self._ids = None if ids is None else frozenset(ids)

    def open(self) -> None:
        self._queue.clear()
        self._unusable, self.lost = "", False

    def close(self) -> None:
        self._unusable, self.lost = NOT_OPEN, False

    def reopen(self) -> bool:
        if self.lost:
            self.open()
        return not self._unusable

    def reserve(self, items: Iterable[BusItem]) -> None:
        """No effect: no other program can reach it."""

    def bus_off(self) -> None:
        """No effect on a serial link; see `CanEnd`."""

    def send(self, item: BusItem, deadline_ns: int) -> None:
        self._check()
        self.meter.items_out += 1
        self.other.take(item)

    def take(self, item: BusItem) -> None:
        """An item arrives."""
        if not self._unusable and (self._ids is None or item.id in self._ids):
            self._queue.append(item)
            self.arrived()

    def receive(self, deadline_ns: int) -> BusItem | None:
        self._check()
        while self._waits and not self._queue and self._time.t_ns < deadline_ns:
            self._time.step(deadline_ns)
            self._check()
        if not self._queue:
            return None
        self.meter.items_in += 1
        item = self._queue.popleft()
        return item if isinstance(item, bytes) else item._replace(t_ns=self._time.t_ns)

    def _check(self) -> None:
        if self._unusable:
            raise RunError(self._unusable, self.name)


class CanEnd(LineEnd):
    """The device's end of a CAN bus."""

    def bus_off(self) -> None:
        """The host's controller is off: its connection is lost until it is opened again."""
        host = self.other
        host._unusable, host.lost = BUS_OFF, True
        host.meter.errors += 1


class SteppedLine:
    """Both ends of the connection of a driver."""

    def __init__(self, name: str, time: SimulatedTime, can: bool) -> None:
        self.host = LineEnd(name, time, waits=True)
        self.device = (CanEnd if can else LineEnd)(name, time, waits=False)
        self.host.other, self.device.other = self.device, self.host

    @property
    def ends(self) -> tuple[LineEnd, LineEnd]:
        return self.host, self.device


def join(server: EmulationServer, lines: dict[str, SteppedLine], time: SimulatedTime) -> None:
    """Let the emulated drives answer what arrives on these lines, by driver."""
    time.server = server
    for connection in server.connections:
        lines[connection.name].device.arrived = partial(server.listen, connection, 0)
