"""What the outputs take from blocks of ticks: the values of all signals, events, missed deadlines.

An `Evaluation` is plain data and machine code, so it works in the process of the run and in a sink process.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from cosim.core.compile import BatchFunction, Interpreted
from cosim.core.types import Sink
from cosim.core.units import format_seconds
from cosim.execution.timing.deadlines import DeadlineRecord, TaskTime, values
from cosim.output.events import EventMonitor, RunEvent
from cosim.simulation.tick.tick_block import TickBlock

RECENT_TICKS = 4096  # before a missed deadline, for its cause during the run


@dataclass
class MissMonitor:
    """Reports the missed deadlines of a real-time run while it runs, each with its cause.

    period_ns: of the clock, between ticks; the others: see `DeadlineRecord`.
    """

    tasks: tuple[TaskTime, ...]
    period_ns: float
    warm_up_ns: int
    rate: float
    triggered: bool
    engine: str
    _recent: deque[tuple[np.ndarray, np.ndarray]] = field(default_factory=deque)  # numbers and stamps of blocks
    _kept: int = 0  # ticks in these blocks
    _last: int = -1  # tick of the last reported miss

    def __call__(self, block: TickBlock) -> list[tuple[int, str]]:
        """(tick, message) of every new missed deadline, those in this block included."""
        if not len(block.numbers):
            return []
        self._save(block)
        shortest_ns = min(task.deadline_ns for task in self.tasks)
        if not self.triggered and not np.any(block.stamps[:, -2] - block.stamps[:, 0] > shortest_ns):
            return []  # a cheap test before the analysis
        numbers, stamps = (np.concatenate(parts) for parts in zip(*self._recent, strict=True))
        record = DeadlineRecord(
            tasks=self.tasks,
            period_ns=self.period_ns,
            numbers=numbers,
            stamps=stamps,
            slip_ns=0,
            lost_rows=0,
            warm_up_ns=self.warm_up_ns,
            rate=self.rate,
            triggered=self.triggered,
            engine=self.engine,
            privileges=(),
        )
        new = [miss for miss in record.misses() if miss.number > self._last]
        self._last = new[-1].number if new else self._last
        return [
            (miss.number, f"missed a deadline by {format_seconds(miss.late_ns * 1e-9)} in {miss.task}: {miss.cause}")
            for miss in new
        ]

    def _save(self, block: TickBlock) -> None:
        """Save the block and at least RECENT_TICKS before it."""
        self._recent.append((block.numbers, block.stamps))
        self._kept += len(block.numbers)
        while self._kept - (first := len(self._recent[0][0])) >= RECENT_TICKS:
            self._recent.popleft()
            self._kept -= first


@dataclass
class Evaluation:
    """Evaluates the blocks of one run, in order.

    observe: (flat BumplessStart, rows (k, nr)) -> the signals of the rows (k, n); step_ns: of a tick; tasks: of a run
    in real time, whose timing follows the signals; misses: of a run in real time.
    """

    observe: BatchFunction | Interpreted
    events: EventMonitor
    step_ns: int
    tasks: tuple[TaskTime, ...] = ()
    misses: MissMonitor | None = None
    _starts: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))  # a row per tick, as machine code takes them

    def prepare(self) -> None:
        """Link the machine code before the first block."""
        start, row = (np.zeros(port.shape) for port in self.observe.inputs)
        self.observe(start, row[None])

    def __call__(
        self, block: TickBlock, sinks: Sequence[Sink], out: np.ndarray | None = None
    ) -> tuple[np.ndarray, list[RunEvent]]:
        """(values of all signals (k, n + timing), events); the sinks receive both, and the missed deadlines.

        out: filled with the values, and returned."""
        signals = self.observe(self._starts_of(block), block.rows, out=None if self.tasks else out)
        if self.tasks:
            timing = values(self.tasks, block.numbers, block.stamps)
            signals = np.concatenate([signals, timing], axis=1, out=out)
        events = self.events(block.rows, block.failures, signals)
        self.send(block, signals, events, sinks)
        return signals, events

    def send(self, block: TickBlock, signals: np.ndarray, events: Sequence[RunEvent], sinks: Sequence[Sink]) -> None:
        """Hand an evaluated block to the sinks, with its missed deadlines."""
        t_ns = block.numbers * self.step_ns
        misses = self.misses(block) if sinks and self.misses is not None else []
        for sink in sinks:
            sink(t_ns, signals)
            for event in events:
                sink.event(round(event.t * 1e9), event.name, event.level)
            for number, what in misses:
                sink.event(number * self.step_ns, what, "warning")

    def _starts_of(self, block: TickBlock) -> np.ndarray:
        """The start of the block for each of its ticks."""
        k, start = len(block.rows), block.bumpless_start
        if len(self._starts) < k or not np.array_equal(self._starts[:1], start[None]):
            self._starts = np.broadcast_to(start, (k, len(start))).copy()
        return self._starts[:k]
