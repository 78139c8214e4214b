"""What a session has found: its trials, each a line of its file, the best one and the gains of each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from cosim.apps.tuning.evaluation import TrialEvaluator, TrialOutcome
from cosim.core.errors import RunError
from cosim.rig.sections.tuning import TuningKeys


@dataclass(frozen=True)
class Trial:
    """The gains of one trial with its outcome. number: 0 is the gains of the rig; values (d,): in SI, in the order of
    the space."""

    number: int
    values: tuple[float, ...]
    outcome: TrialOutcome

    def line(self) -> bytes:
        """JSON."""
        o = self.outcome
        data = {
            "trial": self.number,
            "values": self.values,
            "score": o.score,
            "cost": in_json(o.cost),
            "costs": list(map(in_json, o.costs)),
            "figures": {name: list(map(in_json, pair)) for name, pair in o.figures.items()},
            "failed": o.failed,
            "stopped": o.stopped,
        }
        return orjson.dumps(data) + b"\n"


def read_trial(line: bytes) -> Trial:
    """Raises ValueError for a line that is no trial."""
    try:
        data: dict[str, Any] = orjson.loads(line)
        outcome = TrialOutcome(
            score=float(data["score"]),
            cost=float(data["cost"]),
            costs=tuple(map(float, data["costs"])),
            figures={name: (float(pair[0]), float(pair[1])) for name, pair in data["figures"].items()},
            failed=data["failed"],
            stopped=data["stopped"],
        )
        return Trial(int(data["trial"]), tuple(map(float, data["values"])), outcome)
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        raise ValueError(f"no trial: {error}") from None


def best_of(trials: Sequence[Trial], start_counts: bool) -> Trial | None:
    """The first of those with the smallest score among trials that hold all limits."""
    return nearest_of([trial for trial in counting(trials, start_counts) if trial.outcome.feasible])


def counting(trials: Sequence[Trial], start_counts: bool) -> list[Trial]:
    """start_counts: whether the gains of the rig are within the bounds."""
    return [trial for trial in trials if trial.number or start_counts]


def nearest_of(trials: Sequence[Trial]) -> Trial | None:
    """The one with the smallest score of all."""
    return min(trials, key=lambda trial: (trial.outcome.score, trial.number), default=None)


def in_json(value: float) -> float | str:
    """What `float` reads again; JSON has no infinite numbers."""
    return value if math.isfinite(value) else str(value)


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
