"""What the guard warned of and cut, told by spells: the time in which a joint is beyond a limit again and again."""

from __future__ import annotations

from typing import Any

import numpy as np

from cosim.control import guard
from cosim.tick.tick_model import TickModel
from cosim.units import JOINT_DIMENSIONS

PAUSE = 0.1  # s; what comes back sooner is the same spell

# kind -> (what is said of a limit that warns, of one that saturates, the unit)
_WORDS = {
    "position": (
        "position beyond its limits of {} (warned)",
        "position beyond its limits of {}: command held within them, effort further out cut",
        "joint position",
    ),
    "velocity": (
        "velocity beyond its limit of {} (warned)",
        "velocity beyond its limit of {}: effort that adds to it cut",
        "joint velocity",
    ),
    "effort": ("effort beyond its limit of {} (warned)", "effort cut to its limit of {}", "joint effort"),
    "rate": (
        "effort changes faster than its limit of {} (warned)",
        "change of effort cut to its limit of {}",
        "joint effort rate",
    ),
    "temperature": (
        "temperature beyond its limit of {} (warned)",
        "temperature close to its limit of {}: limit of effort lowered",
        "degC",
    ),
    "power": ("power beyond its limit of {} (warned)", "effort cut to its limit of power of {}", "W"),
    "tracking": (
        "further from its reference than its limit of {} (warned)",
        "further from its reference than its limit of {}: commanded position held within that",
        "joint position",
    ),
}


def alarm_text(simulation: TickModel, k: int, kind: str) -> str:
    """What is said of joint k when it is beyond a limit that lets the run go on."""
    held, model = simulation.guard, simulation.plant.model
    warns, saturates, unit = _WORDS[kind]
    if unit in JOINT_DIMENSIONS:
        unit = JOINT_DIMENSIONS[unit][model.dof_units[k] == "m"]
    limit = f"{held.bound(kind)[k]:.6g}"
    if kind == "position":
        limit = f"{held.limits.lower[k]:.6g} to {held.limits.upper[k]:.6g}"
    said = saturates if held.does(guard.SATURATE, kind)[k] else warns
    return f"{model.dof_names[k]}: {said.format(f'{limit} {unit}')}"


class LimitAlarms:
    """Follows the masks of the guard from block to block of rows, and counts."""

    def __init__(self, simulation: TickModel) -> None:
        self.simulation = simulation
        self.counts: dict[str, dict[str, dict[str, Any]]] = {}  # joint -> kind -> figures, of those that came
        self._pause = PAUSE / simulation.step  # ticks
        self._column = simulation.row.index("warned")
        self._time = simulation.row.index("t")[0]
        told = [(int(k), kind) for kind in guard.KINDS for k in np.flatnonzero(simulation.guard.tells(kind))]
        self._words = {place: alarm_text(simulation, *place) for place in sorted(told)}
        self._last = dict.fromkeys(self._words, -np.inf)  # tick in which it was set

    def __call__(self, rows: np.ndarray) -> list[tuple[float, str]]:
        """(time [s], what is said) of every spell that begins in these rows (k, nr)."""
        masks = rows[:, self._column].astype(np.int64)
        if not masks.any():
            return []
        times, begun = rows[:, self._time], []
        ticks = np.rint(times / self.simulation.step)
        for (k, kind), what in self._words.items():
            where = np.flatnonzero(masks[:, k] & int(guard.BITS[kind]))
            if not len(where):
                continue
            starts = where[np.diff(ticks[where], prepend=self._last[k, kind]) > self._pause]
            self._last[k, kind] = float(ticks[where[-1]])
            first = {"what": what, "ticks": 0, "spells": 0, "first_s": float(times[where[0]])}
            name = self.simulation.plant.model.dof_names[k]
            count = self.counts.setdefault(name, {}).setdefault(kind, first)
            count["ticks"] += len(where)
            count["spells"] += len(starts)
            begun += [(float(times[tick]), what) for tick in starts]
        return begun
