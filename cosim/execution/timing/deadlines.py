"""Timing of a real-time run: durations of ticks and tasks, missed deadlines and their causes.

Everything is computed from the stamps that a loop leaves, int64 (k, 3 + T) in ns of the monotonic clock, a row per
tick: when it was due, when it woke, when each of the T tasks ended, in running order (one that was not due in this tick
ends with the one before), and the CPU time of the loop's thread at the end. `numbers` (k,): of the ticks.
The stamps of a long run are in a file: what goes through them all does so in blocks, in bounded memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from cosim.core.types import Numeric, Signal
from cosim.execution.timing.percentiles import PERCENTILES, percentiles
from cosim.simulation.loop.pacing import LATE_TRIGGER

WINDOW_NS = 1_000_000_000  # of the clock, over which the real-time factor is computed
MAX_WORST = 5  # misses in the summary
BLOCK = 1 << 14  # ticks looked at together

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


def signals_of(tasks: Sequence[TaskTime]) -> dict[str, Signal]:
    """The declarations of the columns of `values`."""
    return {
        "timing/latency": Signal((), "s", "from when the tick was due to its start"),
        **{f"timing/{task.name}": Signal((), "s", f"execution time of the task {task.name}") for task in tasks},
        "timing/end_to_end": Signal((), "s", "from when the tick was due until its commands were sent"),
    }


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
    """Misses, (m,) each: row of the tick, lateness [ns], indices of task and cause, row of the root."""

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

    @property
    def busy_s(self) -> float:
        """Sum over all ticks."""
        return sum(int(block.busy_ns.sum()) for block in self._blocks()) * 1e-9

    def _blocks(self, before: int = 0) -> Iterator[DeadlineRecord]:
        """The ticks in blocks; before: number of rows of the block before that each begins with."""
        for begin in range(0, len(self.numbers), BLOCK):
            rows = slice(max(begin - before, 0), begin + BLOCK)
            yield replace(self, numbers=self.numbers[rows], stamps=self.stamps[rows])

    def time_of(self, numbers: Numeric) -> Numeric:
        """Time of the rig [s] in these ticks."""
        return numbers * (self.period_ns * self.rate) / 1e9

    # --- the rig against the clock ---

    @property
    def slips_ns(self) -> np.ndarray:
        """(k,) clock slip of each tick since the first: when it was due, minus the time of its number."""
        return self._slips_ns(slice(None))

    def _slips_ns(self, rows: slice) -> np.ndarray:
        grid = np.floor((self.numbers[rows] - self.numbers[:1]) * self.period_ns + 0.5)  # as in `pacing.due`
        return self.stamps[rows, 0] - self.stamps[:1, 0] - grid.astype(np.int64)

    @property
    def drift_ns(self) -> int:
        """Deviation of the last tick from the clock beyond the clock slip: 0, unless an external trigger paces."""
        if not len(self.numbers):
            return 0
        slip = int(self._slips_ns(slice(-1, None))[0])
        if self.lost_rows and slip < self.slip_ns:  # some of it is after the last row, but it comes in whole periods
            return slip - round(round(slip / self.period_ns) * self.period_ns)
        return slip - self.slip_ns

    @cached_property
    def real_time_factors(self) -> np.ndarray:
        """(w,) in windows from each tick to the first one at least `WINDOW_NS` later, relative to `rate`: (ticks ·
        period) / length. Of a shorter run one factor over all of it; none of fewer than two ticks."""
        return np.concatenate([np.zeros(0), *self._factors()])

    def _factors(self) -> Iterator[np.ndarray]:
        """The real-time factors in blocks."""
        woke, k = self.stamps[:, 1], len(self.numbers)
        if k > 1 and woke[-1] - woke[0] < WINDOW_NS:
            yield np.array([self._factor(0, -1)])
        for begin in range(0, k, BLOCK):
            first = woke[begin : begin + BLOCK]
            until = begin + len(first)
            while until < k and woke[until - 1] < first[-1] + WINDOW_NS:
                until = min(until + BLOCK, k)
            end = begin + np.searchsorted(woke[begin:until], first + WINDOW_NS)
            whole = np.flatnonzero(end < until)
            yield self._factor(begin + whole, end[whole])

    def _factor(self, i: Numeric, j: Numeric) -> Numeric:
        """From the i-th row to the j-th."""
        return (self.numbers[j] - self.numbers[i]) * self.period_ns / (self.stamps[j, 1] - self.stamps[i, 1])

    # --- deadlines ---

    @property
    def counted(self) -> np.ndarray:
        """(k,) truth values: ticks after the warm-up, which `pacing.schedule_next` counts in periods too."""
        # ticks repeated from a snapshot after the warm-up count
        return self._after_warm_up(np.maximum.accumulate(self.numbers))

    def _after_warm_up(self, numbers: np.ndarray) -> np.ndarray:
        return (numbers - self.numbers[:1]) * self.period_ns >= self.warm_up_ns

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
        """All misses."""
        return _joined([part for part, _ in self._missed()])

    def _missed(self) -> Iterator[tuple[MissTable, int]]:
        """The misses in blocks of ticks, and how many ticks of the block count."""
        root, highest = 0, self.numbers[:1]  # of the ticks so far: where the last delay began, the highest number
        for begin in range(0, len(self.numbers), BLOCK):
            rows = np.arange(begin, min(begin + BLOCK, len(self.numbers)))
            numbers, stamps = self.numbers[rows], self.stamps[rows]
            late, first = self._lateness(numbers, stamps)
            done_before, expected = self._expected(rows)
            if self.triggered:
                after = stamps[:, 0] - expected
                trigger_late = after > LATE_TRIGGER * self.period_ns
                late = np.where(trigger_late, np.maximum(late, after), late).astype(np.int64)
                delayed = trigger_late & (done_before > expected)
            else:
                delayed = done_before > stamps[:, 0]
            # a tick is delayed by a previous one that ended after it was due; triggers are due when they are expected
            roots = np.maximum.accumulate(np.where(delayed & (rows > 0), root, rows))
            numbers = np.maximum.accumulate(np.maximum(numbers, highest))
            root, highest = roots[-1], numbers[-1:]
            counted = self._after_warm_up(numbers)
            found = np.flatnonzero((late > 0) & counted)
            new = np.diff(roots[found], prepend=-1) > 0  # roots do not fall
            causes = self._causes_of(roots[found][new])[np.cumsum(new) - 1]
            misses = MissTable(rows[found], late[found], first[found], causes, roots[found])
            yield misses, int(np.count_nonzero(counted))

    def _lateness(self, numbers: np.ndarray, stamps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(k,) ns beyond the deadlines, and the index of the first task that is late, of these ticks."""
        late, first = np.zeros(len(numbers), dtype=np.int64), np.full(len(numbers), len(self.tasks), dtype=np.int16)
        for j in reversed(range(len(self.tasks))):
            over = stamps[:, 2 + j] - stamps[:, 0] - self.tasks[j].deadline_ns
            rows = np.flatnonzero((over > 0) & self.tasks[j].due(numbers))
            late[rows] = np.maximum(late[rows], over[rows])
            first[rows] = j
        return late, first

    def _expected(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """When the tick before each of these was done, and when its trigger is expected; the first tick is when it is
        due."""
        before = np.maximum(rows - 1, 0)
        periods = self.numbers[rows] - self.numbers[before]
        return self.stamps[before, -2], self.stamps[before, 0] + periods * self.period_ns

    def _causes_of(self, rows: np.ndarray) -> np.ndarray:
        """(m,) indices in `causes`, for the ticks in these rows as if no other tick had delayed them."""
        if not len(rows):
            return np.zeros(0, dtype=np.int64)
        trigger_late = self.stamps[rows, 0] - self._expected(rows)[1] > LATE_TRIGGER * self.period_ns
        return np.where(trigger_late & self.triggered, 1, self._cause(rows))

    def _cause(self, rows: np.ndarray) -> np.ndarray:
        """See `_causes_of`, of ticks whose trigger was not late."""
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

    @property
    def executions(self) -> list[dict[str, float] | None]:
        """Execution times of each task, over the ticks in which it is due."""
        return self._percentiles[3:]

    @cached_property
    def _percentiles(self) -> list[dict[str, float] | None]:
        """Of `latency_ns`, `busy_ns`, `end_to_end_ns` and the execution times of each task."""
        return percentiles(self._times, 3 + len(self.tasks))

    def _times(self) -> Iterator[list[np.ndarray]]:
        """The same times, in blocks."""
        for block, longer in zip(self._blocks(), self._blocks(before=int(self.triggered)), strict=True):
            executions = (execution_times(block.stamps, j)[t.due(block.numbers)] for j, t in enumerate(self.tasks))
            yield [longer.latency_ns, block.busy_ns, block.end_to_end_ns, *executions]

    @property
    def _medians(self) -> np.ndarray:
        """(T,) ns"""
        return np.array([round(1e9 * times["median_s"]) if times else 0 for times in self.executions])

    # --- summary ---

    def summary(self) -> dict[str, Any]:
        """JSON-ready; None for what the run was too short for. `latency` is None in a triggered run, `trigger_interval`
        in any other; `tick` is from awake to done; `of` are the ticks after the warm-up; `privilege_fixes` are how to
        get the privileges that were not granted."""
        latency, tick, end_to_end, *executions = self._percentiles
        counts, of, worst = np.zeros(len(self.causes), dtype=np.int64), 0, _joined([])
        for part, counted in self._missed():
            counts, of = counts + np.bincount(part.cause, minlength=len(counts)), of + counted
            worst = _worst(_joined([worst, part]))
        often = np.argsort(-counts, kind="stable")
        lowest = min((float(part.min()) for part in self._factors() if len(part)), default=None)
        return {
            "ticks": len(self.numbers),
            "period_s": self.period_ns / 1e9,
            "rate": self.rate,
            "engine": self.engine,
            "latency": None if self.triggered else latency,
            "trigger_interval": latency if self.triggered else None,
            "tick": tick,
            "tasks": {
                task.name: (times or dict.fromkeys(PERCENTILES)) | {"deadline_s": task.deadline_ns / 1e9}
                for task, times in zip(self.tasks, executions, strict=True)
            },
            "end_to_end": end_to_end,
            "missed": {
                "count": int(counts.sum()),
                "of": of,
                "causes": {self.causes[i]: int(counts[i]) for i in often if counts[i]},
                "worst": [self._describe(miss) for miss in zip(*(column.tolist() for column in worst), strict=True)],
            },
            "clock_slip_s": self.slip_ns / 1e9,
            "lost_rows": self.lost_rows,
            "real_time_factor": {
                "mean": None if lowest is None else float(self._factor(0, -1)),
                "worst_window": lowest,
            },
            "drift_s": self.drift_ns / 1e9,
            "privileges": {item.name: item.granted for item in self.privileges},
            "privilege_fixes": {item.name: item.fix for item in self.privileges if not item.granted},
        }

    def _describe(self, miss: tuple[int, int, int, int, int]) -> dict[str, Any]:
        """A row of a MissTable."""
        row, late, task, cause, root = miss
        number = int(self.numbers[row])
        return {
            "number": number,
            "t_s": self.time_of(number),
            "late_s": late / 1e9,
            "task": self._task(task),
            "cause": self.causes[cause],
            "root": int(self.numbers[root]),
        }


def _joined(parts: Sequence[MissTable]) -> MissTable:
    none = MissTable(*(np.zeros(0, dtype=np.int64) for _ in MissTable._fields))
    return MissTable(*(np.concatenate(columns) for columns in zip(none, *parts, strict=True)))


def _worst(table: MissTable) -> MissTable:
    """The rows of the MAX_WORST largest latenesses, the largest first."""
    order = np.argsort(-table.late, kind="stable")[:MAX_WORST]
    return MissTable(*(column[order] for column in table))
