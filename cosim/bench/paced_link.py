"""A pseudo terminal whose bytes take as long as on a serial link."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

from cosim.bench.emulation import READY, emulation_for
from cosim.timing.pacing import Pacing
from cosim.timing.privileges import acquire, quiet_interpreter
from cosim.types import Connection

BYTE_NS = 10_000  # at 1 Mbit/s: a start bit, eight data bits, a stop bit
SPIN_NS = 200_000  # at the end of a wait, in which the clock is polled
NEVER_NS = 1 << 62
SEND_TIMEOUT_NS = 1_000_000_000


class PacedLink:
    """The device's end of a half-duplex serial link: a pseudo terminal, which has no bit rate, with delayed bytes.

    Bytes follow each other whatever their direction; the emulated drives go on meanwhile.
    """

    def __init__(self, link: Connection, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self._link, self.now, self._free = link, clock, 0
        self._inward: deque[tuple[int, bytes]] = deque()  # (time of arrival in ns, bytes)
        self._outward: deque[tuple[int, bytes]] = deque()
        self.open, self.close, self.reopen, self.bus_off = link.open, link.close, link.reopen, link.bus_off
        self.reserve = link.reserve
        self.name, self.meter, self.why_not_compiled = link.name, link.meter, link.why_not_compiled

    @property
    def lost(self) -> bool:
        return self._link.lost

    def receive(self, deadline_ns: int) -> bytes | None:
        while True:
            while self._outward and self._outward[0][0] <= self.now():
                self._link.send(self._outward.popleft()[1], self._free + SEND_TIMEOUT_NS)
            if self._inward and self._inward[0][0] <= self.now():
                return self._inward.popleft()[1]
            until = min(deadline_ns, *(queue[0][0] for queue in (self._inward, self._outward) if queue), NEVER_NS)
            if chunk := self._link.receive(until - SPIN_NS):
                self._inward.append((self._end_of(chunk), chunk))
            elif self.now() >= deadline_ns:
                return None

    def send(self, item: bytes, deadline_ns: int) -> None:
        self._outward.append((self._end_of(item), item))

    def _end_of(self, item: bytes) -> int:
        """Time [ns] when an item has been transmitted, after the items before it."""
        self._free = max(self._free, self.now()) + len(item) * BYTE_NS
        return self._free


def serve_paced(path: str, *keys: str) -> None:
    """Emulate the drives of a rig on paced serial links until the process ends."""
    emulation = emulation_for(Path(path), keys)
    for connection in emulation.connections:
        connection.link = PacedLink(connection.link)
    emulation.open()
    print(READY)
    with quiet_interpreter(), acquire(Pacing()):
        emulation.serve()
