"""The trials of a session, and each as a line of its file."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from cosim.apps.tuning.evaluation import TrialOutcome


@dataclass(frozen=True)
class Trial:
    """number: 0 is the gains of the rig; values (d,): in SI, in the order of the space."""

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
