"""Time limits of calls without waiting: their clock is the test's."""

import time
from types import SimpleNamespace

import pytest

from cosim.simulation.coupling import time_limit


class Clock:
    """now: s; looks: how often a supervising thread has looked at a call."""

    def __init__(self) -> None:
        self.now, self.looks = 0.0, 0

    def passes(self, duration: float) -> None:
        """Within a call that is not overdue by then: until it was looked at."""
        self.now += duration
        seen = self.looks + 2
        while self.looks < seen:
            time.sleep(1e-3)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of time limits; supervising threads look every millisecond."""
    found, ended = Clock(), time_limit._Job.ended

    def look(job: time_limit._Job, timeout: float) -> bool:
        found.looks += 1
        return ended(job, 1e-3)

    monkeypatch.setattr(time_limit._Job, "ended", look)
    monkeypatch.setattr(time_limit, "time", SimpleNamespace(monotonic=lambda: found.now))
    return found
