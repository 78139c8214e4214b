"""The events of a run, read from what its ticks left behind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cosim.simulation import Simulation


class Happening(NamedTuple):
    """An event that happened at t [s] and took `lost` [J] from the mechanism; `count` of the same kind within one tick
    share the last one's time."""

    t: float
    name: str
    lost: float
    count: int = 1


@dataclass
class Watch:
    """Follows the counters of a simulation's switches from block to block of rows."""

    simulation: Simulation

    def __post_init__(self) -> None:
        self.names = self.simulation.plant.switches.reported if self.simulation.plant.switches else ()
        self._count, self._lost = np.zeros(len(self.names)), np.zeros(len(self.names))

    def __call__(self, rows: np.ndarray) -> list[Happening]:
        """What happened by the time of these rows (k, nr) and was not told yet, in order of time."""
        if not self.names or not len(rows):
            return []
        count, last, lost = (
            rows[:, self.simulation.row.index("plant", "switches", w)] for w in ("count", "last", "lost")
        )
        steps = np.diff(count, axis=0, prepend=self._count[None])
        spent = np.diff(lost, axis=0, prepend=self._lost[None])
        self._count, self._lost = count[-1], lost[-1]
        found = [
            Happening(float(last[tick, k]), self.names[k], float(spent[tick, k]), int(steps[tick, k]))
            for tick, k in zip(*np.nonzero(steps), strict=True)
        ]
        return sorted(found)
