"""A run of a wired rig from start to end: its scheduler, the recorded ticks, and the sinks that they go to."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from cosim.compile import BatchFunction
from cosim.errors import CosimError, InputError, RunError
from cosim.execution.engine import Engine
from cosim.execution.native_engine import NativeEngine
from cosim.execution.scheduler import FOREVER, Scheduler
from cosim.output.evaluation import Evaluation, MissMonitor
from cosim.output.events import EventMonitor, RunEvent
from cosim.output.run_status import RunStatus
from cosim.output.signal_statistics import SignalStatistics
from cosim.output.signal_store import SignalStore
from cosim.output.timing_report import timing_lines
from cosim.output.waiting_ticks import WaitingTicks
from cosim.rig.build.wired_rig import WiredRig
from cosim.rig.kept_signals import check_kept, kept_names, store_of
from cosim.rig.outline import RigOutline, outline_of
from cosim.rig.run import Run, StoppedRun
from cosim.rig.run_file import finish_store
from cosim.rig.status_reports import StatusReports
from cosim.rig.summary import followed_signals
from cosim.tick.tick_block import TickBlock
from cosim.types import Sink
from cosim.units import LONGEST

if TYPE_CHECKING:
    from cosim.output.remote_sink import RemoteSink
    from cosim.rig.build.drivers import BusReport
    from cosim.rig.sections.keep import KeepSpec


def make_engine(rig: WiredRig) -> Engine:
    """A new engine at t = 0: with a compiled loop where it can be, else the Python engine."""
    spec, model = rig.run_spec, rig.run_model
    if rig.looped:
        with rig.cached.tracked():
            engine = NativeEngine(model)
        rig.keep()
        return engine
    from cosim.execution.python_engine import PythonEngine
    from cosim.rig.build.drivers import driver_groups, safety_of
    from cosim.tick.virtual_plant import VirtualPlant

    plant = VirtualPlant(model)
    groups = driver_groups(spec.drivers, rig.contexts, rig.joints, rig.limits, plant)
    return PythonEngine(model, plant, groups, **safety_of(spec.guard, rig.hardware, model.step, spec.source.place))


def make_scheduler(rig: WiredRig) -> Scheduler:
    """The scheduler of a rig, in real time where its schedule has real-time settings."""
    schedule = rig.run_spec.schedule

    def make() -> Engine:
        engine = make_engine(rig)
        if schedule.pacing is not None:
            from cosim.execution.schedulability import check_schedulable

            check_schedulable(engine, rig.tasks, schedule.step_ns / schedule.rate, rig.place)
        return engine

    place = rig.cached.recall("place of realtime", lambda: rig.place(("schedule", "realtime")))
    return Scheduler(make, schedule.pacing, rig.tasks, schedule.blend, place)


def ticks_of(rig: WiredRig, duration: float | None) -> int:
    """The ticks after the first of a run of `duration` [s], by default the rig's. Raises InputError unless it has 1."""
    schedule = rig.run_spec.schedule
    seconds = schedule.duration_ns * 1e-9 if duration is None else duration
    ticks = round(seconds * 1e9 / schedule.step_ns) if abs(seconds) <= LONGEST else 0
    if ticks < 1:
        wrong, fix = ("too long", "shorter") if seconds > LONGEST else ("shorter than one step", "longer")
        raise InputError(f"{seconds:g} s is {wrong}; use a {fix} one", "duration")
    return ticks


def run_session(
    rig: WiredRig,
    duration: float | None,
    record: str | Path | None,
    progress: Callable[[RunStatus], None] | None,
    clear_faults: bool,
    keep: KeepSpec,
) -> Run:
    """See `Rig.run`."""
    ticks, outline = ticks_of(rig, duration), outline_of(rig)
    kept = check_kept(keep, outline, rig.run_model, ticks + 1)
    if clear_faults and not rig.hardware:
        raise InputError("there are no real motors in this rig; take it out", "--clear-faults")
    with make_scheduler(rig) as scheduler, scheduler.signals:
        scheduler.prepare(clear_faults)
        recorder = _record(RunRecorder(rig, outline, scheduler, store_of(keep, kept, outline)), record, progress)
        if rig.hardware:
            from cosim.rig.build.drivers import bus_report

            passed = time.perf_counter() - recorder.begun
            manager = scheduler.engine.hardware_manager
            recorder.connections = bus_report(rig.spec.drivers, rig.bus_loads, manager, passed)
    if not recorder.done:
        raise RunError(recorder.fault, str(rig.run_spec.path))
    run = recorder.run()
    rig.keep()
    finish_store(run, recorder.store, temporary=keep.file is None)
    if recorder.fault:
        raise StoppedRun(run)
    return run


