"""How well the ticks of a real-time run kept time: what each of them took, which deadlines were missed, and why.

It all follows from the stamps that a loop leaves, int64 (k, 3 + T) in ns of the monotonic clock, a row per tick:
when it was due, when it woke, when each of the T tasks ended, in running order (one that was not due in this tick
ends with the one before), and the CPU time of the loop's thread at the end. `numbers` (k,) are those of the ticks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from cosim.timing.pacing import LATE_PULSE

WINDOW_NS = 1_000_000_000  # of the clock, in which the real-time factor is taken
WORST = 5  # misses told one by one
BLOCK = 1 << 13  # ticks looked at in one go: what is in the cache is fast

LATE_WAKE, PULSE_LATE = "late wake", "pulse late"
PULSE = "pulse"  # in place of the task, where no task but the pulse was late


@dataclass(frozen=True)
class TaskTime:
    """What a task may take: it is due in every tick whose number is `phase` modulo `ticks`, and is to be done
    `deadline_ns` after the tick is due. bus: it talks to real hardware."""

    name: str
    ticks: int
    phase: int
    deadline_ns: int
    bus: bool

    def due(self, numbers: np.ndarray) -> np.ndarray:
        """(k,) truth values."""
        return numbers % self.ticks == self.phase


class PrivilegeStatus(Protocol):
    """Something that the loop asked of the system."""

    @property
    def name(self) -> str: ...
    @property
    def granted(self) -> bool: ...
    @property
    def mend(self) -> str: ...


def channels(tasks: Sequence[TaskTime]) -> tuple[tuple[str, str], ...]:
    """(signal, unit) of what `values` gives."""
    return tuple((f"timing/{name}", "s") for name in ("latency", *(task.name for task in tasks), "end_to_end"))


def values(tasks: Sequence[TaskTime], numbers: np.ndarray, stamps: np.ndarray) -> np.ndarray:
    """(k, 2 + T) in s: how late each tick woke, what each task took, how long after the tick was due its commands
    were written. NaN where a task was not due."""
    found = np.empty((len(numbers), len(tasks) + 2))
    found[:, 0] = stamps[:, 1] - stamps[:, 0]
    for j, task in enumerate(tasks):
        found[:, 1 + j] = np.where(task.due(numbers), took(stamps, j), np.nan)
    written = place(tasks, "write")
    found[:, -1] = np.where(tasks[written].due(numbers), stamps[:, 2 + written] - stamps[:, 0], np.nan)
    found /= 1e9
    return found


def took(stamps: np.ndarray, j: int) -> np.ndarray:
    """(k,) ns that the j-th task took; 0 where it was not due."""
    return stamps[:, 2 + j] - stamps[:, 1 + j]


def place(tasks: Sequence[TaskTime], name: str) -> int:
    return next(j for j, task in enumerate(tasks) if task.name == name)


class Miss(NamedTuple):
    """A tick that was late: by how much at most, the first task that missed its deadline (or `pulse`), why, and
    the number of the tick in which the delay began."""

    number: int
    late_ns: int
    task: str
    cause: str
    root: int


class Missed(NamedTuple):
    """All misses, (m,) each: row of the tick, lateness [ns], task, cause (places in lists), row of the root."""

    row: np.ndarray
    late: np.ndarray
    task: np.ndarray
    cause: np.ndarray
    root: np.ndarray


@dataclass(frozen=True, eq=False)
class DeadlineRecord:
    """The ticks of a run. period_ns: of the clock, between ticks; lost_ns: of the clock, given up to ticks that were
    late; dropped: rows lost because the ring was full; grace_ns: from the start, in which late ticks do not count;
    rate: seconds of the rig per second of the clock; pulsed: paced from outside, a tick is due when it wakes;
    lane: what ran the loop, "machine code" or "Python"."""

    tasks: tuple[TaskTime, ...]
    period_ns: float
    numbers: np.ndarray
    stamps: np.ndarray
    lost_ns: int
    dropped: int
    grace_ns: int
    rate: float
    pulsed: bool
    lane: str
    rights: tuple[PrivilegeStatus, ...]

    @property
    def woken(self) -> np.ndarray:
        """Rows of ticks that have a `latency_ns`: all; in a pulsed run those that follow a tick whose row is there."""
        return 1 + np.flatnonzero(np.diff(self.numbers) == 1) if self.pulsed else np.arange(len(self.numbers))

    @cached_property
    def latency_ns(self) -> np.ndarray:
        """(k,) from due to awake; in a pulsed run, where that means nothing, the intervals between pulses."""
        if self.pulsed:
            return self.stamps[self.woken, 1] - self.stamps[self.woken - 1, 1]
        return self.stamps[:, 1] - self.stamps[:, 0]

    @cached_property
    def end_to_end_ns(self) -> np.ndarray:
        """From due to the end of `write`, of the ticks in which that is due."""
        written = place(self.tasks, "write")
        rows = self.tasks[written].due(self.numbers)
        return self.stamps[rows, 2 + written] - self.stamps[rows, 0]

    @cached_property
    def busy_ns(self) -> np.ndarray:
        """(k,) from awake to the end of the last task."""
        return self.stamps[:, -2] - self.stamps[:, 1]

    def time_of(self, numbers: Any) -> Any:
        """The rig's time [s] in these ticks."""
        return numbers * (self.period_ns * self.rate) / 1e9

    # --- the rig against the clock ---

    @property
    def given_up_ns(self) -> np.ndarray:
        """(k,) by which each tick was due later, after the first, than its number says."""
        grid = np.floor((self.numbers - self.numbers[:1]) * self.period_ns + 0.5)  # as `cosim.pacing.due` has it
        return self.stamps[:, 0] - self.stamps[:1, 0] - grid.astype(np.int64)

    @property
    def drift_ns(self) -> int:
        """What the last tick is off the clock beyond the time that was given up: 0, unless pulses set the time."""
        if not len(self.numbers):
            return 0
        given_up = int(self.given_up_ns[-1])
        if self.dropped and given_up < self.lost_ns:  # some of it after the last row: but whole periods are given up
            return given_up - round(round(given_up / self.period_ns) * self.period_ns)
        return given_up - self.lost_ns

    @cached_property
    def real_time_factors(self) -> np.ndarray:
        """(w,) of windows that begin with each tick and end with the first one `WINDOW_NS` later or after that:
        (ticks taken · period) / length; 1 is on time for the rate that was asked for. Of a run that is shorter, the
        one over all of it; none of less than two ticks."""
        woke = self.stamps[:, 1]
        end = np.searchsorted(woke, woke + WINDOW_NS)
        begin = np.flatnonzero(end < len(woke))
        if not len(begin):
            return np.array([self._factor(0, -1)]) if len(woke) > 1 else np.zeros(0)
        return self._factor(begin, end[begin])

    def _factor(self, i: Any, j: Any) -> Any:
        """From the i-th row to the j-th."""
        return (self.numbers[j] - self.numbers[i]) * self.period_ns / (self.stamps[j, 1] - self.stamps[i, 1])

    # --- deadlines ---

    @property
    def counted(self) -> np.ndarray:
        """(k,) truth values: ticks after the grace, which `cosim.timing.pacing.follow` measures in periods too."""
        # what was gone back to after the grace counts
        return (np.maximum.accumulate(self.numbers) - self.numbers[:1]) * self.period_ns >= self.grace_ns

    def misses(self) -> list[Miss]:
        """Late ticks after the grace, in order."""
        m = self.missed
        tasks = [self._task(j) for j in m.task.tolist()]
        causes = [self.causes[c] for c in m.cause.tolist()]
        numbers, roots = self.numbers[m.row].tolist(), self.numbers[m.root].tolist()
        return [Miss(*miss) for miss in zip(numbers, m.late.tolist(), tasks, causes, roots, strict=True)]

    def _task(self, j: int) -> str:
        return (*(task.name for task in self.tasks), PULSE)[j]

    @cached_property
    def causes(self) -> list[str]:
        """By place: two of the tick, then those of each task when it waited, then when it worked."""
        waited = [f"bus late in {task.name}" if task.bus else f"preempted in {task.name}" for task in self.tasks]
        return [LATE_WAKE, PULSE_LATE, *waited, *(f"{task.name} overran" for task in self.tasks)]

    @cached_property
    def missed(self) -> Missed:
        k, due, done = len(self.numbers), self.stamps[:, 0], self.stamps[:, -2]
        late, first = np.zeros(k, dtype=np.int64), np.full(k, len(self.tasks), dtype=np.int16)
        for j in reversed(range(len(self.tasks))):
            over = self.stamps[:, 2 + j] - due - self.tasks[j].deadline_ns
            rows = np.flatnonzero((over > 0) & self.tasks[j].due(self.numbers))
            late[rows] = np.maximum(late[rows], over[rows])
            first[rows] = j
        # a tick is held up by the one before that ended after it was due; pulses are due when they are expected
        held, pulse_late = np.zeros(k, dtype=bool), np.zeros(k, dtype=bool)
        if self.pulsed:
            expected = due[:-1] + np.diff(self.numbers) * self.period_ns
            after = due[1:] - expected
            pulse_late[1:] = after > LATE_PULSE * self.period_ns
            held[1:] = pulse_late[1:] & (done[:-1] > expected)
            late[1:] = np.where(pulse_late[1:], np.maximum(late[1:], after), late[1:])
        else:
            held[1:] = done[:-1] > due[1:]
        root = np.maximum.accumulate(np.where(held, 0, np.arange(k)))
        rows = np.flatnonzero((late > 0) & self.counted)
        new = np.diff(root[rows], prepend=-1) > 0  # roots do not fall
        roots, of = root[rows][new], np.cumsum(new) - 1
        parts = [self._cause(part) for part in np.array_split(roots, 1 + len(roots) // BLOCK)]
        causes = np.where(pulse_late[roots], 1, np.concatenate(parts))
        return Missed(rows, late[rows], first[rows], causes[of], root[rows])

    def _cause(self, rows: np.ndarray) -> np.ndarray:
        """(m,) places in `causes`, for the ticks in these rows as if none had been held up by another."""
        tasks, stamps, numbers = self.tasks, self.stamps[rows], self.numbers[rows]
        woke, done = stamps[:, 1], stamps[:, -2]
        due = np.stack([task.due(numbers) for task in tasks], axis=1)
        deadlines = np.array([task.deadline_ns for task in tasks])
        beyond = due & (stamps[:, 2:-1] - woke[:, None] > deadlines)
        following = self.stamps[np.minimum(rows + 1, len(self.stamps) - 1), 0]
        in_the_way = (following > stamps[:, 0]) & (done - woke > following - stamps[:, 0])
        fits = ~beyond.any(axis=1) & ~in_the_way & (not self.pulsed)

        took, usual = np.diff(stamps[:, 1:-1], axis=1), np.where(due, self._medians, 0)
        # where even what is usual takes too long, what takes longest is to blame
        too_long = np.any(due & (np.cumsum(usual, axis=1) > deadlines), axis=1, keepdims=True)
        blamed = (took - np.where(too_long, 0, usual)).argmax(axis=1)

        before = np.maximum(rows - 1, 0)
        known = self.numbers[before] == numbers - 1  # else the CPU time is that of several ticks
        off = known & (stamps[:, -1] - self.stamps[before, -1] < 0.5 * (done - woke))
        waited = off | np.array([task.bus for task in tasks])[blamed]
        return np.where(fits, 0, 2 + blamed + np.where(waited, 0, len(tasks)))

    @cached_property
    def executions(self) -> list[dict[str, float] | None]:
        """Of each task, over the ticks in which it is due."""
        return [spread(took(self.stamps, j)[task.due(self.numbers)]) for j, task in enumerate(self.tasks)]

    @property
    def _medians(self) -> np.ndarray:
        """(T,) ns"""
        return np.array([round(1e9 * found["median_s"]) if found else 0 for found in self.executions])

    # --- in short ---

    def summary(self) -> dict[str, Any]:
        """JSON-ready; None for what the run was too short to tell. `latency` is None of a pulsed run,
        `pulse_interval` of any other; `tick` is from awake to done; `of` are the ticks after the grace; `mends` say how
        to get the rights that were not granted."""
        woken, factors, m = spread(self.latency_ns), self.real_time_factors, self.missed
        counts = np.bincount(m.cause, minlength=len(self.causes))
        often = np.argsort(-counts, kind="stable")
        least = np.partition(m.late, -WORST)[-WORST] if len(m.late) > WORST else 0
        worst = np.flatnonzero(m.late >= least)
        worst = worst[np.argsort(-m.late[worst], kind="stable")]
        return {
            "ticks": len(self.numbers),
            "period_s": self.period_ns / 1e9,
            "rate": self.rate,
            "lane": self.lane,
            "latency": None if self.pulsed else woken,
            "pulse_interval": woken if self.pulsed else None,
            "tick": spread(self.busy_ns),
            "tasks": {
                task.name: (found or dict.fromkeys(SPREAD)) | {"deadline_s": task.deadline_ns / 1e9}
                for task, found in zip(self.tasks, self.executions, strict=True)
            },
            "end_to_end": spread(self.end_to_end_ns),
            "missed": {
                "count": len(m.row),
                "of": int(np.count_nonzero(self.counted)),
                "causes": {self.causes[i]: int(counts[i]) for i in often if counts[i]},
                "worst": [self._told(i) for i in worst[:WORST].tolist()],
            },
            "lost_s": self.lost_ns / 1e9,
            "dropped": self.dropped,
            "real_time_factor": {
                "mean": float(self._factor(0, -1)) if len(factors) else None,
                "worst_window": float(factors.min()) if len(factors) else None,
            },
            "drift_s": self.drift_ns / 1e9,
            "rights": {right.name: right.granted for right in self.rights},
            "mends": {right.name: right.mend for right in self.rights if not right.granted},
        }

    def _told(self, i: int) -> dict[str, Any]:
        """The i-th miss."""
        m = self.missed
        number = int(self.numbers[m.row[i]])
        return {
            "number": number,
            "t_s": self.time_of(number),
            "late_s": int(m.late[i]) / 1e9,
            "task": self._task(int(m.task[i])),
            "cause": self.causes[int(m.cause[i])],
            "root": int(self.numbers[m.root[i]]),
        }


SPREAD = ("median_s", "p99_s", "max_s")


def spread(ns: np.ndarray) -> dict[str, float] | None:
    """Of times (k,) in ns."""
    if not len(ns):
        return None
    median, p99 = np.percentile(ns, (50, 99))
    return dict(zip(SPREAD, (float(median) / 1e9, float(p99) / 1e9, int(ns.max()) / 1e9), strict=True))


# --- what the terminal prints ---
