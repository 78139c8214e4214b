"""What a run has recorded so far: its ticks, signals, events, changes and faults."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from cosim.core.compile import BatchFunction
from cosim.core.errors import RunError
from cosim.core.growing_table import SpillingTable, run_folder
from cosim.core.types import Level, Sink
from cosim.execution.scheduler import Scheduler
from cosim.output.evaluation import Evaluation, MissMonitor
from cosim.output.events import EventMonitor, RunEvent
from cosim.output.signal_statistics import SignalStatistics
from cosim.output.signal_store import SignalStore
from cosim.rig.run.changes import ordered_stop
from cosim.rig.run.consent import Agreement
from cosim.rig.run.kept_signals import kept_names
from cosim.rig.run.outputs import Outputs
from cosim.rig.run.recorded_run import Change
from cosim.rig.run.run import Run
from cosim.rig.run.run_metadata import RunMetadata
from cosim.rig.run.summary import followed_signals, sampled_signals, timed_signals
from cosim.rig.wiring.wired_rig import WiredRig
from cosim.simulation.tick.tick_block import TickBlock

if TYPE_CHECKING:
    from cosim.execution.hardware.manager import BusReport
    from cosim.execution.hardware.traffic.traffic_log import TrafficLog
    from cosim.rig.run.traffic_recording import TrafficRecording

WAITING_BYTES = 1 << 26  # bytes, beyond which they are on the disk
WAITING_BLOCK = 4096  # ticks that are handed out together


class WaitingTicks:
    """Blocks in order; neighbours with the same start and failures become one."""

    def __init__(self, memory: int = WAITING_BYTES) -> None:
        self._memory = memory
        self._table: SpillingTable | None = None
        self._kinds: list[tuple[int, TickBlock]] = []  # (first row, an empty block with the same start and failures)

    def add(self, block: TickBlock) -> None:
        """The block is copied."""
        parts = block.numbers[:, None], block.stamps, block.rows.view(np.int64)
        if self._table is None:
            self._table = SpillingTable(sum(part.shape[1] for part in parts), np.int64, self._memory, run_folder)
        if not self._kinds or not block.continues(self._kinds[-1][1]):
            none = replace(block, numbers=block.numbers[:0], rows=block.rows[:0], stamps=block.stamps[:0]).owned()
            self._kinds.append((len(self._table), none))
        self._table.append(np.hstack(parts))

    def take(self) -> Iterator[TickBlock]:
        """All blocks so far, which do not wait any more."""
        table, kinds, self._table, self._kinds = self._table, self._kinds, None, []
        if table is None:
            return
        rows, ends = table.rows(), [first for first, _ in kinds[1:]] + [len(table)]
        for (first, kind), last in zip(kinds, ends, strict=True):
            stamps = kind.stamps.shape[1]
            for begin in range(first, last, WAITING_BLOCK):
                part = np.array(rows[begin : min(begin + WAITING_BLOCK, last)])
                yield replace(
                    kind,
                    numbers=part[:, 0],
                    stamps=part[:, 1 : 1 + stamps],
                    rows=np.ascontiguousarray(part[:, 1 + stamps :]).view(float),
                )
        table.close()


@dataclass
class RunRecorder:
    """The ticks of a run so far, their signals, events and faults."""

    rig: WiredRig
    metadata: RunMetadata
    scheduler: Scheduler
    store: SignalStore
    outputs: Outputs = field(default_factory=Outputs)
    done: int = 0  # ticks
    now_ns: int = 0  # simulated time of the last tick
    waiting: WaitingTicks = field(default_factory=WaitingTicks)  # whose signals are computed at the end
    events: list[RunEvent] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    fault: str = ""
    connections: tuple[BusReport, ...] = ()  # of real drives
    busy: float = 0.0  # s
    begun: float = field(default_factory=time.perf_counter)
    traffic: TrafficLog | None = None  # of real drivers, if it is recorded
    traffic_recording: TrafficRecording | None = None
    agreement: Agreement = field(default_factory=Agreement)  # to the motion of real motors

    def __post_init__(self) -> None:
        self._evaluate = evaluation_of(self.rig)
        if self.scheduler.pacing is None and isinstance(self.rig.observe, BatchFunction):
            self.rig.observe.begin()
        units = self.metadata.units
        self._statistics = SignalStatistics(
            tuple(units),
            followed_signals(self.metadata, units),
            sampled_signals(self.metadata, units),
            timed_signals(self.metadata),
        )

    def add(self, block: TickBlock) -> None:
        """Add finished ticks. Signals of a real-time run are computed at its end, because a Python loop shares the
        interpreter: its sinks compute theirs in processes of their own, except in an interpreted run."""
        step_ns = self.rig.run_spec.schedule.step_ns
        self.done, self.now_ns = self.done + len(block.numbers), int(block.numbers[-1]) * step_ns
        self.outputs.add(block)
        if self.traffic_recording is not None:
            self.traffic_recording.follow(block)
        if (here := self.outputs.evaluated_here) or self.scheduler.pacing is None:
            self.compute_signals(block, here)
        else:
            self.waiting.add(block)
        for failure in self.outputs.new_failures():
            self.note(self.done - 1, failure, "warning")

    def record_traffic(self, log: TrafficLog) -> None:
        """From now on the traffic goes to the recording."""
        from cosim.rig.run.traffic_recording import TrafficRecording

        schedule, pacing = self.rig.run_spec.schedule, self.scheduler.pacing
        step_ns = schedule.step_ns / (1.0 if pacing is None else pacing.rate)

        def note(what: str) -> None:
            self.note(max(self.done - 1, 0), what, "warning")

        self.traffic_recording = TrafficRecording(log, self.outputs.recording, step_ns, note)

    def finish_traffic(self) -> None:
        """Motors off and drivers closed, which belongs to the traffic; from then on nothing is recorded of it."""
        self.scheduler.stop()
        self.scheduler.engine.hardware_manager.close()
        if self.traffic_recording is not None:
            self.traffic_recording.finish()

    def note(self, tick: int, what: str, level: Level = "info") -> None:
        """An event before a tick that the ticks themselves do not show."""
        t_ns = tick * self.metadata.step_ns
        self.events.append(RunEvent(t_ns * 1e-9, what, 0.0, level=level))
        self.outputs.event(t_ns, what, level)

    def change(self, change: Change) -> None:
        self.changes.append(change)
        self.outputs.change(self.now_ns, *change)

    def finish_changes(self) -> None:
        """After the last tick: add the order to stop, which a signal may have given too."""
        for change in ordered_stop(self.scheduler.engine):
            self.change(change)

    def when(self, what: str) -> str:
        """What happened, and after which tick."""
        return f"{what} after tick {self.done - 1}" if self.done else f"{what} before the first tick"

    def compute_signals(self, block: TickBlock, sinks: Sequence[Sink] = ()) -> None:
        values, events = self._evaluate(block, (), self.store.room(len(block.numbers)))
        try:
            self._evaluate.send(block, values, events, sinks)
        finally:  # ticks that the recording does not take are ticks of the run
            self._statistics.add(values)
            self.store.add(block.numbers, block.numbers * self.metadata.step_ns * 1e-9)
            self.events += events

    def run(self) -> Run:
        try:
            for block in self.waiting.take():
                self.compute_signals(block)
        except RunError as error:  # the disk is full: what was written is kept
            self.fault = f"{self.fault}; and {error}" if self.fault else str(error)
        t, values = self.store.arrays()
        paced = self.scheduler.pacing is not None
        timing = self.scheduler.timing if paced else None
        busy = self.busy if timing is None else timing.busy_s
        wall = time.perf_counter() - self.begun
        events, counts = (
            tuple(sorted(self.events, key=lambda event: event.t)),
            self._evaluate.events.limit_alarms.counts,
        )
        kept = None if self.store.kept.columns is None else kept_names(self.store.kept, self.metadata)
        outcome = self.fault, events, timing, counts, self.connections, self._statistics, kept, self.outputs.summary
        return Run(self.metadata, t, values, busy, wall, *outcome, changes=tuple(self.changes))


def evaluation_of(rig: WiredRig) -> Evaluation:
    """What the outputs of a run compute; for a compiled rig it can be sent to another process."""
    schedule, pacing = rig.run_spec.schedule, rig.run_spec.schedule.pacing
    monitor = rig.cached.get("events", lambda: EventMonitor(rig.tick_model))
    evaluation = Evaluation(rig.observe, copy.deepcopy(monitor), schedule.step_ns)
    if pacing is not None:
        evaluation.tasks = rig.tasks
        evaluation.misses = MissMonitor(
            rig.tasks,
            schedule.step_ns / pacing.rate,
            round(pacing.warm_up * 1e9),
            pacing.rate,
            pacing.trigger is not None,
            "compiled" if rig.native else "Python",
        )
    return evaluation
