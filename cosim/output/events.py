"""The events of a run, derived from the rows of its ticks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cosim.core.types import Level
from cosim.output.limit_alarms import LimitAlarms

if TYPE_CHECKING:
    from cosim.simulation.tick.tick_model import TickModel


QUANTITY = re.compile(r"(?<!\w)\d[\d.,]*(e[+-]?\d+)?( [mµ]?s\b)?")  # none: the digits of a name


def without_quantities(text: str) -> str:
    """What events that differ in their numbers alone have in common, such as missed deadlines."""
    return QUANTITY.sub("#", text)


class RunEvent(NamedTuple):
    """An event at t [s] with an energy loss `lost` [J]. Several `occurrences` of an event within one tick have the time
    of the last one. Alarms of the guard have the level warning."""

    t: float
    name: str
    lost: float
    occurrences: int = 1
    level: Level = "info"


class EventMonitor:
    """Derives events from blocks of rows: changes of the plant's modes, active fallbacks and alarms of the guard.

    Plain data: it can be sent to another process."""

    def __init__(self, tick_model: TickModel) -> None:
        row, loops = tick_model.row, tick_model.loops
        # of loops with a fallback: place among all loops, name, column of `fallback_active`
        self._loops = [
            (place, loop.name, row.index("fallback_active", loop.name)[0])
            for place, loop in enumerate(loops)
            if loop.fallback is not None
        ]
        self._fallback_active = np.zeros(len(self._loops))
        self.limit_alarms = LimitAlarms(tick_model)
        self._time = row.index("t")[0]
        self.names = tick_model.plant.modes.event_names if tick_model.plant.modes else ()
        self._columns = [row.index("plant", "modes", what) for what in ("count", "last", "lost")] if self.names else []
        self._count, self._lost = np.zeros(len(self.names)), np.zeros(len(self.names))

    def __call__(self, rows: np.ndarray, failures: Sequence[str] = ()) -> list[RunEvent]:
        """New events in these rows (k, nr), in order of time; failures: see `TickBlock`."""
        if not len(rows):
            return []
        alarms = [RunEvent(t, what, 0.0, level="warning") for t, what in self.limit_alarms(rows)]
        return sorted(self._events(rows) + self._takeovers(rows, failures) + alarms)

    def _events(self, rows: np.ndarray) -> list[RunEvent]:
        if not self.names:
            return []
        count, last, lost = (rows[:, columns] for columns in self._columns)
        steps = np.diff(count, axis=0, prepend=self._count[None])
        spent = np.diff(lost, axis=0, prepend=self._lost[None])
        self._count, self._lost = count[-1], lost[-1]
        return [
            RunEvent(float(last[tick, k]), self.names[k], float(spent[tick, k]), int(steps[tick, k]))
            for tick, k in zip(*np.nonzero(steps), strict=True)
        ]

    def _takeovers(self, rows: np.ndarray, failures: Sequence[str]) -> list[RunEvent]:
        """Fallbacks that took over, each at its first active tick."""
        if not self._loops:
            return []
        active = rows[:, [column for _, _, column in self._loops]]
        started = np.diff(active, axis=0, prepend=self._fallback_active[None]) > 0.0
        self._fallback_active, times = active[-1], rows[:, self._time]
        events = []
        for tick, k in zip(*np.nonzero(started), strict=True):
            place, name, _ = self._loops[k]
            why = (failures[place] if failures else "") or "its command was not finite"
            what = f"controller '{name}' failed: its fallback has taken over ({why})"
            events.append(RunEvent(float(times[tick]), what, 0.0))
        return events
