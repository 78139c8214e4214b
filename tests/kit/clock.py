"""One fake clock for every test of time."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

from cosim.execution.paced import Paced
from cosim.execution.timing import privileges
from cosim.execution.timing.clock_sources import PythonClock
from cosim.simulation.loop.clocks import NO_TRIGGER
from cosim.simulation.loop.tick_ring import SharedWord, StopRequest, TickRing

MS = 1_000_000  # ns


class FakeClock(PythonClock):
    """A clock whose time only a test changes: no wait takes real time. It paces Python engines and compiled ones.

    late[k]: how late wait number k ends after its due time or, if that is past, after its begin [ns]; None: no trigger.
    durations[k]: what each reading of the time after wait number k adds [ns]: the durations of the tasks of that tick.
    reading: what every reading of the time adds [ns].
    then[k]: called when wait number k begins.
    """

    def __init__(
        self,
        late: Sequence[int | None] = (),
        durations: Sequence[Sequence[int]] = (),
        time: int = 1_000 * MS,
        reading: int = 0,
    ) -> None:
        super().__init__()
        self.late, self.durations, self.time, self.reading = late, durations, time, reading
        self.then: Mapping[int, Callable[[], object]] = {}
        self.waits: list[int] = []  # their due times [ns]
        self._readings = 0  # of the processor time
        self._rest = iter(())  # durations of this tick that are still to come

    def now(self) -> int:
        self.time += self.reading + next(self._rest, 0)
        return self.time

    def __call__(self) -> int:
        """Where a function of the time is wanted."""
        return self.now()

    def cpu(self) -> int:
        self._readings += 1
        return 1000 * self._readings

    def wait(self, due_ns: int) -> int:
        k = len(self.waits)
        self.then.get(k, int)()
        self.waits.append(due_ns)
        late = self.late[k] if k < len(self.late) else 0
        if late is None:
            return NO_TRIGGER
        self.time = max(self.time, due_ns) + late
        self._rest = iter(self.durations[k] if k < len(self.durations) else ())
        return self.time

    def block(self, wait: int, released: Callable[[], object]) -> None:
        """Wait number `wait` blocks its thread until released() is true."""

        def poll() -> None:
            while not released():
                time.sleep(1e-4)

        self.then = {wait: poll}


class _RunClock(FakeClock):
    """Ticks that take no time wait for their reader: a full ring would lose them."""

    ring: TickRing | None = None

    def wait(self, due_ns: int) -> int:
        while self.ring is not None and not self._has_room(self.ring.words):
            time.sleep(1e-4)
        return super().wait(due_ns)

    def _has_room(self, words: np.ndarray) -> bool:
        stopped = words[SharedWord.STOP] != StopRequest.NONE
        return stopped or words[SharedWord.TAKEN] - words[SharedWord.READ] < words[SharedWord.PLACES] // 2


def in_simulated_time(patch: pytest.MonkeyPatch) -> list[FakeClock]:
    """From here on runs in real time have fake clocks, which wait for no tick: all of them, in order."""
    clocks = list[FakeClock]()
    start = Paced.start

    def opened(*_: object) -> FakeClock:
        clocks.append(_RunClock())
        return clocks[-1]

    def started(paced: Any, ticks: int, before: Callable[[Any], None], end_hold: Callable[[], None]) -> None:
        def begun(ring: Any) -> None:
            paced._clock.ring = ring
            before(ring)

        start(paced, ticks, begun, end_hold)

    patch.setattr("cosim.execution.paced.open_clock", opened)
    patch.setattr(Paced, "start", started)
    patch.setattr(privileges, "quiet_interpreter", nullcontext)
    return clocks
