"""The scenarios of one rig: its undisturbed run, and for each scenario a process from where its first fault begins.

Until then all scenarios are the same run, so it is computed once. A forked process has all of it: the state of drivers,
buses, drives and physics. Conditions and bounds are resolved in SI with the signals of the rig; a run that failed is
recorded.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import NoReturn, cast

import numpy as np

from cosim.apps.scenario.armed_rig import ArmedRig
from cosim.apps.scenario.faulty_run import FaultyRun, run_with_faults
from cosim.apps.scenario.processes import Children, Tokens
from cosim.apps.scenario.reaction import Reaction, SignalBound, judge
from cosim.apps.scenario.result import ScenarioResult
from cosim.apps.scenario.timeline import TimedFault, Timeline
from cosim.core.compile import BatchFunction
from cosim.core.errors import CosimError, ErrorList, InputError, InputErrors, near_names
from cosim.core.units import parse_quantity
from cosim.rig.inspection import warnings_before_run
from cosim.rig.reading.schema import KeyPath
from cosim.rig.run.outputs import open_outputs
from cosim.rig.run.run_metadata import run_metadata_of
from cosim.rig.run.run_recorder import evaluation_of
from cosim.rig.sections.rig_spec import RigSpec
from cosim.rig.sections.scenario import OFF, Bound, ExpectedEnd, ScenarioSpec
from cosim.simulation.tick.tick_block import TickBlock

BAD_INPUT = "input.json"  # in the folder of the results: mistakes that only a wired rig shows


class ScenarioBatch:
    """The run of a rig's scenarios: together until their first faults begin, then in a process each.

    folder: where each scenario leaves its result, `<number>.json`; record: where the recordings of those that failed
    go, None for nowhere.
    """

    def __init__(self, spec: RigSpec, folder: Path, tokens: Tokens, record: Path | None) -> None:
        self._spec, self._folder, self._tokens, self._record = spec, folder, tokens, record
        self._children = Children(tokens)
        self._warnings: tuple[str, ...] = ()  # of the rig

    def run(self, all_specs: Sequence[ScenarioSpec], chosen: dict[int, ScenarioSpec]) -> None:
        """all_specs: of this rig, chosen or not, so that a choice changes no result; chosen: by number."""
        begun = time.perf_counter()
        try:
            armed = ArmedRig(self._spec, all_specs)
            scenarios = resolve(all_specs, armed)
        except InputError as error:
            lines = [str(each) for each in getattr(error, "errors", [error])]
            (self._folder / BAD_INPUT).write_text(json.dumps(lines))
            return
        self._warnings = tuple(line for found in warnings_before_run(armed.rig) for line in found)
        by_name = {scenario.spec.name: scenario for scenario in scenarios}
        pending = {number: by_name[spec.name] for number, spec in chosen.items()}
        try:
            armed.begin()
        except CosimError as error:
            for number, scenario in pending.items():
                failed = Reaction(f"could not start: {error}", None, (f"could not start: {error}",))
                self._leave(number, scenario, failed, str(error), begun)
            return
        self._run_until_faults(armed, pending)
        self._children.reap(block=True)

    def _run_until_faults(self, armed: ArmedRig, pending: dict[int, Scenario]) -> None:
        engine, rows, fault = armed.engine, list[np.ndarray](), ""
        timelines = {number: Timeline(each.faults, armed.step) for number, each in pending.items()}
        end = max((each.ticks for each in pending.values()), default=0)

        def value(signal: str) -> float:
            return float(armed.signals(rows[-1][-1:])[0, armed.names[signal]])

        while pending and engine.number < end and not fault:
            tick = engine.number
            for number, scenario in tuple(pending.items()):
                timeline = timelines[number]
                timeline.update(tick, value)
                if timeline.begun(0, tick) and tick < scenario.ticks:
                    del pending[number]
                    job = partial(self._disturbed, number, scenario, armed, timeline, rows)
                    self._children.start(job, self._folder / f"{number}.error", wait=True)
            if not pending:
                break
            until = min(
                tick + 1 if timelines[number].waits(tick) else timelines[number].next_change(tick) for number in pending
            )
            new, fault = armed.run(int(min(until, end)) - tick)
            rows += [new] if len(new) else []
        for number, scenario in pending.items():  # the end of the run came first
            run = FaultyRun(armed.step, np.concatenate(rows)[: scenario.ticks], fault, timelines[number])
            self._judge(number, scenario, armed, run, time.perf_counter())

    def _disturbed(
        self, number: int, scenario: Scenario, armed: ArmedRig, timeline: Timeline, rows: list[np.ndarray]
    ) -> None:
        """In a process of its own."""
        begun = time.perf_counter()
        run = run_with_faults(armed, timeline, rows, scenario.ticks, scenario.expects_off)
        self._judge(number, scenario, armed, run, begun)

    def _judge(self, number: int, scenario: Scenario, armed: ArmedRig, run: FaultyRun, begun: float) -> None:
        signals, row = armed.signals(run.rows), armed.rig.tick_model.row
        fallbacks = {
            loop.name: np.asarray(np.any(run.rows[:, row.place("fallback_active", loop.name).where] > 0.5, axis=1))
            for loop in armed.rig.tick_model.loops
        }
        reaction = judge(run, scenario.expect, signals, fallbacks)
        file = ""
        if reaction.failures and self._record is not None:
            file = record_run(armed, run, self._record, scenario.spec.name)
        self._leave(number, scenario, reaction, run.fault, begun, file, run, armed.step)

    def _leave(
        self,
        number: int,
        scenario: Scenario,
        reaction: Reaction,
        sentence: str,
        begun: float,
        file: str = "",
        run: FaultyRun | None = None,
        step: float = 0.0,
    ) -> None:
        """Write the result, whole or not at all."""
        result = ScenarioResult(
            name=scenario.spec.name,
            faults=tuple(f"{each.spec.kind} at {each.spec.joint or each.spec.driver}" for each in scenario.faults),
            expected=tuple(each.text for each in scenario.spec.expect),
            happened=reaction.what,
            sentence=sentence,
            failures=reaction.failures,
            reaction_ticks=reaction.ticks,
            reaction=None if reaction.ticks is None else reaction.ticks * step,
            events=tuple((tick * step, what) for tick, what in run.events) if run is not None else (),
            seconds=time.perf_counter() - begun,
            recording=file,
            warnings=self._warnings,
        )
        path = self._folder / f"{number}.json"
        path.with_suffix(".part").write_text(json.dumps(asdict(result)))
        path.with_suffix(".part").rename(path)


def record_run(armed: ArmedRig, run: FaultyRun, folder: Path, name: str) -> str:
    """Write `<name>.mcap` with all ticks, the faults and the stop; the path."""
    path = folder / (re.sub(r"[^\w-]+", "_", name) + ".mcap")
    step_ns, count = armed.rig.tick_model.step_ns, len(run.rows)
    with ExitStack() as stack:
        evaluation = evaluation_of(armed.rig)
        evaluation.observe = cast(BatchFunction, armed.own_signals)  # of rows with the numbers of the plant
        outputs = open_outputs(armed.rig, run_metadata_of(armed.rig), stack, path, evaluation)
        evaluation(TickBlock(np.arange(count), run.rows, np.zeros((count, 0)), armed.start), outputs.sinks)
        for tick, what in run.events:
            outputs.event(tick * step_ns, what, "warning")
        for sink in outputs.sinks if run.fault else ():
            sink.fault(run.last * step_ns, run.fault)
    return str(path)


@dataclass(frozen=True)
class Scenario:
    """A scenario whose faults and expectations are resolved to the signals and ticks of a rig. faults: in their order;
    expect: what is judged; ticks: of the whole run."""

    spec: ScenarioSpec
    faults: tuple[TimedFault, ...]
    expect: tuple[ExpectedEnd | SignalBound, ...]
    ticks: int

    @property
    def expects_off(self) -> bool:
        return any(isinstance(each, ExpectedEnd) and each.what == OFF for each in self.expect)


def resolve(specs: Sequence[ScenarioSpec], armed: ArmedRig) -> list[Scenario]:
    """Raises InputErrors for signals that do not exist and values that do not fit them."""
    errors, found = ErrorList(), []
    for spec in specs:
        try:
            found.append(_resolved(spec, armed))
        except InputError as error:
            errors.append(error)
    if errors:
        raise InputErrors(errors)
    return found


def _resolved(spec: ScenarioSpec, armed: ArmedRig) -> Scenario:
    faults = []
    for fault in spec.faults:
        when = None
        if (condition := fault.when) is not None:
            keys = (*condition.key, "above" if condition.factor > 0.0 else "below")
            bound = _in_si(condition.bound, condition.signal, armed, spec, (*condition.key, "signal"), keys)
            when = condition.signal, condition.factor, bound
        faults.append(TimedFault(fault.spec, when, fault.follows))
    expect: list[ExpectedEnd | SignalBound] = []
    for each in spec.expect:
        if isinstance(each, Bound):
            value = _in_si(each.value, each.signal, armed, spec, each.key, each.key)
            expect.append(SignalBound(each, value, armed.names[each.signal], armed.units[each.signal]))
        else:
            expect.append(each)
    return Scenario(spec, tuple(faults), tuple(expect), round(spec.duration / armed.step) + 1)


def _in_si(text: str, signal: str, armed: ArmedRig, spec: ScenarioSpec, at: KeyPath, of_value: KeyPath) -> float:
    """A value in the unit of a signal; at: the key that names the signal."""

    def fail(what: str, key: KeyPath) -> NoReturn:
        raise InputError(what, spec.place(key))

    if signal not in armed.units:
        fail(f"no signal '{signal}'{near_names(signal, armed.units)}", at)
    try:
        return parse_quantity(text, armed.units[signal], f"signal '{signal}'")
    except ValueError as error:
        fail(str(error), of_value)
