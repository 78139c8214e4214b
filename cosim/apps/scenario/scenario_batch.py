"""The scenarios of one rig: its undisturbed run, and for each scenario a process from where its first fault begins.

Until then all scenarios are the same run, so it is computed once. A forked process has all of it: the state of drivers,
buses, drives and physics.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

import numpy as np

from cosim.apps.scenario.armed_rig import ArmedRig
from cosim.apps.scenario.faulty_run import FaultyRun, run_with_faults
from cosim.apps.scenario.processes import Children
from cosim.apps.scenario.reaction import Reaction, judge
from cosim.apps.scenario.recording import record_run
from cosim.apps.scenario.resolved import Scenario, resolve
from cosim.apps.scenario.result import ScenarioResult
from cosim.apps.scenario.timeline import Timeline
from cosim.apps.scenario.tokens import Tokens
from cosim.core.errors import CosimError, InputError
from cosim.rig.sections.rig_spec import RigSpec
from cosim.rig.sections.scenario import ScenarioSpec

BAD_INPUT = "input.json"  # in the folder of the results: mistakes that only a wired rig shows


class ScenarioBatch:
    """folder: where each scenario leaves its result, `<number>.json`; record: where the recordings of those that failed
    go, None for nowhere."""

    def __init__(self, spec: RigSpec, folder: Path, tokens: Tokens, record: Path | None) -> None:
        self._spec, self._folder, self._tokens, self._record = spec, folder, tokens, record
        self._children = Children(tokens)

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
        )
        path = self._folder / f"{number}.json"
        path.with_suffix(".part").write_text(json.dumps(asdict(result)))
        path.with_suffix(".part").rename(path)
