"""How ticks are held to time: what a rig says of it, and the one policy for ticks that are late.

The policy is a pure function on numbers and symbols, so that the loop in machine code and the loop in Python follow
the same one. Its times are whole nanoseconds since the first tick was due, exact as doubles for a hundred days.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from cosim import ops
from cosim.layout import Layout
from cosim.types import param, params

Overrun = Literal["skip", "catch_up", "stop"]


@params
class Pulse:
    """What sets the time from outside: something to read from, or a message on a CAN bus."""

    file: str | None = param(default=None)
    interface: str | None = param(default=None)
    channel: str | None = param(default=None)
    id: int = param(min=0, max=0x1FFFFFFF, default=0x80)
    timeout: float = param(unit="s", above=0, max=60, default=0.1)


@params
class Pacing:
    """A run on time. rate: seconds of the rig per second of the clock; most: of the ticks that `overrun` counts."""

    strict: bool = param(default=False)
    rate: float = param(above=0, max=1000, default=1.0)
    overrun: Overrun = param(default="catch_up")
    most: int = param(min=1, default=10)
    grace: float = param(unit="s", min=0, max=60, default=0.1)
    priority: int = param(min=1, max=99, default=80)
    cpu: int | None = param(min=0, default=None)
    spin: float = param(unit="s", min=0, max=0.01, default=0.0)
    pulse: Pulse | None = param(default=None)


# what `follow` and `wake` find
ON_TIME, TOO_LATE, WENT_BACK, JUMPED = range(4)

# ns; a wait that ends later than this after its time was no wait: the machine was suspended, or the clock was set
JUMP = 1_000_000_000.0
LATE_PULSE = 0.5  # periods that a pulse may come late


def due(k: Any, period: Any, lost: Any) -> Any:
    """When the k-th tick is due [ns after the first]: a whole number, from k itself, so that nothing adds up."""
    return ops.floor(k * period + 0.5) + lost


# the memory that the loops keep of their pace: what `follow` and `wake` take and give, times in ns after the first due
PACE = Layout(
    {name: np.zeros(()) for name in ("k", "due", "before", "woke", "ended", "late", "gap", "verdict", "lost")}
    | {"settings": np.zeros(4), "state": np.zeros(2)}
)
FOLLOW = ("k", "settings", "state", "ended", "late", "gap"), ("state", "due", "verdict")
WAKE = ("due", "before", "woke", "state", "lost"), ("verdict", "lost")


def settings(pacing: Pacing, step_ns: int) -> np.ndarray:
    """(4,) what `follow` goes by: period [ns of the clock], grace [ns], ticks that may be caught up with, late ticks
    in a row that are too many (0: never)."""
    most = float(pacing.most)
    allowed, patience = {"skip": (0.0, 0.0), "catch_up": (most, 0.0), "stop": (most, most)}[pacing.overrun]
    return np.array([step_ns / pacing.rate, pacing.grace * 1e9, allowed, patience])


def follow(k: Any, p: Any, s: Any, ended: Any, late: Any, gap: Any) -> tuple[Any, Any, Any]:
    """(s, when the next tick is due, ON_TIME or TOO_LATE) after tick k (count from 0).

    p: `settings`; s (2,): time given up so far [ns], late ticks in a row; ended: the tick's end [ns after the first was
    due]; late: whether a task of it ended after its deadline; gap: from the pulse before to this one's [ns], 0 where
    there is none.
    """
    period, grace, allowed, patience = (p[i] for i in range(4))
    lost, row = s[0], s[1]
    starting = k * period < grace
    late = ops.logical_or(late, gap > (1.0 + LATE_PULSE) * period)
    row = ops.where(ops.logical_and(late, ops.logical_not(starting)), row + 1.0, 0.0)
    behind = ended - due(k + 1.0, period, lost)
    waiting = ops.ceil(ops.maximum(behind, 0.0) / period)  # ticks that are due already
    waiting = waiting - ops.where(due(k + waiting, period, lost) < ended, 0.0, 1.0)  # less one that is due only now
    shed = ops.maximum(waiting - ops.where(starting, 0.0, allowed), 0.0)
    lost = lost + ops.floor(shed * period + 0.5)
    too_late = ops.logical_and(patience > 0.0, row >= patience)
    return ops.array([lost, row]), due(k + 1.0, period, lost), ops.where(too_late, float(TOO_LATE), float(ON_TIME))


def wake(due: Any, before: Any, woke: Any, s: Any, lost: Any) -> tuple[Any, Any]:
    """(ON_TIME, or what became of the clock; the time given up before this tick was due [ns]).

    The clock waited for `due`, said `before` last and says `woke` now [ns]; lost: as found for the last tick.
    """
    verdict = ops.where(woke - ops.maximum(due, before) > JUMP, float(JUMPED), float(ON_TIME))
    verdict = ops.where(ops.logical_or(woke < due, woke < before), float(WENT_BACK), verdict)
    return verdict, ops.where(verdict > 0.0, lost, s[0])