@dataclass
class RunRecorder:
    """The ticks of a run so far, their signals, events and faults."""

    rig: WiredRig
    outline: RigOutline
    scheduler: Scheduler
    store: SignalStore
    sinks: list[Sink] = field(default_factory=list)
    remote: RemoteSink | None = None  # of the sinks, the one that evaluates the ticks itself
    done: int = 0  # ticks
    now_ns: int = 0  # simulated time of the last tick
    waiting: WaitingTicks = field(default_factory=WaitingTicks)  # whose signals are computed at the end
    events: list[RunEvent] = field(default_factory=list)
    fault: str = ""
    connections: tuple[BusReport, ...] = ()  # of real drives
    busy: float = 0.0  # s
    begun: float = field(default_factory=time.perf_counter)

    def __post_init__(self) -> None:
        self._evaluate = evaluation_of(self.rig)
        if self.scheduler.pacing is None and isinstance(self.rig.observe, BatchFunction):
            self.rig.observe.begin()
        self._statistics = SignalStatistics(
            tuple(self.outline.units), followed_signals(self.outline, self.outline.units)
        )

    def add(self, block: TickBlock) -> None:
        """Add finished ticks. Signals of a real-time run are computed at its end, because a Python loop shares the
        interpreter: its sinks compute theirs in a separate process, except in an interpreted run."""
        step_ns = self.rig.run_spec.schedule.step_ns
        self.done, self.now_ns = self.done + len(block.numbers), int(block.numbers[-1]) * step_ns
        if self.remote is not None:
            self.remote.ticks(block)
        if self.remote is None and (self.sinks or self.scheduler.pacing is None):
            self.compute_signals(block, self.sinks)
        else:
            self.waiting.add(block)

    def compute_signals(self, block: TickBlock, sinks: Sequence[Sink] = ()) -> None:
        values, events = self._evaluate(block, sinks, self.store.room(len(block.numbers)))
        self._statistics.add(values)
        self.store.add(block.numbers, block.numbers * self.outline.step_ns * 1e-9)
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
        events, counts = tuple(self.events), self._evaluate.events.limit_alarms.counts
        kept = None if self.store.kept.columns is None else kept_names(self.store.kept, self.outline)
        outcome = self.fault, events, timing, counts, self.connections, self._statistics, kept
        return Run(self.outline, t, values, busy, wall, *outcome)


def evaluation_of(rig: WiredRig) -> Evaluation:
    """What the outputs of a run compute; that of a compiled rig can be sent to another process."""
    schedule, pacing = rig.run_spec.schedule, rig.run_spec.schedule.pacing
    monitor = rig.cached.recall("events", lambda: EventMonitor(rig.tick_model))
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


def _open_sinks(
    rig: WiredRig, outline: RigOutline, stack: ExitStack, record: str | Path | None
) -> tuple[list[Sink], RemoteSink | None]:
    """Open the recording and the telemetry of the rig; for a real-time run in a separate process, which is also the
    second result if it evaluates the ticks."""
    spec = rig.run_spec
    if record is None and spec.telemetry.publish is None:
        return [], None
    from cosim.output.remote_sink import RemoteSink
    from cosim.output.sinks import SinkConfig, open_sinks
    from cosim.rig.provenance import attachments_of, metadata_of

    start_ns = time.time_ns()
    output = SinkConfig(
        name=spec.name,
        channels=tuple(outline.units.items()),
        attachments=attachments_of(rig) if record is not None else (),
        metadata=metadata_of(rig, outline, start_ns) if record is not None else {},
        record=str(record) if record is not None else None,
        encoding=spec.telemetry.encoding,
        start_ns=start_ns,
        endpoint=spec.telemetry.publish,
        rate=spec.telemetry.rate,
    )
    if spec.schedule.pacing is None:
        return open_sinks(stack, output), None
    evaluation = None if rig.interpret else evaluation_of(rig)
    remote = stack.enter_context(RemoteSink(output, evaluation))
    return [remote], None if rig.interpret else remote


def _record(
    recorder: RunRecorder, record: str | Path | None, progress: Callable[[RunStatus], None] | None
) -> RunRecorder:
    rig, scheduler, ticks = recorder.rig, recorder.scheduler, recorder.store.kept.expected
    try:
        with ExitStack() as stack:
            scheduler.mode.arm()  # a run that cannot start writes no file
            recorder.sinks, recorder.remote = _open_sinks(rig, recorder.outline, stack, record)
            try:
                try:
                    scheduler.arm()
                except CosimError as error:  # the recording of a run without ticks holds the reason
                    for sink in recorder.sinks:
                        sink.fault(recorder.now_ns, str(error))
                    raise
                recorder.begun = time.perf_counter()
                # real joints make a controlled stop after the last tick, if the rig configures it
                scheduler.start(FOREVER if rig.hardware and rig.run_model.has_controlled_stop else ticks)
                _follow(recorder, ticks, progress)
            except KeyboardInterrupt:
                scheduler.controlled_stop()
                for block in iter(scheduler.read, None):
                    recorder.add(block)
                scheduler.signals.raise_again()
                last = recorder.done - 1
                message = f"interrupted after tick {last}" if recorder.done else "interrupted before the first tick"
                recorder.fault = scheduler.fault or message
            for sink in recorder.sinks:
                if recorder.fault:
                    sink.fault(recorder.now_ns, recorder.fault)
                if scheduler.pacing is not None and recorder.done:
                    for line in timing_lines(scheduler.timing.summary()):
                        sink.event(recorder.now_ns, line)
    except RunError as error:
        # the recording failed; the run itself is kept
        if not recorder.done and not recorder.fault:
            raise
        recorder.fault = f"{recorder.fault}; and {error}" if recorder.fault else str(error)
    return recorder


def _follow(recorder: RunRecorder, ticks: int, progress: Callable[[RunStatus], None] | None) -> None:
    """Add blocks of ticks as they finish, until the run ends."""
    scheduler, before = recorder.scheduler, time.perf_counter()
    reports = None if progress is None else StatusReports(recorder.rig, ticks, progress)
    while scheduler.wait():
        recorder.busy += time.perf_counter() - before
        with scheduler.signals.postponed():  # a block that was read is not lost
            block = scheduler.borrow()
            assert block is not None
            recorder.add(block)
        before = time.perf_counter()
        if reports is not None:
            reports.add(block)
        if recorder.done >= ticks:
            scheduler.controlled_stop()
    recorder.fault = scheduler.fault
