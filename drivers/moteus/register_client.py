"""Single drives of a line: frames to one of them outside of the cycle, and its answers."""

from __future__ import annotations

from collections.abc import Sequence

from cosim.drivers.moteus.codec import arbitration
from cosim.drivers.transport import CanFrame, Connection, now

ANSWER_NS = 20_000_000  # in the cycle of switching on
PATIENCE_NS = 100_000_000  # how long an answer may take when nobody is in a hurry
MOST = 256  # frames taken at once, so that a flood of them holds up nobody
TRIES = 5


class RegisterClient:
    """The drives of a line by their index; the host's own id is 0."""

    def __init__(self, link: Connection[CanFrame], nodes: Sequence[int], prefix: int) -> None:
        """nodes: ids of the drives; prefix: of all ids."""
        self._link = link
        self.ask_ids = [arbitration(0, node, prefix, reply=True) for node in nodes]  # all are extended
        self.tell_ids = [arbitration(0, node, prefix) for node in nodes]
        self.index = {arbitration(node, 0, prefix): k for k, node in enumerate(nodes)}  # of answers

    def tell(self, k: int, data: bytes) -> None:
        """A frame that is not answered. Raises LinkError."""
        id = self.tell_ids[k]
        self._link.send(CanFrame(id, data, id > 0x7FF, True, True), now() + ANSWER_NS)

    def ask(self, k: int, data: bytes, tries: int = TRIES) -> CanFrame | None:
        """The answer to a frame, None when there is none after some tries. Raises LinkError."""
        for _ in range(MOST):
            if self._link.receive(0) is None:  # else a late answer to something else
                break
        for _ in range(tries):
            deadline_ns = now() + PATIENCE_NS
            self._link.send(CanFrame(self.ask_ids[k], data, True, True, True), deadline_ns)
            while (frame := self._link.receive(deadline_ns)) is not None:
                if self.index.get(frame.id) == k:
                    return frame
                if now() > deadline_ns:
                    break
        return None
