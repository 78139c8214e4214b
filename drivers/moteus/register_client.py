"""Registers of single drives, outside of the cycle: requests to one drive and its answers."""

from __future__ import annotations

from collections.abc import Sequence

from cosim.plugins.drivers.common.driver import MAX_BURST
from cosim.plugins.drivers.moteus.codec import arbitration
from cosim.plugins.drivers.transport import CanFrame, Connection

ANSWER_NS = 20_000_000  # for the answer to a command while a drive is switched on
TIMEOUT_NS = 100_000_000  # for an answer outside of the cycle
TRIES = 5


class RegisterClient:
    """The drives on a connection by their index; the host's own id is 0."""

    def __init__(self, link: Connection[CanFrame], nodes: Sequence[int], prefix: int) -> None:
        """nodes: ids of the drives; prefix: of all ids."""
        self._link = link
        self.request_ids = [arbitration(0, node, prefix, reply=True) for node in nodes]  # all are extended
        self.index = {arbitration(node, 0, prefix): k for k, node in enumerate(nodes)}  # of answers
        self._write_ids = [arbitration(0, node, prefix) for node in nodes]

    def unanswered(self, k: int, data: bytes) -> CanFrame:
        """A frame with these data to drive k that is not answered."""
        id = self._write_ids[k]
        return CanFrame(id, data, id > 0x7FF, True, True)

    def write(self, k: int, data: bytes) -> None:
        """Send a frame that is not answered. Raises ConnectionLost."""
        self._link.send(self.unanswered(k, data), self._link.now() + ANSWER_NS)

    def request(self, k: int, data: bytes, tries: int = TRIES) -> CanFrame | None:
        """The answer to a frame, None without one after all tries. Raises ConnectionLost."""
        for _ in range(MAX_BURST):
            if self._link.receive(0) is None:  # otherwise it was a late answer to an earlier request
                break
        for _ in range(tries):
            deadline_ns = self._link.now() + TIMEOUT_NS
            self._link.send(CanFrame(self.request_ids[k], data, True, True, True), deadline_ns)
            while (frame := self._link.receive(deadline_ns)) is not None:
                if self.index.get(frame.id) == k:
                    return frame
                if self._link.now() > deadline_ns:
                    break
        return None
