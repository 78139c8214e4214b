"""The events of a run, derived from the rows of its ticks, and alarms of limits that warned or saturated, by
occurrence: the time in which a joint exceeds a limit repeatedly."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, TypedDict

import numpy as np

from cosim.control.limits import BITS, LIMITS, SATURATE
from cosim.core.types import Level
from cosim.output.contact_events import ContactEvents
from cosim.simulation.plant.contact_limits import CONTACT_LIMITS

if TYPE_CHECKING:
    from cosim.simulation.tick.tick_model import TickModel

NO_SIGNALS = np.empty((0, 0))
PAUSE = 0.1  # s; an alarm that returns sooner is the same occurrence

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
    """Derives events from blocks of rows: changes of the plant's modes, what contacts do, active fallbacks and alarms
    of limits.

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
        contacts = [contact.name for contact in tick_model.plant.contacts.contacts.members]
        # of exact contacts the modes of the plant know the instants
        from_signals = contacts and not tick_model.plant.exact
        self._contacts = ContactEvents(contacts, tick_model.signals.names) if from_signals else None

    def __call__(
        self, rows: np.ndarray, failures: Sequence[str] = (), signals: np.ndarray = NO_SIGNALS
    ) -> list[RunEvent]:
        """New events in these rows (k, nr), in order of time; failures: see `TickBlock`; signals (k, n): of the same
        ticks, of a rig with contacts."""
        if not len(rows):
            return []
        alarms = [RunEvent(t, what, 0.0, level="warning") for t, what in self.limit_alarms(rows, signals)]
        found = sorted(self._events(rows) + self._takeovers(rows, failures) + alarms)
        # what contacts do within a tick is in order already
        return sorted([*found, *self._of_contacts(rows, signals)], key=lambda event: event.t)

    def _of_contacts(self, rows: np.ndarray, signals: np.ndarray) -> list[RunEvent]:
        if self._contacts is None:
            return []
        found = self._contacts(rows[:, self._time], signals)
        return [RunEvent(event.t, f"{event.contact} {event.did}", event.lost) for event in found]

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


class LimitAlarms:
    """Follows the alarm masks of the guard, and the limits of contacts that warn, from block to block of rows, and
    counts. Plain data."""

    def __init__(self, tick_model: TickModel) -> None:
        self._step, self._names = tick_model.step, tuple(tick_model.plant.model.dof_names)
        # joint or contact -> limit -> its alarms, where there were any
        self.counts: dict[str, dict[str, AlarmCount]] = {}
        self._pause = PAUSE / tick_model.step  # ticks
        self._warned = tick_model.row.place("warned").where
        self._time = tick_model.row.index("t")[0]
        self._messages = alarm_texts(tick_model)
        self._last: dict[tuple[str, str], float] = {}  # tick of the last alarm
        self._of_contacts = _limits_of_contacts(tick_model)

    def __call__(self, rows: np.ndarray, signals: np.ndarray = NO_SIGNALS) -> list[tuple[float, str]]:
        """(time [s], message) of every occurrence that begins in these rows (k, nr); signals: see `EventMonitor`."""
        times, begun = rows[:, self._time], []
        if rows[:, self._warned].any():
            masks = rows[:, self._warned].astype(np.int64)
            for (k, key), message in self._messages.items():
                begun += self._begun(self._names[k], key, message, times, masks[:, k] & int(BITS[key]) != 0)
        for one in self._of_contacts:
            exceeded = one.sign * signals[:, one.column] > one.bound
            begun += self._begun(one.contact, one.key, one.message, times, exceeded)
        return begun

    def _begun(
        self, owner: str, key: str, message: str, times: np.ndarray, exceeded: np.ndarray
    ) -> list[tuple[float, str]]:
        """The occurrences of one limit that begin in these ticks; exceeded: bool (k,)."""
        where = np.flatnonzero(exceeded)
        if not len(where):
            return []
        ticks = np.rint(times / self._step)
        starts = where[np.diff(ticks[where], prepend=self._last.get((owner, key), -np.inf)) > self._pause]
        self._last[owner, key] = float(ticks[where[-1]])
        first: AlarmCount = {"what": message, "ticks": 0, "occurrences": 0, "first_s": float(times[where[0]])}
        count = self.counts.setdefault(owner, {}).setdefault(key, first)
        count["ticks"] += len(where)
        count["occurrences"] += len(starts)
        return [(float(times[tick]), message) for tick in starts]


class _LimitOfContact(NamedTuple):
    """A limit that warns: where `sign` times a signal is above a bound."""

    contact: str
    key: str
    column: int
    sign: float
    bound: float
    message: str


def _limits_of_contacts(tick_model: TickModel) -> list[_LimitOfContact]:
    found = []
    for contact in tick_model.plant.contacts.contacts.members:
        for key, bound, stops in contact.limits:
            if not stops:
                limit = CONTACT_LIMITS[key]
                column = list(tick_model.signals.names).index(f"{contact.name}/{limit.signal}")
                message = limit.warning(contact.name, bound)
                found.append(_LimitOfContact(contact.name, key, column, limit.sign, bound, message))
    return found


class AlarmCount(TypedDict):
    """The alarms of a limit of a joint or contact in a run, JSON-ready."""

    what: str  # the message
    ticks: int
    occurrences: int
    first_s: float


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
