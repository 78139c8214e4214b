"""Alarms of limits that warned or saturated, by occurrence: the time in which a joint exceeds a limit repeatedly."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

import numpy as np

from cosim.control.limits import BITS, LIMITS, SATURATE

if TYPE_CHECKING:
    from cosim.simulation.tick.tick_model import TickModel

PAUSE = 0.1  # s; an alarm that returns sooner is the same occurrence


def alarm_texts(tick_model: TickModel) -> dict[tuple[int, str], str]:
    """(joint, key of a limit that warns or saturates) -> the message when the joint exceeds it."""
    guard, model = tick_model.guard, tick_model.plant.model
    texts = {}
    for row in LIMITS:
        saturates = guard.has_action(SATURATE, row.key)
        for k in np.flatnonzero(guard.raises_alarm(row.key)).tolist():
            limit = row.show([guard.bounds[name][k] for name in row.bound_keys], model.dof_units[k])
            template = row.saturation if saturates[k] else row.warning
            texts[k, row.key] = f"{model.dof_names[k]}: {template.format(limit=limit)}"
    return dict(sorted(texts.items()))


class AlarmCount(TypedDict):
    """The alarms of a limit of a joint in a run, JSON-ready."""

    what: str  # the message
    ticks: int
    occurrences: int
    first_s: float


class LimitAlarms:
    """Follows the alarm masks of the guard from block to block of rows, and counts. Plain data."""

    def __init__(self, tick_model: TickModel) -> None:
        self._step, self._names = tick_model.step, tuple(tick_model.plant.model.dof_names)
        # joint -> limit -> its alarms, where there were any
        self.counts: dict[str, dict[str, AlarmCount]] = {}
        self._pause = PAUSE / tick_model.step  # ticks
        self._warned = tick_model.row.place("warned").where
        self._time = tick_model.row.index("t")[0]
        self._messages = alarm_texts(tick_model)
        self._last = dict.fromkeys(self._messages, -np.inf)  # tick of the last alarm

    def __call__(self, rows: np.ndarray) -> list[tuple[float, str]]:
        """(time [s], message) of every occurrence that begins in these rows (k, nr)."""
        if not rows[:, self._warned].any():
            return []
        masks = rows[:, self._warned].astype(np.int64)
        times, begun = rows[:, self._time], []
        ticks = np.rint(times / self._step)
        for (k, key), message in self._messages.items():
            where = np.flatnonzero(masks[:, k] & int(BITS[key]))
            if not len(where):
                continue
            starts = where[np.diff(ticks[where], prepend=self._last[k, key]) > self._pause]
            self._last[k, key] = float(ticks[where[-1]])
            first: AlarmCount = {"what": message, "ticks": 0, "occurrences": 0, "first_s": float(times[where[0]])}
            name = self._names[k]
            count = self.counts.setdefault(name, {}).setdefault(key, first)
            count["ticks"] += len(where)
            count["occurrences"] += len(starts)
            begun += [(float(times[tick]), message) for tick in starts]
        return begun
