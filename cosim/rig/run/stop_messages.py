"""What a run and its clients call its end and its wait: states besides those of the scheduler, and the ordered stop."""

from __future__ import annotations

WAITING, ENDED = "waiting", "ended"


class OrderedStop(Exception):
    """A client stops the run. event: what happened, or fault: why it failed."""

    def __init__(self, event: str = "", fault: str = "") -> None:
        super().__init__(event or fault)
        self.event, self.fault = event, fault
