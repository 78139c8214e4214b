"""Candidates evaluated: a batch of them on all plants side by side, as rollouts, and their margins."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from cosim.apps.analysis.linearisation import LinearRig
from cosim.apps.tuning.margins import MarginFinder
from cosim.apps.tuning.misfit import MISFIT, TargetLog
from cosim.apps.tuning.objective import REFUSED, Objective, score_of
from cosim.apps.tuning.plants import Plants
from cosim.apps.tuning.space import SearchSpace
from cosim.core.errors import InputError, InputErrors, SectionError
from cosim.core.types import Array
from cosim.rig.parameter_arrays import read_arrays
from cosim.rig.rig import Rig
from cosim.rig.rollouts import check_compiled
from cosim.rig.run.session import ticks_of


@dataclass(frozen=True)
class TrialOutcome:
    """Of a candidate. score: see `objective`; cost: of all plants, inf without one; costs: of each plant; figures: name
    of a measure -> [of the plant of the rig, of the worst plant], each the sum of a term or the worst joint of a limit;
    failed: why a run was stopped or which limit does not hold, else ""; stopped: whether a run was."""

    score: float
    cost: float
    costs: tuple[float, ...]
    figures: Mapping[str, tuple[float, float]]
    failed: str = ""
    stopped: bool = False

    @property
    def feasible(self) -> bool:
        return not self.failed


@dataclass(eq=False)
class TrialEvaluator:
    """Evaluates candidates of one session. It can be pickled: the rig is built anew from its file."""

    rig: Rig
    space: SearchSpace
    objective: Objective
    plants: Plants
    duration: float | None = None
    log: TargetLog | None = None  # that runs are to be like
    threads: int | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        """Raises InputError for a rig whose ticks are not compiled, and for margins of a rig without a linear model."""
        check_compiled(self.rig, "tuning sessions")
        if self.objective.margins:
            _ = self._margins

    @cached_property
    def _unknown(self) -> frozenset[str]:
        return frozenset(self.plants.values)

    @cached_property
    def _margins(self) -> MarginFinder:
        return MarginFinder(self.rig, self._unknown)

    def __getstate__(self) -> dict[str, Any]:
        """Without what is compiled."""
        return {name: value for name, value in self.__dict__.items() if name in self.__dataclass_fields__}

    def parameters(self, values: Array) -> dict[str, Array]:
        """name -> (k p, n) of k candidates (k, d) on p plants, the plants of one candidate side by side."""
        p = len(self.plants)
        arrays = {name: np.repeat(array, p, axis=0) for name, array in self.space.arrays(values).items()}
        return arrays | {name: np.tile(array, (len(values), 1)) for name, array in self.plants.arrays().items()}

    def evaluate(self, values: Array) -> list[TrialOutcome]:
        """Of k candidates (k, d), in SI. One that a controller refuses fails alone."""
        try:
            return self._evaluate(values)
        except InputErrors as refused:
            if len(values) == 1:
                return [TrialOutcome(REFUSED, math.inf, (), {}, f"refused: {refused.errors[0].what}", True)]
        return [outcome for row in values for outcome in self.evaluate(row[None])]

    def _evaluate(self, values: Array) -> list[TrialOutcome]:
        parameters, p = self.parameters(values), len(self.plants)
        batch = self.rig.rollouts(
            parameters,
            duration=self.duration,
            metrics=self.objective.metrics,
            signals=self._signals,
            threads=self.threads,
            unknown=self._unknown,
        )
        figures: dict[str, Array] = dict(batch.metrics)
        for name in self.objective.signals:
            figures[name] = np.nanmax(np.abs(batch.samples[name]), axis=1, keepdims=True)
        if self.log is not None:
            figures[MISFIT] = self.log.misfit(batch.t, lambda column: batch.samples[column.signal])
        if self.objective.margins:
            figures |= self._margins.find(parameters, self.objective.margins, self.moments)
        completed = np.where(batch.stopped, np.minimum(batch.ticks / self._ticks, 1.0 - 1e-9), 1.0)
        outcomes = []
        for k in range(len(values)):
            runs = slice(k * p, (k + 1) * p)
            own = {name: array[runs] for name, array in figures.items()}
            first = next(iter(np.flatnonzero(batch.stopped[runs])), None)
            reason = "" if first is None else self._reason(batch.faults[k * p + int(first)], int(first))
            outcomes.append(self._outcome(own, completed[runs], reason))
        return outcomes

    @property
    def _signals(self) -> list[str]:
        """That are kept over time."""
        return list(dict.fromkeys([*self.objective.signals, *([] if self.log is None else self.log.signals)]))

    def linear(self, values: Array, moment: int = 0) -> LinearRig:
        """The tick of the rig with the parameters (d,), after so many ticks of a run. Raises InputError for a rig
        without a linear model, and where the run stops before."""
        given = read_arrays(self.rig, self.space.arrays(values[None]))
        (found,) = self._margins.along(given, 0, (moment,))
        if found is None:
            raise InputError(f"the run stops before {moment * self.rig.tick_model.step:g} s", str(self.rig.spec.path))
        return found

    def margins(self, values: Array) -> dict[str, Array]:
        """figure of a limit -> (p, nv) at the start on all plants, with the parameters (d,)."""
        return self._margins.find(self.parameters(values[None]), self.objective.margins)

    @cached_property
    def moments(self) -> tuple[int, ...]:
        """The ticks at which margins are found: the first, and that at which the reference of the rig is fastest."""
        known = self.rig.tick_model.signals.names
        signals = [name for joint in self.rig.joints if (name := f"{joint}/reference_position") in known]
        start = self.space.arrays(self.space.start[None])
        batch = self.rig.rollouts(start, duration=self.duration, signals=signals, threads=1)
        speeds = [np.nan_to_num(np.abs(np.diff(batch.samples[name][0]))) for name in signals]
        moving = [speed / speed.max() for speed in speeds if speed.any()]
        return (0, int(np.argmax(np.sum(moving, axis=0)))) if moving else (0,)

    @property
    def seconds(self) -> float:
        """The length of each run."""
        return self._ticks * self.rig.tick_model.step

    @cached_property
    def _ticks(self) -> int:
        """Of a whole run."""
        return ticks_of(self.rig, self.duration)

    def _reason(self, fault: str, plant: int) -> str:
        return fault if not plant else f"{fault}, with {self.plants.names[plant]}"

    def _outcome(self, figures: Mapping[str, Array], completed: Array, stopped: str) -> TrialOutcome:
        """figures: name -> (p, joints) of the plants of one candidate."""
        costs = np.where(completed < 1.0, np.inf, self.objective.costs(figures))
        shown, violation, broken = dict[str, tuple[float, float]](), 0.0, ""
        for measure, _ in self.objective.terms:
            values = np.nansum(measure.of(figures[measure.figure]), axis=1)
            shown[measure.name] = float(values[0]), float(values.max())
        for limit, values in self.objective.limited(figures):
            beyond = limit.violation(values)
            worst = int(beyond.argmax())
            extreme = values.min() if limit.at_least else values.max()
            shown[limit.measure.name] = float(values[0]), float(extreme)
            violation += float(beyond.max())
            if beyond.max() > 0.0 and not broken:
                broken = limit.breach(float(values[worst]))
                broken += f", with {self.plants.names[worst]}" if worst else ""
        cost = self.objective.joined(costs)
        if not stopped and not broken and not np.isfinite(cost):
            broken = self._without_cost(figures)
        score = score_of(cost, violation, float(completed.min()))
        return TrialOutcome(score, cost, tuple(costs.tolist()), shown, stopped or broken, bool(stopped))

    def _without_cost(self, figures: Mapping[str, Array]) -> str:
        """Which term of the cost is infinite or does not exist."""
        for measure, _ in self.objective.terms:
            values = np.nansum(measure.of(figures[measure.figure]), axis=1)
            missing = np.isnan(measure.of(figures[measure.figure])).all(axis=1)
            if not np.isfinite(values).all() or missing.any():
                why = "does not exist" if missing.any() else "is infinite"
                return f"{measure.name} {why}" + (" within the run" if measure.figure == "settling_time" else "")
        return "the cost is infinite"

    def check_figures(self) -> None:
        """Raises SectionError for a figure that no joint of the rig can have: of a run that ends, it is NaN."""
        outcome_values = self.space.start[None]
        batch = self.rig.rollouts(
            self.space.arrays(outcome_values), duration=self.duration, metrics=self.objective.metrics, threads=1
        )
        if batch.stopped[0]:
            return
        limited = [("limits", limit.measure) for limit in self.objective.limits]
        for key, measure in (*(("minimise", measure) for measure, _ in self.objective.terms), *limited):
            if measure.is_metric and np.isnan(measure.of(batch.metrics[measure.figure])).all():
                what = f"no joint has {_lack(measure.figure)}; use another figure"
                raise SectionError(what, (key, measure.name))


def _lack(figure: str) -> str:
    if figure in ("overshoot", "settling_time"):
        return f"{figure}: none travels from its start to another reference at the end of the run"
    return f"{figure}: none has what it needs, such as a reference"
