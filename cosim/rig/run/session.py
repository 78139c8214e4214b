"""A run of a wired rig from start to end: its scheduler, the recorded ticks, and the sinks that they go to."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from cosim.core.errors import CosimError, InputError, RunError
from cosim.core.units import LONGEST_TIME
from cosim.execution.engine import Engine
from cosim.execution.execution_mode import PlannedChange
from cosim.execution.native_engine import NativeEngine
from cosim.execution.posix_signals import interrupted
from cosim.execution.scheduler import FOREVER, Scheduler, SchedulerState
from cosim.execution.timing.privileges import left_to_loop
from cosim.output.run_status import RunStatus
from cosim.output.timing_report import timing_lines
from cosim.rig.run.changes import ENDED, OrderedStop, planned_of
from cosim.rig.run.consent import GivenConsent, agree
from cosim.rig.run.kept_signals import check_kept, scarce_room, store_of
from cosim.rig.run.outputs import open_outputs
from cosim.rig.run.recorded_run import Change
from cosim.rig.run.run import Run, StoppedRun
from cosim.rig.run.run_file import finish_store
from cosim.rig.run.run_metadata import run_metadata_of
from cosim.rig.run.run_recorder import RunRecorder, evaluation_of
from cosim.rig.run.status_reports import StatusReports
from cosim.rig.wiring.wired_rig import WiredRig

if TYPE_CHECKING:
    from cosim.execution.hardware.traffic.traffic_log import TrafficLog
    from cosim.rig.run.remote_control import RemoteControl
    from cosim.rig.sections.keep import KeepSpec

PAUSE_POLL = 0.05  # s between looks at a paused run


def make_engine(rig: WiredRig, traffic: TrafficLog | None = None) -> Engine:
    """A new engine at t = 0: with a compiled loop where it can be, else the Python engine. traffic: see
    `driver_groups`."""
    spec, model = rig.run_spec, rig.run_model
    if rig.looped:
        with rig.cached.tracked():
            engine = NativeEngine(model)
        rig.save_parts()
        return engine
    from cosim.execution.bus_engine import BusEngine
    from cosim.execution.python_engine import PythonEngine
    from cosim.rig.wiring.drivers import driver_groups, safety_of
    from cosim.simulation.tick.virtual_plant import VirtualPlant

    plant = VirtualPlant(model)
    groups = driver_groups(spec.drivers, rig.contexts, rig.joints, rig.limits, plant, traffic, rig.called)
    safety = safety_of(spec.guard, rig.hardware, model.step, spec.source.place)
    return (PythonEngine if rig.why_python_loop else BusEngine)(model, plant, groups, **safety)


def make_scheduler(
    rig: WiredRig, planned: Sequence[PlannedChange] = (), traffic: TrafficLog | None = None
) -> Scheduler:
    """The scheduler of a rig, in real time where its schedule has real-time settings; planned: changes of the memory of
    any other; traffic: see `driver_groups`."""
    schedule = rig.run_spec.schedule

    def make() -> Engine:
        engine = make_engine(rig, traffic)
        if schedule.pacing is not None:
            from cosim.execution.schedulability import check_schedulable

            check_schedulable(engine, rig.tasks, schedule.step_ns / schedule.rate, rig.place)
        return engine

    place = rig.cached.get("place of realtime", lambda: rig.place(("schedule", "realtime")))
    return Scheduler(make, schedule.pacing, rig.tasks, schedule.blend, place, planned=planned)


def ticks_of(rig: WiredRig, duration: float | None) -> int:
    """The ticks after the first of a run of `duration` [s], by default the rig's. Raises InputError unless it has 1."""
    schedule = rig.run_spec.schedule
    seconds = schedule.duration_ns * 1e-9 if duration is None else duration
    ticks = round(seconds * 1e9 / schedule.step_ns) if abs(seconds) <= LONGEST_TIME else 0
    if ticks < 1:
        wrong, fix = ("too long", "shorter") if seconds > LONGEST_TIME else ("shorter than one step", "longer")
        raise InputError(f"{seconds:g} s is {wrong}; use a {fix} one", "duration")
    return ticks


