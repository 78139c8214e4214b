"""Alarms of limits that warned or saturated, by occurrence: the time in which a joint exceeds a limit repeatedly."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

import numpy as np

from cosim.control.limits import BITS, LIMIT_OF, LIMITS, SATURATE

if TYPE_CHECKING:
    from cosim.tick.tick_model import TickModel

PAUSE = 0.1  # s; an alarm that returns sooner is the same occurrence


def alarm_text(tick_model: TickModel, k: int, key: str) -> str:
    """The message of joint k when it exceeds a limit that warns or saturates."""
    guard, model, row = tick_model.guard, tick_model.plant.model, LIMIT_OF[key]
    limit = row.show([guard.bounds[name][k] for name in row.bound_keys], model.dof_units[k])
    template = row.saturation if guard.has_action(SATURATE, key)[k] else row.warning
    return f"{model.dof_names[k]}: {template.format(limit=limit)}"


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
        self._column = tick_model.row.index("warned")
        self._time = tick_model.row.index("t")[0]
        guard = tick_model.guard
        alarms = [(int(k), row.key) for row in LIMITS for k in np.flatnonzero(guard.raises_alarm(row.key))]
        self._messages = {alarm: alarm_text(tick_model, *alarm) for alarm in sorted(alarms)}
        self._last = dict.fromkeys(self._messages, -np.inf)  # tick of the last alarm

    def __call__(self, rows: np.ndarray) -> list[tuple[float, str]]:
        """(time [s], message) of every occurrence that begins in these rows (k, nr)."""
        masks = rows[:, self._column].astype(np.int64)
        if not masks.any():
            return []
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
