"""The events of contacts in a run, derived from their signals: a contact touches, lifts, slips and sticks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

CHATTER = 0.01  # s; an event that comes again sooner is not listed again
TOUCHES, LIFTS, SLIPS, STICKS = "touches", "lifts", "slips", "sticks"
WHAT_CONTACTS_DO = (TOUCHES, LIFTS, SLIPS, STICKS)
STATE, LOST = "state", "lost"
FOLLOWED = (STATE, TOUCHES, SLIPS)
OPEN, STICKING, SLIDING = 0.0, 1.0, 2.0  # states


class ContactEvent(NamedTuple):
    """What a contact did at t [s], and the energy that it has lost since its event before [J]."""

    t: float
    contact: str
    did: str
    lost: float


class ContactEvents:
    """Follows the states of contacts from block to block of ticks. Plain data."""

    def __init__(self, contacts: Sequence[str], signals: Sequence[str]) -> None:
        """signals: of the columns of the blocks."""
        place = {name: k for k, name in enumerate(signals)}
        self._names = tuple(contacts)
        self._columns = np.array([place[f"{name}/{what}"] for what in FOLLOWED for name in contacts], dtype=np.intp)
        self._lost = np.array([place[f"{name}/{LOST}"] for name in contacts], dtype=np.intp)
        self._before = np.zeros(len(self._columns))
        self._listed = np.zeros(len(contacts))  # energy lost up to the last event that was listed
        self._latest: dict[tuple[str, str], float] = {}  # time of the last one of each kind

    def __call__(self, times: np.ndarray, values: np.ndarray) -> list[ContactEvent]:
        """The events of these ticks, in their order. times (k,) [s]; values (k, n): of all signals."""
        followed = values[:, self._columns]
        if (followed == self._before).all():
            return []
        now, before = (
            dict(zip(FOLLOWED, np.split(rows, len(FOLLOWED), axis=1), strict=True))
            for rows in (followed, np.vstack([self._before, followed[:-1]]))
        )
        self._before = followed[-1].copy()
        touched, slipped = (now[what] > before[what] for what in (TOUCHES, SLIPS))
        closes = (now[STATE] > OPEN).astype(float) - (before[STATE] > OPEN)
        lifted = now[TOUCHES] - before[TOUCHES] > closes  # also where it has touched and lifted within a tick
        stuck = (before[STATE] == SLIDING) & (now[STATE] == STICKING)
        happened = {TOUCHES: touched, SLIPS: slipped, STICKS: stuck, LIFTS: lifted}
        any_of_them = np.logical_or.reduce(list(happened.values()))
        found = []
        for tick, k in zip(*np.nonzero(any_of_them), strict=True):
            t, name = float(times[tick]), self._names[k]
            for did, where in happened.items():
                if not where[tick, k]:
                    continue
                again = t - self._latest.get((name, did), -np.inf) < CHATTER
                self._latest[name, did] = t
                if not again:
                    lost = float(values[tick, self._lost[k]])
                    found.append(ContactEvent(t, name, did, lost - float(self._listed[k])))
                    self._listed[k] = lost
        return found
