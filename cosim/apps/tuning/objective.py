"""What a session looks for: figures of merit, a cost and hard limits of them, and the order of trials that follows.

Optimisers see the score alone, which is below 1 where all limits hold, below 2 where the runs end but a limit does not
hold, and from 2 on where a run is stopped. Within each part a better trial has the smaller score.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from cosim.apps.tuning.misfit import MISFIT
from cosim.core.errors import InputError, InputErrors, SectionError, did_you_mean
from cosim.core.types import Array
from cosim.core.units import JOINT_DIMENSIONS, UNITS, given_unit, parse_quantity, show_quantity
from cosim.rig.rig import Rig
from cosim.simulation.tick.metrics import METRICS

_LINEAR = {angular: linear for angular, linear in (pair for pair in JOINT_DIMENSIONS.values() if len(pair) == 2)} | {
    "rad*s": "m*s"
}
DEFAULT_COST = "error_rms"
DIGITS = (4, 6, 9, 17)  # of a value and its bound: the fewest with which they differ
# least scores of trials with a limit that does not hold, with a stopped run, and of one that the rig refuses
INFEASIBLE, UNSTABLE, REFUSED = 1.0, 2.0, 3.0


class MarginFigure(NamedTuple):
    """doc; unit; largest: that a loop can have, in SI."""

    doc: str
    unit: str
    largest: float


# margins of the loops, linearised at the moments of `TrialEvaluator.moments`; larger ones are better
MARGINS: dict[str, MarginFigure] = {
    "disk_margin": MarginFigure("disk margin of the loop of a joint; 0 where the rig is unstable", "1", 2.0),
    "gain_margin": MarginFigure("factor of the gain at which the loop of a joint gets unstable", "1", math.inf),
    "phase_margin": MarginFigure("phase that the loop of a joint may lose", "rad", math.pi),
}


@dataclass(frozen=True)
class Measure:
    """A figure that a cost or a limit refers to. name: as the user gives it; figure: a metric, a margin, the misfit
    or a signal; joint: the only one, or None for all."""

    name: str
    figure: str
    joint: int | None
    unit: str

    @property
    def is_metric(self) -> bool:
        return self.figure in METRICS

    @property
    def is_margin(self) -> bool:
        return self.figure in MARGINS

    @property
    def is_misfit(self) -> bool:
        return self.figure == MISFIT

    def of(self, values: Array) -> Array:
        """(k, m) of the joints that count, from (k, joints) of the figure, or (k, 1) of a signal."""
        return values if self.joint is None else values[:, self.joint : self.joint + 1]


def read_measure(rig: Rig, name: str, place: str) -> Measure:
    """name: of a metric, a margin or the misfit, of all joints; `JOINT/…` of one joint; or of a signal, whose peak is
    meant; place: the key of the section that has it.

    Raises SectionError for a name that does not exist.
    """
    figures = [*METRICS, *MARGINS, MISFIT]
    if name in figures:
        return Measure(name, name, None, _unit(rig, name, None))
    joint, _, figure = name.rpartition("/")
    if joint in rig.joints and figure in figures:
        return Measure(name, figure, rig.joints.index(joint), _unit(rig, figure, joint))
    signals = rig.tick_model.signals.names
    if name in signals:
        from cosim.rig.run.run_metadata import channels_of

        return Measure(name, name, 0, dict(channels_of(rig))[name])
    known = [*figures, *signals] if "/" in name else figures
    raise SectionError(f"there is no metric, margin or signal '{name}'{did_you_mean(name, known)}", (place, name))


def _unit(rig: Rig, figure: str, joint: str | None) -> str:
    """In SI; for joints of both kinds, the unit of rotational ones."""
    if figure in MARGINS:
        return MARGINS[figure].unit
    if figure == MISFIT:
        return "1"
    unit, units = METRICS[figure].unit, rig.plant.model.dof_units
    own = {units[rig.joints.index(joint)]} if joint else set(units)
    return _LINEAR.get(unit, unit) if own == {"m"} else unit


def summed(values: Array) -> Array:
    """(k,) sum over the joints that have the figure, of (k, m)."""
    return np.where(np.isnan(values).all(axis=1), np.nan, np.nansum(values, axis=1))


def worst(values: Array, at_least: bool) -> Array:
    """(k,) the smallest of (k, m) where the figure should be large, else the largest; NaN where no joint has it."""
    empty = np.isnan(values).all(axis=1)
    filled = np.where(np.isnan(values), np.inf if at_least else -np.inf, values)
    return np.where(empty, np.nan, filled.min(axis=1) if at_least else filled.max(axis=1))


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
    """The cost and the hard limits by which trials are ordered. terms: figures and their weights, summed over joints;
    limits; robust: how the costs of the plants are joined."""

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
        found = (m.figure for m in self.measures if not (m.is_metric or m.is_margin or m.is_misfit))
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
