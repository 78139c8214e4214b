"""The events of a run, derived from the rows of its ticks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cosim.output.limit_alarms import LimitAlarms
from cosim.tick.tick_model import TickModel
from cosim.types import Level


class RunEvent(NamedTuple):
    """An event at t [s] with an energy loss `lost` [J]. Several `occurrences` of an event within one tick have the time
    of the last one. Alarms of the guard have the level warning."""

    t: float
    name: str
    lost: float
    occurrences: int = 1
    level: Level = "info"


@dataclass
class EventMonitor:
    """Derives events from blocks of rows: changes of the plant's modes, active fallbacks and alarms of the guard."""

    tick_model: TickModel

    def __post_init__(self) -> None:
        self._loops = [loop for loop in self.tick_model.loops if loop.fallback is not None]
        self._fallback_active = np.zeros(len(self._loops))
        self.limit_alarms = LimitAlarms(self.tick_model)
        self.names = self.tick_model.plant.modes.event_names if self.tick_model.plant.modes else ()
        self._count, self._lost = np.zeros(len(self.names)), np.zeros(len(self.names))

    def __call__(self, rows: np.ndarray) -> list[RunEvent]:
        """New events in these rows (k, nr), in order of time."""
        if not len(rows):
            return []
        alarms = [RunEvent(t, what, 0.0, level="warning") for t, what in self.limit_alarms(rows)]
        return sorted(self._events(rows) + self._takeovers(rows) + alarms)

    def _events(self, rows: np.ndarray) -> list[RunEvent]:
        if not self.names:
            return []
        count, last, lost = (rows[:, self.tick_model.row.index("plant", "modes", w)] for w in ("count", "last", "lost"))
        steps = np.diff(count, axis=0, prepend=self._count[None])
        spent = np.diff(lost, axis=0, prepend=self._lost[None])
        self._count, self._lost = count[-1], lost[-1]
        return [
            RunEvent(float(last[tick, k]), self.names[k], float(spent[tick, k]), int(steps[tick, k]))
            for tick, k in zip(*np.nonzero(steps), strict=True)
        ]

    def _takeovers(self, rows: np.ndarray) -> list[RunEvent]:
        """Fallbacks that took over, each at its first active tick."""
        if not self._loops:
            return []
        row = self.tick_model.row
        active = np.hstack([rows[:, row.index("fallback_active", loop.name)] for loop in self._loops])
        started = np.diff(active, axis=0, prepend=self._fallback_active[None]) > 0.0
        self._fallback_active, times = active[-1], rows[:, row.index("t")[0]]
        events = []
        for tick, k in zip(*np.nonzero(started), strict=True):
            loop = self._loops[k]
            why = loop.failure or "its command was not finite"
            what = f"controller '{loop.name}' failed: its fallback has taken over ({why})"
            events.append(RunEvent(float(times[tick]), what, 0.0))
        return events