def check_control(rig: WiredRig, wait: bool, changes: Sequence[Change]) -> None:
    """Raises InputError for a rig that cannot be controlled, or that would wait for ever."""
    telemetry, paced = rig.run_spec.telemetry, rig.run_spec.schedule.pacing is not None
    if telemetry.control and not paced:
        raise InputError("only a run in real time can be controlled; add --realtime or take it out", "--control")
    if wait and not telemetry.control:
        raise InputError("nobody could start this run; add --control", "--wait")
    if changes and paced:
        raise InputError("changes are planned for runs as fast as possible; run it without real time", "changes")


def open_control(recorder: RunRecorder, stack: ExitStack) -> RemoteControl:
    """The control socket of a run, closed by `stack`. Raises InputError when it cannot be bound."""
    from cosim.rig.run.remote_control import control_of

    return control_of(recorder, stack)


def run_session(
    rig: WiredRig,
    duration: float | None,
    record: str | Path | None = None,
    progress: Callable[[RunStatus], None] | None = None,
    clear_faults: bool = False,
    keep: KeepSpec | None = None,
    wait: bool = False,
    changes: Sequence[Change] = (),
    consent: GivenConsent | None = None,
    allow_turns: bool = False,
) -> Run:
    """See `Rig.run`; keep: by default the rig's."""
    keep = rig.run_spec.keep if keep is None else keep
    ticks, metadata = ticks_of(rig, duration), run_metadata_of(rig)
    check_control(rig, wait, changes)
    kept = check_kept(keep, metadata, rig.run_model, ticks + 1)
    if clear_faults and not rig.hardware:
        raise InputError("there are no real motors in this rig; take it out", "--clear-faults")
    if rig.hardware:
        _check_first_calls(rig)
    traffic = _traffic_of(rig) if record is not None else None
    with make_scheduler(rig, planned_of(rig, changes), traffic) as scheduler, scheduler.signals:
        with _placed(rig):
            scheduler.prepare()
            agreement = agree(scheduler, ticks, consent if rig.hardware else None, allow_turns)
            if clear_faults:
                scheduler.clear()
        recorder = RunRecorder(rig, metadata, scheduler, store_of(keep, kept, metadata), traffic=traffic)
        recorder.agreement = agreement
        recorder = _record(recorder, record, progress, wait)
        if rig.hardware:
            from cosim.rig.wiring.drivers import bus_report

            passed = time.perf_counter() - recorder.begun
            manager = scheduler.engine.hardware_manager
            recorder.connections = bus_report(rig.spec.drivers, rig.bus_loads, manager, passed)
    if not recorder.done:
        raise RunError(recorder.fault, str(rig.run_spec.path))
    run = recorder.run()
    rig.save_parts()
    finish_store(run, recorder.store, temporary=keep.file is None)
    if recorder.fault:
        raise StoppedRun(run)
    return run


def _check_first_calls(rig: WiredRig) -> None:
    """Raises InputError for a controller that fails or commands no finite numbers in its first call, as `cosim check`
    does, before a motor is on. Those in Python may keep hidden state, and are not called twice."""
    if not rig.interpret:
        from cosim.rig.inspection import BEFORE_STEP, first_tick

        first_tick(rig, BEFORE_STEP, rig.tick_model.untraceable)


@contextmanager
def _placed(rig: WiredRig) -> Iterator[None]:
    """Errors of drives that have no place get the path of the rig."""
    try:
        yield
    except RunError as error:
        if error.place:
            raise
        raise RunError(error.what, str(rig.run_spec.path)) from None


def _traffic_of(rig: WiredRig) -> TrafficLog | None:
    """For the traffic of the real drivers of a rig that records it."""
    if not (rig.hardware and rig.run_spec.recording.bus):
        return None
    from cosim.execution.hardware.traffic.traffic_log import TrafficLog

    return TrafficLog([driver.name for driver in rig.spec.drivers])


