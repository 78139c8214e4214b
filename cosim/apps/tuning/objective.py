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

from cosim.apps.tuning.measures import MARGINS, Measure, read_measure, summed, worst
from cosim.core.errors import InputError, InputErrors, SectionError
from cosim.core.types import Array
from cosim.core.units import UNITS, given_unit, parse_quantity, show_quantity
from cosim.rig.rig import Rig

DEFAULT_COST = "error_rms"
DIGITS = (4, 6, 9, 17)  # of a value and its bound: the fewest with which they differ
# least scores of trials with a limit that does not hold, with a stopped run, and of one that the rig refuses
INFEASIBLE, UNSTABLE, REFUSED = 1.0, 2.0, 3.0


@dataclass(frozen=True)
class Limit:
    """A bound of the worst joint, in SI: an upper one, or a lower one of a margin. unit: that the user gave it in, in
    which people see all values of its figure."""

    measure: Measure
    bound: float
    unit: str

    @property
    def at_least(self) -> bool:
        return self.measure.is_margin

    def violation(self, values: Array) -> Array:
        """(k,) how far beyond the bound values (k,) are, relative to it; 0 where it holds, inf where there is none."""
        beyond = (self.bound - values) if self.at_least else (values - self.bound)
        return np.where(np.isnan(values), np.inf, np.maximum(beyond, 0.0) / max(abs(self.bound), 1e-9))

    def breach(self, value: float, of: str = "", how: str = "") -> str:
        """That a value [SI] is beyond the bound; of: a joint; how: it was found."""
        side, name = "below" if self.at_least else "above", " ".join(filter(None, (self.measure.name, of)))
        digits = next((k for k in DIGITS if self.text(value, k) != self.text(self.bound, k)), DIGITS[-1])
        shown = " ".join(filter(None, (self.text(value, digits), how)))
        return f"{name} is {shown}, {side} its limit of {self.text(self.bound, digits)}"

    def text(self, value: float, digits: int = DIGITS[0]) -> str:
        """A value [SI] of the figure with the unit of the limit."""
        return show_quantity(value, self.unit, digits) if math.isfinite(value) else "not finite"

    @property
    def condition(self) -> str:
        """The bound as a column of a table has it, in the unit of the limit."""
        return f"{'≥' if self.at_least else '≤'} {self.bound / UNITS[self.unit][1]:.5g}"


@dataclass(frozen=True)
class Objective:
    """terms: figures and their weights, summed over joints; limits; robust: how the costs of the plants are joined."""

    terms: tuple[tuple[Measure, float], ...]
    limits: tuple[Limit, ...]
    robust: Literal["worst", "mean"]

    @property
    def measures(self) -> list[Measure]:
        return [*(measure for measure, _ in self.terms), *(limit.measure for limit in self.limits)]

    def unit(self, measure: Measure) -> str:
        """In which people see the values of a figure: its limit's, else SI."""
        return next((limit.unit for limit in self.limits if limit.measure.name == measure.name), measure.unit)

    def shown(self, measure: Measure, value: float) -> float:
        """A value [SI] in the unit above."""
        return value / UNITS.get(self.unit(measure), ("1", 1.0))[1]

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
        """One cost from the plants' costs (p,)."""
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

    Raises InputErrors for figures that do not exist and for invalid weights and bounds.
    """
    errors = list[InputError]()
    terms, bounds = list[tuple[Measure, float]](), list[Limit]()
    for name, weight in (minimise or {DEFAULT_COST: None}).items():
        try:
            measure = read_measure(rig, name, "minimise")
            if measure.is_margin:
                what = f"'{name}' is a margin, and larger ones are better; give it as a limit"
                raise SectionError(what, ("minimise", name))
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
        raise SectionError(f"expected a weight above 0, got {weight!r}", ("minimise", name))
    return value


def _limit(measure: Measure, bound: Any) -> Limit:
    place = ("limits", measure.name)
    if bound is None:
        example = "0.5" if measure.is_margin else "5 %"
        raise SectionError(f"give a bound, such as {measure.name}: {example}", place)
    unit = measure.unit if measure.unit in UNITS else "1"
    try:
        value = parse_quantity(bound, unit) if isinstance(bound, str) else float(bound)
    except (TypeError, ValueError) as error:
        raise SectionError(str(error), place) from None
    if not math.isfinite(value):
        raise SectionError(f"expected a finite bound, got {bound!r}", place)
    limit = Limit(measure, value, (given_unit(bound) if isinstance(bound, str) else None) or unit)
    if value < 0.0:
        raise SectionError(f"{limit.text(value)} is no bound: {measure.name} is never below 0; give 0 or more", place)
    largest = MARGINS[measure.figure].largest if measure.is_margin else math.inf
    if value > largest:
        what = f"no loop has {limit.text(value)}: {measure.name} is at most {limit.text(largest)}"
        raise SectionError(f"{what}; lower the bound", place)
    return limit
