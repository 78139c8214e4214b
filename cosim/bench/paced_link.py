"""A pseudo terminal whose bytes take as long as on a serial link."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cosim.bench.emulation import READY, open_emulation
from cosim.timing.pacing import Pacing
from cosim.timing.privileges import acquire, quiet_interpreter

LINE_SPEED = 1e6  # bit/s of a serial line


BYTE_NS = 10_000  # on it: start, eight bits of data, stop


SPIN_NS = 200_000  # before the end of a wait for the wire, in which the clock is looked at


NEVER_NS = 1 << 62
SEND_TIMEOUT_NS = 1_000_000_000


class PacedLink:
    """The device's end of a serial line whose bytes take their time: a pseudo terminal has no bit rate.

    They go one after the other whatever their direction, while the drives do something else.
    """

    def __init__(self, link: Any, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self._link, self._now, self._free = link, clock, 0
        self._inward: deque[tuple[int, bytes]] = deque()  # with when they are there [ns]
        self._outward: deque[tuple[int, bytes]] = deque()
        self.open, self.close, self.reopen = link.open, link.close, link.reopen
        self.name, self.meter = link.name, link.meter

    def receive(self, deadline_ns: int) -> bytes | None:
        while True:
            while self._outward and self._outward[0][0] <= self._now():
                self._link.send(self._outward.popleft()[1], self._free + SEND_TIMEOUT_NS)
            if self._inward and self._inward[0][0] <= self._now():
                return self._inward.popleft()[1]
            until = min(deadline_ns, *(queue[0][0] for queue in (self._inward, self._outward) if queue), NEVER_NS)
            if chunk := self._link.receive(until - SPIN_NS):
                self._inward.append((self._over(chunk), chunk))
            elif self._now() >= deadline_ns:
                return None

    def send(self, item: bytes, deadline_ns: int) -> None:
        self._outward.append((self._over(item), item))

    def _over(self, item: bytes) -> int:
        """When an item has gone over the wire, after those before it."""
        self._free = max(self._free, self._now()) + len(item) * BYTE_NS
        return self._free


def serve_paced(path: str) -> None:
    """Emulate the drives of a rig on a serial line as fast as its wire, until the end of the process."""
    emulation = open_emulation(Path(path))
    for line in emulation.lines:
        line.link = PacedLink(line.link)
    emulation.open()
    print(READY)
    with quiet_interpreter(), acquire(Pacing()):
        emulation.serve()
