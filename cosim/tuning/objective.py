"""What a session looks for: a cost, hard limits, and the order of trials that follows from both.

Optimisers see the score alone, which is below 1 where all limits hold, below 2 where the runs end but a limit does not
hold, and from 2 on where a run is stopped. Within each part a better trial has the smaller score.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from cosim.errors import InputError, InputErrors
from cosim.rig.rig import Rig
from cosim.tuning.measures import Measure, read_measure, summed, worst
from cosim.types import Array
from cosim.units import UNITS, parse_quantity

DEFAULT_COST = "error_rms"
# least scores of trials with a limit that does not hold, with a stopped run, and of one that the rig refuses
INFEASIBLE, UNSTABLE, REFUSED = 1.0, 2.0, 3.0


@dataclass(frozen=True)
class Limit:
    """A bound of the worst joint, in SI: an upper one, or a lower one of a margin."""

    measure: Measure
    bound: float

    @property
    def at_least(self) -> bool:
        return self.measure.is_margin

    def violation(self, values: Array) -> Array:
        """(k,) how far beyond the bound values (k,) are, relative to it; 0 where it holds, inf where there is none."""
        beyond = (self.bound - values) if self.at_least else (values - self.bound)
        return np.where(np.isnan(values), np.inf, np.maximum(beyond, 0.0) / max(abs(self.bound), 1e-9))


@dataclass(frozen=True)
class Objective:
    """terms: figures and their weights, summed over joints; limits; robust: how the costs of the plants are joined."""

    terms: tuple[tuple[Measure, float], ...]
    limits: tuple[Limit, ...]
    robust: Literal["worst", "mean"]

    @property
    def measures(self) -> list[Measure]:
        return [*(measure for measure, _ in self.terms), *(limit.measure for limit in self.limits)]

    @property
    def metrics(self) -> list[str]:
        return list(dict.fromkeys(measure.figure for measure in self.measures if measure.is_metric))

    @property
    def margins(self) -> list[str]:
        return list(dict.fromkeys(measure.figure for measure in self.measures if measure.is_margin))

    @property
    def signals(self) -> list[str]:
        found = (m.figure for m in self.measures if not m.is_metric and not m.is_margin)
        return list(dict.fromkeys(found))

    def costs(self, figures: Mapping[str, Array]) -> Array:
        """(k,) costs of k runs, from figure -> (k, joints); inf where a term is infinite or does not exist."""
        total = np.zeros(len(next(iter(figures.values()))))
        for measure, weight in self.terms:
            total = total + weight * summed(measure.of(figures[measure.figure]))
        return np.where(np.isfinite(total), total, np.inf)

    def joined(self, costs: Array) -> float:
        """One cost of those of the plants (p,)."""
        return float(costs.max() if self.robust == "worst" else costs.mean())

    def limited(self, figures: Mapping[str, Array]) -> list[tuple[Limit, Array]]:
        """Each limit with the worst value of each of k runs (k,)."""
        return [
            (limit, worst(limit.measure.of(figures[limit.measure.figure]), limit.at_least)) for limit in self.limits
        ]


def score_of(cost: float, violation: float, completed: float) -> float:
    """See above. violation: summed over limits, of the worst plant; completed: fraction of the shortest run."""
    if completed < 1.0:
        return UNSTABLE + 1.0 - completed
    if violation > 0.0 or not math.isfinite(cost):
        return INFEASIBLE + _squashed(violation if violation > 0.0 else math.inf)
    return _squashed(cost)


def _squashed(value: float) -> float:
    """From 0 to 1, in the same order."""
    return 1.0 if math.isinf(value) else value / (1.0 + value)


def read_objective(
    rig: Rig, minimise: Mapping[str, Any], limits: Mapping[str, Any], robust: Literal["worst", "mean"]
) -> Objective:
    """minimise: figure -> weight, None for 1; limits: figure -> bound, as a number in SI or text with a unit.

    Raises InputErrors for figures that do not exist and for weights and bounds that are none.
    """
    errors = list[InputError]()
    terms, bounds = list[tuple[Measure, float]](), list[Limit]()
    for name, weight in (minimise or {DEFAULT_COST: None}).items():
        try:
            measure = read_measure(rig, name, "minimise")
            if measure.is_margin:
                raise InputError(f"'{name}' is a margin, and larger ones are better; give it as a limit", "minimise")
            terms.append((measure, _weight(name, weight)))
        except InputError as error:
            errors.append(error)
    for name, bound in limits.items():
        try:
            bounds.append(_limit(read_measure(rig, name, "limits"), bound))
        except InputError as error:
            errors.append(error)
    if errors:
        raise InputErrors(errors)
    return Objective(tuple(terms), tuple(bounds), robust)


def _weight(name: str, weight: Any) -> float:
    try:
        value = 1.0 if weight is None else float(weight)
    except (TypeError, ValueError):
        value = math.nan
    if not (value > 0.0 and math.isfinite(value)):
        raise InputError(f"expected a weight above 0, got {weight!r}", f"minimise.{name}")
    return value


def _limit(measure: Measure, bound: Any) -> Limit:
    place = f"limits.{measure.name}"
    if bound is None:
        raise InputError(f"give a bound, such as {measure.name}: {'0.5' if measure.is_margin else '5 %'}", place)
    try:
        unit = measure.unit if measure.unit in UNITS else "1"
        value = parse_quantity(bound, unit) if isinstance(bound, str) else float(bound)
    except (TypeError, ValueError) as error:
        raise InputError(str(error), place) from None
    if not math.isfinite(value):
        raise InputError(f"expected a finite bound, got {bound!r}", place)
    return Limit(measure, value)
