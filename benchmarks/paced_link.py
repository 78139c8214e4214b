"""A pseudo terminal whose bytes take as long as on a serial link."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

from benchmarks.emulation import READY, emulation_for
from cosim.core.driver_contract import Connection
from cosim.execution.timing.privileges import acquire, quiet_interpreter
from cosim.simulation.loop.pacing import Pacing

BAUDRATE = 1_000_000
BYTE_NS = 10 * 1_000_000_000 // BAUDRATE  # a start bit, eight data bits, a stop bit
SPIN_NS = 200_000  # at the end of a wait, in which the clock is polled
SEND_TIMEOUT_NS = 1_000_000_000


class PacedLink:
    """The device's end of a half-duplex serial link: a pseudo terminal, which has no bit rate, with delayed answers.

    Bytes follow each other whatever their direction. The drives get a request when its first byte is sent, so that what
    they compute in Python delays no answer: that comes when all bytes before it and its own have been transmitted.
    """

    def __init__(self, link: Connection, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self._link, self.now, self._free = link, clock, 0
        self._outward: deque[tuple[int, bytes]] = deque()  # (time of arrival in ns, bytes)
        self.open, self.close, self.reopen, self.bus_off = link.open, link.close, link.reopen, link.bus_off
        self.reserve = link.reserve
        self.name, self.meter, self.why_not_compiled = link.name, link.meter, link.why_not_compiled

    @property
    def lost(self) -> bool:
        return self._link.lost

    def receive(self, deadline_ns: int) -> bytes | None:
        while self._outward:
            due, item = self._outward.popleft()
            time.sleep(max(due - SPIN_NS - self.now(), 0) * 1e-9)
            while self.now() < due:
                pass
            self._link.send(item, due + SEND_TIMEOUT_NS)
        chunk = self._link.receive(deadline_ns)
        if chunk:
            self._free = self._end_of(chunk)
        return chunk

    def send(self, item: bytes, deadline_ns: int) -> None:
        self._free = self._end_of(item)
        self._outward.append((self._free, item))

    def _end_of(self, item: bytes) -> int:
        """Time [ns] when an item has been transmitted, after the items before it."""
        return max(self._free, self.now()) + len(item) * BYTE_NS


def serve_paced(path: str, *keys: str) -> None:
    """Emulate the drives of a rig on paced serial links until the process ends."""
    emulation = emulation_for(Path(path), keys)
    for connection in emulation.connections:
        connection.link = PacedLink(connection.link)
    emulation.open()
    print(READY)
    with quiet_interpreter(), acquire(Pacing()):
        emulation.serve()
