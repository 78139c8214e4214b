"""A compiled loop that calls drivers on lines in memory, in simulated time."""

from __future__ import annotations

import numpy as np

from cosim.apps.scenario.stepped_engine import SteppedDrives
from cosim.execution.bus_engine import BusEngine
from cosim.execution.hardware.emulation.stepped_line import SimulatedTime
from cosim.execution.timing.clock_sources import PythonClock
from cosim.simulation.loop.pacing import Pacing, settings
from cosim.simulation.loop.tick_ring import PacingMemory, SharedWord, TickRing


class SteppedClock(PythonClock):
    """The time of drivers and emulated drives, which passes while a tick is waited for."""

    def __init__(self, time: SimulatedTime) -> None:
        super().__init__()
        self._time = time

    def now(self) -> int:
        return self._time.now()

    def cpu(self) -> int:
        return 0

    def wait(self, due_ns: int) -> int:
        self._time.wait_until(due_ns)
        return self._time.now()


class SteppedLoop(SteppedDrives, BusEngine):
    """The compiled engine around these drivers."""

    def run(self, count: int) -> tuple[np.ndarray, str]:
        """See `Engine.run`: each tick when it is due in simulated time."""
        assert self._zero_ns is not None
        ring = TickRing(self.program, count, stamped=True)
        ring.words[SharedWord.START] = self._zero_ns + self.number * self.tick_model.step_ns
        never_late = Pacing(overrun="skip", warm_up=1e9)
        deadlines = np.array(self._deadlines, np.int64)
        pace = PacingMemory(SteppedClock(self.time), settings(never_late, self.tick_model.step_ns), deadlines)
        self.run_ticks(ring, count, pace)
        rows, _ = ring.take()
        return rows, self.fault_message(ring.status, rows)
