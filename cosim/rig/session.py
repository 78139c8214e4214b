"""A run of a wired rig from start to end: its scheduler, the recorded ticks, and the sinks that they go to."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from cosim.errors import CosimError, InputError, RunError
from cosim.execution.engine import Engine
from cosim.execution.native_engine import NativeEngine
from cosim.execution.posix_signals import termination_signals
from cosim.execution.python_engine import PythonEngine
from cosim.execution.schedulability import check_schedulable
from cosim.execution.scheduler import FOREVER, Scheduler, TickBlock
from cosim.output.events import EventMonitor, RunEvent
from cosim.output.timing_report import timing_lines
from cosim.rig.build.drivers import bus_report, driver_groups, safety_of
from cosim.rig.build.wired_rig import WiredRig
from cosim.rig.run import Run, StoppedRun, signal_units
from cosim.rig.sections.schedule import LONGEST
from cosim.tick.virtual_plant import VirtualPlant
from cosim.timing import deadlines
from cosim.types import Sink
from cosim.units import format_seconds

SHOWN = 4096  # ticks back from a missed deadline by which its cause is judged while the run goes on


def make_engine(rig: WiredRig) -> Engine:
    """A new engine at t = 0: compiled when every part of a tick can be, else the Python engine."""
    spec, model = rig.spec, rig.tick_model
    if rig.native:
        return NativeEngine(model)
    plant = VirtualPlant(model)
    groups = driver_groups(spec.drivers, rig.contexts, rig.joints, rig.limits, plant)
    return PythonEngine(model, plant, groups, **safety_of(spec.guard, rig.hardware, model.step, spec.source.place))


def make_scheduler(rig: WiredRig) -> Scheduler:
    """The scheduler of a rig, in real time where its schedule has real-time settings."""
    schedule, source = rig.spec.schedule, rig.spec.source

    def make() -> Engine:
        engine = make_engine(rig)
        if schedule.pacing is not None:
            check_schedulable(engine, rig.tasks, schedule.step_ns / schedule.rate, source.place)
        return engine

    return Scheduler(make, schedule.pacing, rig.tasks, schedule.blend, source.place(("schedule", "realtime")))


def run_session(
    rig: WiredRig,
    duration: float | None,
    record: str | Path | None,
    progress: Callable[[float], None] | None,
    clear_faults: bool,
) -> Run:
    """See `Rig.run`."""
    schedule = rig.spec.schedule
    seconds = schedule.duration_ns * 1e-9 if duration is None else duration
    ticks = round(seconds * 1e9 / schedule.step_ns) if abs(seconds) <= LONGEST else 0
    if ticks < 1:
        wrong, mend = ("too long", "shorter") if seconds > LONGEST else ("shorter than one step", "longer")
        raise InputError(f"{seconds:g} s is {wrong}; use a {mend} one", "duration")
    if clear_faults and not rig.hardware:
        raise InputError("there are no real motors in this rig; take it out", "--clear-faults")
    with make_scheduler(rig) as scheduler:
        scheduler.prepare(clear_faults)
        taken = _taken(rig, scheduler, ticks + 1, record, progress)
        if rig.hardware:
            taken.connections = bus_report(
                rig.spec.drivers, rig.bus_loads, scheduler.engine.hardware_manager, time.perf_counter() - taken.begun
            )
    if not taken.t_ns:
        raise RunError(taken.fault, str(rig.spec.path))
    run = taken.run()
    if taken.fault:
        raise StoppedRun(run)
    return run


@dataclass
class RunRecorder:
    """What has come of a run so far."""

    rig: WiredRig
    scheduler: Scheduler
    sinks: list[Sink] = field(default_factory=list)
    t_ns: list[np.ndarray] = field(default_factory=list)
    waiting: list[TickBlock] = field(default_factory=list)  # whose signals are still to be made
    blocks: list[np.ndarray] = field(default_factory=list)  # values of all signals
    events: list[RunEvent] = field(default_factory=list)
    fault: str = ""
    connections: tuple[dict[str, Any], ...] = ()  # to real drives
    busy: float = 0.0  # s
    begun: float = field(default_factory=time.perf_counter)

    def __post_init__(self) -> None:
        self._watch = EventMonitor(self.rig.tick_model)
        self._told = -1  # number of the last tick whose lateness was told

    @property
    def done(self) -> int:
        return sum(map(len, self.t_ns))

    @property
    def now_ns(self) -> int:
        """The rig's time at the last tick."""
        return int(self.t_ns[-1][-1]) if self.t_ns else 0

    def add(self, block: TickBlock) -> None:
        """Finished ticks. Their signals are computed immediately for the sinks; without sinks, those of a run in real
        time are computed at its end, because a Python loop shares the interpreter."""
        self.t_ns.append(block.numbers * self.rig.spec.schedule.step_ns)
        self.waiting.append(block)
        if self.sinks or self.scheduler.pacing is None:
            self.digest()

    def digest(self) -> None:
        """Compute the signals of all waiting ticks."""
        waiting, self.waiting = self.waiting, []
        for block in waiting:
            self._digest(block)

    def _digest(self, block: TickBlock) -> None:
        t_ns = block.numbers * self.rig.spec.schedule.step_ns
        values = self.rig.observe(block.bumpless_start, block.rows)
        if self.scheduler.pacing is not None:
            values = np.hstack([values, deadlines.values(self.rig.tasks, block.numbers, block.stamps)])
        self.blocks.append(values)
        events = self._watch(block.rows)
        self.events += events
        for sink in self.sinks:
            sink(t_ns, values)
            for event in events:
                sink.event(round(event.t * 1e9), event.name, event.level)
        self._tell_misses(block)

    def _tell_misses(self, block: TickBlock) -> None:
        """Every deadline that was missed goes to the recording, with its cause."""
        pacing = self.scheduler.pacing
        if pacing is None or not self.sinks or not block.stamps.size:
            return
        least = min(task.deadline_ns for task in self.rig.tasks)
        if pacing.trigger is None and not np.any(block.stamps[:, -2] - block.stamps[:, 0] > least):
            return  # which is cheaper to see than to judge
        for miss in self.scheduler.recent_timing(SHOWN).misses():
            if miss.number > self._told:
                what = f"missed a deadline by {format_seconds(miss.late_ns * 1e-9)} in {miss.task}: {miss.cause}"
                for sink in self.sinks:
                    sink.event(miss.number * self.rig.spec.schedule.step_ns, what, "warning")
                self._told = miss.number

    def run(self) -> Run:
        units = tuple(channels_of(self.rig))
        self.digest()
        values = np.concatenate(self.blocks)
        t = np.concatenate(self.t_ns)[: len(values)] * 1e-9
        paced = self.scheduler.pacing is not None
        found = self.scheduler.timing if paced else None
        busy = self.busy if found is None else float(found.busy_ns.sum()) * 1e-9
        names, wall = tuple(name for name, _ in units), time.perf_counter() - self.begun
        events, counts = tuple(self.events), self._watch.limit_alarms.counts
        return Run(self.rig, t, values, names, busy, wall, self.fault, events, found, counts, self.connections)


