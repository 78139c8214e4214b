"""Timing of a real-time run: durations of ticks and tasks, missed deadlines and their causes.

Everything is computed from the stamps that a loop leaves, int64 (k, 3 + T) in ns of the monotonic clock, a row per
tick: when it was due, when it woke, when each of the T tasks ended, in running order (one that was not due in this tick
ends with the one before), and the CPU time of the loop's thread at the end. `numbers` (k,) are those of the ticks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from cosim.timing.pacing import LATE_TRIGGER
from cosim.types import Numeric

WINDOW_NS = 1_000_000_000  # of the clock, over which the real-time factor is computed
MAX_WORST = 5  # misses in the summary
BLOCK = 1 << 13  # ticks classified at once, which fit the cache

WAKE_UP_LATENCY, TRIGGER_LATE = "wake-up latency", "trigger late"
TRIGGER = "trigger"  # instead of a task, where only the trigger was late


@dataclass(frozen=True)
class TaskTime:
    """Timing of a task: due in every tick whose number is `phase` modulo `ticks`; `deadline_ns` is after the
    tick is due. bus: it talks to real hardware."""

    name: str
    ticks: int
    phase: int
    deadline_ns: int
    bus: bool

    def due(self, numbers: np.ndarray) -> np.ndarray:
        """(k,) truth values."""
        return numbers % self.ticks == self.phase


class PrivilegeStatus(Protocol):
    """A real-time privilege that the loop requested of the system."""

    @property
    def name(self) -> str: ...
    @property
    def granted(self) -> bool: ...
    @property
    def fix(self) -> str: ...


def channels(tasks: Sequence[TaskTime]) -> tuple[tuple[str, str], ...]:
    """(signal, unit) of the columns of `values`."""
    return tuple((f"timing/{name}", "s") for name in ("latency", *(task.name for task in tasks), "end_to_end"))


def values(tasks: Sequence[TaskTime], numbers: np.ndarray, stamps: np.ndarray) -> np.ndarray:
    """(k, 2 + T) in s: wake-up latency of each tick, execution time of each task, time from due to the end of `write`.
    NaN where a task was not due."""
    columns = np.empty((len(numbers), len(tasks) + 2))
    columns[:, 0] = stamps[:, 1] - stamps[:, 0]
    for j, task in enumerate(tasks):
        columns[:, 1 + j] = np.where(task.due(numbers), execution_times(stamps, j), np.nan)
    write = task_index(tasks, "write")
    columns[:, -1] = np.where(tasks[write].due(numbers), stamps[:, 2 + write] - stamps[:, 0], np.nan)
    columns /= 1e9
    return columns


def execution_times(stamps: np.ndarray, j: int) -> np.ndarray:
    """(k,) ns of the j-th task; 0 where it was not due."""
    return stamps[:, 2 + j] - stamps[:, 1 + j]


def task_index(tasks: Sequence[TaskTime], name: str) -> int:
    return next(j for j, task in enumerate(tasks) if task.name == name)


class Miss(NamedTuple):
    """A late tick: its largest lateness, the first task that missed its deadline (or `trigger`), the cause, and the
    number of the tick in which the delay began."""

    number: int
    late_ns: int
    task: str
    cause: str
    root: int


class MissTable(NamedTuple):
    """All misses, (m,) each: row of the tick, lateness [ns], indices of task and cause, row of the root."""

    row: np.ndarray
    late: np.ndarray
    task: np.ndarray
    cause: np.ndarray
    root: np.ndarray


@dataclass(frozen=True, eq=False)
class DeadlineRecord:
    """The ticks of a run. period_ns: of the clock, between ticks; slip_ns: clock slip, the delay of the schedule after
    late ticks; lost_rows: rows lost because the ring was full; warm_up_ns: from the start, in which late ticks do
    not count; rate: seconds of the rig per second of the clock; triggered: paced by an external trigger, a tick is due
    when it wakes; engine: "compiled" or "Python"."""

    tasks: tuple[TaskTime, ...]
    period_ns: float
    numbers: np.ndarray
    stamps: np.ndarray
    slip_ns: int
    lost_rows: int
    warm_up_ns: int
    rate: float
    triggered: bool
    engine: str
    privileges: tuple[PrivilegeStatus, ...]

    @property
    def latency_rows(self) -> np.ndarray:
        """Rows of ticks with a `latency_ns`: all; in a triggered run those whose previous tick has a row too."""
        return 1 + np.flatnonzero(np.diff(self.numbers) == 1) if self.triggered else np.arange(len(self.numbers))

    @cached_property
    def latency_ns(self) -> np.ndarray:
        """(k,) from due to awake; in a triggered run the intervals between triggers instead."""
        if self.triggered:
            rows = self.latency_rows
            return self.stamps[rows, 1] - self.stamps[rows - 1, 1]
        return self.stamps[:, 1] - self.stamps[:, 0]

    @cached_property
    def end_to_end_ns(self) -> np.ndarray:
        """From due to the end of `write`, of the ticks in which that is due."""
        write = task_index(self.tasks, "write")
        rows = self.tasks[write].due(self.numbers)
        return self.stamps[rows, 2 + write] - self.stamps[rows, 0]

    @cached_property
    def busy_ns(self) -> np.ndarray:
        """(k,) from awake to the end of the last task."""
        return self.stamps[:, -2] - self.stamps[:, 1]

    def time_of(self, numbers: Numeric) -> Numeric:
        """Time of the rig [s] in these ticks."""
        return numbers * (self.period_ns * self.rate) / 1e9

    # --- the rig against the clock ---

    @property
    def slips_ns(self) -> np.ndarray:
        """(k,) clock slip of each tick since the first: when it was due, minus the time of its number."""
        grid = np.floor((self.numbers - self.numbers[:1]) * self.period_ns + 0.5)  # as in `pacing.due`
        return self.stamps[:, 0] - self.stamps[:1, 0] - grid.astype(np.int64)

    @property
    def drift_ns(self) -> int:
        """Deviation of the last tick from the clock beyond the clock slip: 0, unless an external trigger paces."""
        if not len(self.numbers):
            return 0
        slip = int(self.slips_ns[-1])
        if self.lost_rows and slip < self.slip_ns:  # some of it is after the last row, but it comes in whole periods
            return slip - round(round(slip / self.period_ns) * self.period_ns)
        return slip - self.slip_ns

    @cached_property
    def real_time_factors(self) -> np.ndarray:
        """(w,) in windows from each tick to the first one at least `WINDOW_NS` later, relative to `rate`: (ticks ·
        period) / length. Of a shorter run one factor over all of it; none of fewer than two ticks."""
        woke = self.stamps[:, 1]
        end = np.searchsorted(woke, woke + WINDOW_NS)
        begin = np.flatnonzero(end < len(woke))
        if not len(begin):
            return np.array([self._factor(0, -1)]) if len(woke) > 1 else np.zeros(0)
        return self._factor(begin, end[begin])

    def _factor(self, i: Numeric, j: Numeric) -> Numeric:
        """From the i-th row to the j-th."""
        return (self.numbers[j] - self.numbers[i]) * self.period_ns / (self.stamps[j, 1] - self.stamps[i, 1])

    # --- deadlines ---

    @property
    def counted(self) -> np.ndarray:
        """(k,) truth values: ticks after the warm-up, which `pacing.schedule_next` counts in periods too."""
        # ticks repeated from a snapshot after the warm-up count
        return (np.maximum.accumulate(self.numbers) - self.numbers[:1]) * self.period_ns >= self.warm_up_ns

    def misses(self) -> list[Miss]:
        """Late ticks after the warm-up, in order."""
        m = self.missed
        tasks = [self._task(j) for j in m.task.tolist()]
        causes = [self.causes[c] for c in m.cause.tolist()]
        numbers, roots = self.numbers[m.row].tolist(), self.numbers[m.root].tolist()
        return [Miss(*miss) for miss in zip(numbers, m.late.tolist(), tasks, causes, roots, strict=True)]

    def _task(self, j: int) -> str:
        return (*(task.name for task in self.tasks), TRIGGER)[j]

    @cached_property
    def causes(self) -> list[str]:
        """By index: two of the tick, then of each task for waiting, then of each task for computing."""
        waited = [f"bus late in {task.name}" if task.bus else f"preempted in {task.name}" for task in self.tasks]
        return [WAKE_UP_LATENCY, TRIGGER_LATE, *waited, *(f"{task.name} overran" for task in self.tasks)]

    @cached_property
    def missed(self) -> MissTable:
        k, due, done = len(self.numbers), self.stamps[:, 0], self.stamps[:, -2]
        late, first = np.zeros(k, dtype=np.int64), np.full(k, len(self.tasks), dtype=np.int16)
        for j in reversed(range(len(self.tasks))):
            over = self.stamps[:, 2 + j] - due - self.tasks[j].deadline_ns
            rows = np.flatnonzero((over > 0) & self.tasks[j].due(self.numbers))
            late[rows] = np.maximum(late[rows], over[rows])
            first[rows] = j
        # a tick is delayed by a previous one that ended after it was due; triggers are due when they are expected
        delayed, trigger_late = np.zeros(k, dtype=bool), np.zeros(k, dtype=bool)
        if self.triggered:
            expected = due[:-1] + np.diff(self.numbers) * self.period_ns
            after = due[1:] - expected
            trigger_late[1:] = after > LATE_TRIGGER * self.period_ns
            delayed[1:] = trigger_late[1:] & (done[:-1] > expected)
            late[1:] = np.where(trigger_late[1:], np.maximum(late[1:], after), late[1:])
        else:
            delayed[1:] = done[:-1] > due[1:]
        root = np.maximum.accumulate(np.where(delayed, 0, np.arange(k)))
        rows = np.flatnonzero((late > 0) & self.counted)
        new = np.diff(root[rows], prepend=-1) > 0  # roots do not fall
        roots, of = root[rows][new], np.cumsum(new) - 1
        parts = [self._cause(part) for part in np.array_split(roots, 1 + len(roots) // BLOCK)]
        causes = np.where(trigger_late[roots], 1, np.concatenate(parts))
        return MissTable(rows, late[rows], first[rows], causes[of], root[rows])

    def _cause(self, rows: np.ndarray) -> np.ndarray:
        """(m,) indices in `causes`, for the ticks in these rows as if no other tick had delayed them."""
        tasks, stamps, numbers = self.tasks, self.stamps[rows], self.numbers[rows]
        woke, done = stamps[:, 1], stamps[:, -2]
        due = np.stack([task.due(numbers) for task in tasks], axis=1)
        deadlines = np.array([task.deadline_ns for task in tasks])
        beyond = due & (stamps[:, 2:-1] - woke[:, None] > deadlines)
        following = self.stamps[np.minimum(rows + 1, len(self.stamps) - 1), 0]
        blocks_next = (following > stamps[:, 0]) & (done - woke > following - stamps[:, 0])
        fits = ~beyond.any(axis=1) & ~blocks_next & (not self.triggered)

        times, usual = np.diff(stamps[:, 1:-1], axis=1), np.where(due, self._medians, 0)
        # the cause is the task furthest above its median, or the longest where even the medians miss a deadline
        too_long = np.any(due & (np.cumsum(usual, axis=1) > deadlines), axis=1, keepdims=True)
        blamed = (times - np.where(too_long, 0, usual)).argmax(axis=1)

        before = np.maximum(rows - 1, 0)
        known = self.numbers[before] == numbers - 1  # else the CPU time covers several ticks
        off = known & (stamps[:, -1] - self.stamps[before, -1] < 0.5 * (done - woke))
        waited = off | np.array([task.bus for task in tasks])[blamed]
        return np.where(fits, 0, 2 + blamed + np.where(waited, 0, len(tasks)))

    @cached_property
    def executions(self) -> list[dict[str, float] | None]:
        """Execution times of each task, over the ticks in which it is due."""
        return [spread(execution_times(self.stamps, j)[task.due(self.numbers)]) for j, task in enumerate(self.tasks)]

    @property
    def _medians(self) -> np.ndarray:
        """(T,) ns"""
        return np.array([round(1e9 * times["median_s"]) if times else 0 for times in self.executions])

    # --- summary ---

    def summary(self) -> dict[str, Any]:
        """JSON-ready; None for what the run was too short for. `latency` is None in a triggered run, `trigger_interval`
        in any other; `tick` is from awake to done; `of` are the ticks after the warm-up; `privilege_fixes` are how to
        get the privileges that were not granted."""
        latency, factors, m = spread(self.latency_ns), self.real_time_factors, self.missed
        counts = np.bincount(m.cause, minlength=len(self.causes))
        often = np.argsort(-counts, kind="stable")
        least = np.partition(m.late, -MAX_WORST)[-MAX_WORST] if len(m.late) > MAX_WORST else 0
        worst = np.flatnonzero(m.late >= least)
        worst = worst[np.argsort(-m.late[worst], kind="stable")]
        return {
            "ticks": len(self.numbers),
            "period_s": self.period_ns / 1e9,
            "rate": self.rate,
            "engine": self.engine,
            "latency": None if self.triggered else latency,
            "trigger_interval": latency if self.triggered else None,
            "tick": spread(self.busy_ns),
            "tasks": {
                task.name: (times or dict.fromkeys(SPREAD)) | {"deadline_s": task.deadline_ns / 1e9}
                for task, times in zip(self.tasks, self.executions, strict=True)
            },
            "end_to_end": spread(self.end_to_end_ns),
            "missed": {
                "count": len(m.row),
                "of": int(np.count_nonzero(self.counted)),
                "causes": {self.causes[i]: int(counts[i]) for i in often if counts[i]},
                "worst": [self._describe_miss(i) for i in worst[:MAX_WORST].tolist()],
            },
            "clock_slip_s": self.slip_ns / 1e9,
            "lost_rows": self.lost_rows,
            "real_time_factor": {
                "mean": float(self._factor(0, -1)) if len(factors) else None,
                "worst_window": float(factors.min()) if len(factors) else None,
            },
            "drift_s": self.drift_ns / 1e9,
            "privileges": {item.name: item.granted for item in self.privileges},
            "privilege_fixes": {item.name: item.fix for item in self.privileges if not item.granted},
        }

    def _describe_miss(self, i: int) -> dict[str, Any]:
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
    """Median, 99th percentile and maximum of times (k,) in ns; None of none."""
    if not len(ns):
        return None
    median, p99 = np.percentile(ns, (50, 99))
    return dict(zip(SPREAD, (float(median) / 1e9, float(p99) / 1e9, int(ns.max()) / 1e9), strict=True))
