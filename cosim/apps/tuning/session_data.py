"""What a session has found: its trials, the best one and the gains of each."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from cosim.apps.tuning.evaluation import TrialEvaluator
from cosim.apps.tuning.trials import Trial, best_of, counting, nearest_of
from cosim.core.errors import RunError
from cosim.rig.sections.tuning import TuningKeys


@dataclass(repr=False)
class SessionData:
    """The trials of a session so far. path: of its folder, None of one that is kept in memory alone; written: what ->
    the file in it that was written at the end."""

    evaluator: TrialEvaluator
    request: TuningKeys
    trials: list[Trial]
    path: Path | None = None
    written: dict[str, Path] = field(default_factory=dict)

    @property
    def rig_name(self) -> str:
        return self.evaluator.rig.run_spec.name

    @property
    def start(self) -> Trial:
        """The gains of the rig."""
        return self.trials[0]

    @property
    def best(self) -> Trial:
        """Raises RunError where no trial holds all limits."""
        if (found := self.found) is None:
            raise RunError(self.why_none, "tune")
        return found

    @property
    def found(self) -> Trial | None:
        """The best trial, None where none holds all limits."""
        return best_of(self.trials, self.evaluator.space.start_inside)

    @property
    def parameters(self) -> dict[str, float | list[float]]:
        """The gains of the best trial, as `Rig.set` takes them. Raises RunError where there is none."""
        return self.parameters_of(self.best)

    def parameters_of(self, trial: Trial) -> dict[str, float | list[float]]:
        return self.evaluator.space.parameters(np.array(trial.values))

    @property
    def nearest(self) -> Trial | None:
        """The trial that is nearest to the limits, None where none has ended."""
        return nearest_of(counting(self.trials, self.evaluator.space.start_inside))

    @property
    def why_none(self) -> str:
        """Why there is no best trial."""
        trials = counting(self.trials, self.evaluator.space.start_inside)
        if (nearest := self.nearest) is None:
            return "no trial has ended"
        outcome, what = nearest.outcome, "holds all limits"
        if not math.isfinite(outcome.cost):
            what = "ran to its end" if outcome.stopped else "has a cost"
        return (
            f"none of {len(trials)} trials {what}; the nearest is trial {nearest.number}: {outcome.failed};"
            " widen the bounds of the parameters or the limits"
        )

    def __repr__(self) -> str:
        best = self.found
        cost = "none" if best is None else f"trial {best.number}, cost {best.outcome.cost:.6g}"
        return f"<{type(self).__name__} {self.rig_name}: {len(self.trials)} trials, best {cost}>"