def channels_of(rig: WiredRig) -> tuple[tuple[str, str], ...]:
    """(signal, unit) of everything that a run of the rig leaves."""
    signals = tuple(signal_units(rig).items())
    return signals if rig.spec.schedule.pacing is None else signals + deadlines.channels(rig.tasks)


def _open_sinks(rig: WiredRig, stack: ExitStack, record: str | Path | None) -> list[Sink]:
    """The recording, and the telemetry of the rig. Those of a run in real time are in a process of their
    own."""
    from cosim.output.remote_sink import RemoteSink
    from cosim.output.sinks import SinkConfig, open_sinks

    spec = rig.spec
    output = SinkConfig(
        name=spec.name,
        channels=channels_of(rig),
        attachment=(spec.path.name, spec.path.read_bytes()),
        record=str(record) if record is not None else None,
        endpoint=spec.telemetry.publish,
        rate=spec.telemetry.rate,
    )
    if spec.schedule.pacing is None or (output.record is None and output.endpoint is None):
        return open_sinks(stack, output)
    return [stack.enter_context(RemoteSink(output))]


def _taken(
    rig: WiredRig,
    scheduler: Scheduler,
    ticks: int,
    record: str | Path | None,
    progress: Callable[[float], None] | None,
) -> RunRecorder:
    taken = RunRecorder(rig, scheduler)
    try:
        with ExitStack() as stack:
            scheduler.mode.arm()  # a run that is refused writes nothing
            taken.sinks = _open_sinks(rig, stack, record)
            try:
                try:
                    scheduler.arm()
                except CosimError as error:  # a recording without ticks says why
                    for sink in taken.sinks:
                        sink.fault(taken.now_ns, str(error))
                    raise
                taken.begun = time.perf_counter()
                # real joints are brought to rest after the last tick, where the rig says how
                scheduler.start(FOREVER if rig.hardware and rig.tick_model.has_controlled_stop else ticks)
                _follow(taken, ticks, progress)
            except KeyboardInterrupt:
                scheduler.controlled_stop()
                for block in iter(scheduler.read, None):
                    taken.add(block)
                last = taken.done - 1
                told = f"interrupted after tick {last}" if taken.done else "interrupted before the first tick"
                taken.fault = scheduler.fault or told
            for sink in taken.sinks:
                if taken.fault:
                    sink.fault(taken.now_ns, taken.fault)
                if scheduler.pacing is not None and taken.t_ns:
                    for line in timing_lines(scheduler.timing.summary()):
                        sink.event(taken.now_ns, line)
    except RunError as error:
        # what was being recorded may be lost, the run is not
        if not taken.t_ns or taken.fault:
            raise
        taken.fault = str(error)
    return taken


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Ctrl-C and the orders to end wait until this is done; only the main thread hears them at all."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard: list[tuple[int, Any]] = []
    numbers = termination_signals()
    handlers = [signal.signal(number, lambda *call: heard.append(call)) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, handlers, strict=True):
            signal.signal(number, handler)
        for number, _ in heard[:1]:
            signal.raise_signal(number)


def _follow(taken: RunRecorder, ticks: int, progress: Callable[[float], None] | None) -> None:
    """Read the ticks as they are done, until there are no more."""
    scheduler, before = taken.scheduler, time.perf_counter()
    while scheduler.wait():
        taken.busy += time.perf_counter() - before
        with _uninterrupted():  # what has been taken from the scheduler is kept
            block = scheduler.read()
            assert block is not None
            taken.add(block)
        before = time.perf_counter()
        if progress is not None:
            progress(min(taken.done / ticks, 1.0))
        if taken.done >= ticks:
            scheduler.controlled_stop()
    taken.fault = taken.scheduler.fault
