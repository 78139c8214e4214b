"""How ticks are paced in real time: the section of a rig, and the one policy for late ticks.

The policy is a pure function on numbers and symbols; the compiled loop and the Python loop run the same one. Its
times are whole nanoseconds since the first tick was due, exact as doubles for a hundred days.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from cosim.core import ops
from cosim.core.layout import Layout
from cosim.core.types import Numeric, param, params

Overrun = Literal["skip", "catch_up", "stop"]


@params
class Trigger:
    """An external trigger that starts each tick: a file, device or FIFO to read from, or a message on a CAN bus."""

    file: str | None = param(default=None)
    interface: str | None = param(default=None)
    channel: str | None = param(default=None)
    id: int = param(min=0, max=0x1FFFFFFF, default=0x80)
    timeout: float = param(unit="s", above=0, max=60, default=0.1)


@params
class Pacing:
    """A real-time run. rate: seconds of the rig per second of the clock; max_consecutive: ticks that `overrun` allows;
    warm_up: time after the start in which late ticks do not count."""

    strict: bool = param(default=False)
    rate: float = param(min=1e-3, max=1000, default=1.0)
    overrun: Overrun = param(default="catch_up")
    max_consecutive: int = param(min=1, default=10)
    warm_up: float = param(unit="s", min=0, max=60, default=0.1)
    priority: int = param(min=1, max=99, default=80)
    cpu: int | None = param(min=0, default=None)
    spin: float = param(unit="s", min=0, max=0.01, default=0.0)
    trigger: Trigger | None = param(default=None)


# results of `schedule_next` and `check_clock`
OK, TOO_LATE, WENT_BACK, JUMPED = range(4)

# ns; a wake-up later than this means that the machine was suspended or the clock was set
JUMP = 1_000_000_000.0
LATE_TRIGGER = 0.5  # periods by which a trigger may be late


def due(k: Numeric, period: Numeric, slip: Numeric) -> Numeric:
    """When the k-th tick is due [ns after the first]: a whole number, computed from k, so that no error accumulates."""
    return ops.floor(k * period + 0.5) + slip


# the memory of the policy: arguments and results of `schedule_next` and `check_clock`, times in ns after the first due
PACE = Layout(
    {name: np.zeros(()) for name in ("k", "due", "previous", "woke", "ended", "late", "interval", "result", "slip")}
    | {"settings": np.zeros(4), "state": np.zeros(2)}
)
SCHEDULE_NEXT = ("k", "settings", "state", "ended", "late", "interval"), ("state", "due", "result")
CHECK_CLOCK = ("due", "previous", "woke", "state", "slip"), ("result", "slip")


def settings(pacing: Pacing, step_ns: int) -> np.ndarray:
    """(4,) constants of the policy: period [ns of the clock], warm-up [ns], ticks that may be caught up with, late
    ticks in a row that end the run (0: none)."""
    n = float(pacing.max_consecutive)
    allowed, limit = {"skip": (0.0, 0.0), "catch_up": (n, 0.0), "stop": (n, n)}[pacing.overrun]
    return np.array([step_ns / pacing.rate, pacing.warm_up * 1e9, allowed, limit])


def schedule_next(
    k: Numeric, p: Numeric, s: Numeric, ended: Numeric, late: Numeric, interval: Numeric
) -> tuple[Numeric, Numeric, Numeric]:
    """(s, when the next tick is due, OK or TOO_LATE) after tick k (count from 0).

    p: `settings`; s (2,): clock slip so far [ns], late ticks in a row; ended: end of the tick [ns after the first was
    due]; late: whether a task of it missed its deadline; interval: between the last two triggers [ns], 0 without.
    """
    period, warm_up, allowed, limit = (p[i] for i in range(4))
    slip, row = s[0], s[1]
    starting = k * period < warm_up
    late = ops.logical_or(late, interval > (1.0 + LATE_TRIGGER) * period)
    row = ops.where(ops.logical_and(late, ops.logical_not(starting)), row + 1.0, 0.0)
    behind = ended - due(k + 1.0, period, slip)
    waiting = ops.ceil(ops.maximum(behind, 0.0) / period)  # ticks that are due already
    waiting = waiting - ops.where(due(k + waiting, period, slip) < ended, 0.0, 1.0)  # less one that is due only now
    skipped = ops.maximum(waiting - ops.where(starting, 0.0, allowed), 0.0)
    slip = slip + ops.floor(skipped * period + 0.5)
    too_late = ops.logical_and(limit > 0.0, row >= limit)
    return ops.array([slip, row]), due(k + 1.0, period, slip), ops.where(too_late, float(TOO_LATE), float(OK))


def check_clock(due: Numeric, previous: Numeric, woke: Numeric, s: Numeric, slip: Numeric) -> tuple[Numeric, Numeric]:
    """(OK, WENT_BACK or JUMPED; the clock slip before this tick was due [ns]).

    The clock waited for `due`, read `previous` last and reads `woke` now [ns]; slip: the result for the last tick.
    """
    result = ops.where(woke - ops.maximum(due, previous) > JUMP, float(JUMPED), float(OK))
    result = ops.where(ops.logical_or(woke < due, woke < previous), float(WENT_BACK), result)
    return result, ops.where(result > 0.0, slip, s[0])
