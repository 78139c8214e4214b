"""One end of a connection to drives in memory, on the fake clock."""

from __future__ import annotations

from cosim.plugins.drivers.transport import TrafficMeter
from tests.kit.clock import FakeClock


class FakeConnection:
    """Opens, closes and tells the time. A test's own class adds `send` and `receive`, and lets the time pass."""

    name = "fake connection"

    def __init__(self, clock: FakeClock | None = None) -> None:
        self.clock = FakeClock() if clock is None else clock
        self.meter = TrafficMeter()
        self.is_open = False

    @property
    def t_ns(self) -> int:
        return self.clock.time

    @t_ns.setter
    def t_ns(self, time: int) -> None:
        self.clock.time = time

    def now(self) -> int:
        return self.clock.now()

    def open(self) -> None:
        self.is_open = True

    def close(self) -> None:
        self.is_open = False

    def reopen(self) -> bool:
        return self.is_open
