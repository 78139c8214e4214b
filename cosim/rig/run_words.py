"""The words of a run and its clients: its states besides those of the scheduler, and the stop that a client orders."""

from __future__ import annotations

WAITING, ENDED = "waiting", "ended"


class OrderedStop(Exception):
    """A client stops the run. event: what happened, or fault: why it failed."""

    def __init__(self, event: str = "", fault: str = "") -> None:
        super().__init__(event or fault)
        self.event, self.fault = event, fault