def _record(
    recorder: RunRecorder, record: str | Path | None, progress: Callable[[RunStatus], None] | None, wait: bool
) -> RunRecorder:
    rig, scheduler = recorder.rig, recorder.scheduler
    try:
        with ExitStack() as stack:
            scheduler.mode.arm()  # a run that cannot start writes no file
            stack.enter_context(left_to_loop(scheduler.pacing.cpu if scheduler.pacing else None))
            traffic = recorder.traffic is not None
            room = scarce_room(rig, record, recorder.store.kept.expected, recorder.metadata)
            recorder.outputs = open_outputs(rig, recorder.metadata, stack, record, evaluation_of(rig), traffic)
            if recorder.traffic is not None:
                recorder.record_traffic(recorder.traffic)
                stack.callback(recorder.finish_traffic)
            if room:
                recorder.note(0, room, "warning")
            control = open_control(recorder, stack) if rig.run_spec.telemetry.control else None
            try:
                if control is not None:
                    control.wait_for_start(wait)
                _run_ticks(recorder, progress, control)
            except KeyboardInterrupt as error:
                scheduler.controlled_stop()
                _drain(recorder)
                recorder.fault = scheduler.fault or recorder.when(interrupted(error))
            except OrderedStop as order:
                scheduler.controlled_stop()  # of a loop that an emergency stop has not ended
                _drain(recorder)
                if order.event:
                    recorder.note(recorder.done, order.event)
                ended = bool(order.event and recorder.done)
                recorder.fault = scheduler.fault or ("" if ended else recorder.when(order.fault or order.event))
            recorder.finish_changes()
            for sink in recorder.outputs.sinks:
                if recorder.fault:
                    sink.fault(recorder.now_ns, recorder.fault)
                if scheduler.pacing is not None and recorder.done:
                    for line in timing_lines(scheduler.timing.summary()):
                        sink.event(recorder.now_ns, line)
            recorder.outputs.describe(state=ENDED)
            if control is not None:
                control.tell()
    except RunError as error:
        # the recording failed; the run itself is kept
        if not recorder.done and not recorder.fault:
            raise
        recorder.fault = f"{recorder.fault}; and {error}" if recorder.fault else str(error)
    return recorder


def _run_ticks(
    recorder: RunRecorder, progress: Callable[[RunStatus], None] | None, control: RemoteControl | None
) -> None:
    rig, scheduler, ticks = recorder.rig, recorder.scheduler, recorder.store.kept.expected
    with _placed(rig):
        try:
            scheduler.arm(*recorder.agreement)
        except CosimError as error:  # the recording of a run without ticks holds the reason
            for sink in recorder.outputs.sinks:
                sink.fault(recorder.now_ns, str(error))
            raise
    recorder.begun = time.perf_counter()
    # real joints make a controlled stop after the last tick, if the rig configures it
    scheduler.start(FOREVER if rig.hardware and rig.run_model.has_controlled_stop else ticks)
    _follow(recorder, ticks, progress, control)


def _follow(
    recorder: RunRecorder,
    ticks: int,
    progress: Callable[[RunStatus], None] | None,
    control: RemoteControl | None,
) -> None:
    """Add blocks of ticks as they finish, until the run ends."""
    scheduler, before = recorder.scheduler, time.perf_counter()
    reports = None if progress is None else StatusReports(recorder.rig, ticks, progress)
    attend = (lambda: None) if control is None else control.attend
    while True:
        if not scheduler.wait(attend):
            if control is None or scheduler.state is not SchedulerState.PAUSED:
                break
            control.attend(PAUSE_POLL)
            before = time.perf_counter()
            continue
        recorder.busy += time.perf_counter() - before
        with scheduler.signals.postponed():  # a block that was read is not lost
            block = scheduler.read_view()
            assert block is not None
            recorder.add(block)
        before = time.perf_counter()
        if reports is not None:
            reports.add(block)
        if recorder.done >= ticks:
            scheduler.controlled_stop()
    recorder.fault = scheduler.fault


def _drain(recorder: RunRecorder) -> None:
    """The ticks until the stop; from then on a signal raises again."""
    for block in iter(recorder.scheduler.read, None):
        recorder.add(block)
    recorder.scheduler.signals.raise_again()
