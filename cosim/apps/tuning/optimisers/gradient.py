"""Descent with the exact gradient of a run: BFGS in the unit cube, its line search as one batch of trials.

The gradient is taken of the cost on the plant of the rig, without limits; the scores of the trials, which are of all
plants and limits, choose the step (Nocedal and Wright, Numerical Optimization, chapter 6). From where no step is better
it begins again at a random place.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cosim.apps.tuning.evaluation import TrialEvaluator
from cosim.apps.tuning.optimisers import Optimiser, SearchProblem
from cosim.core import ops
from cosim.core.errors import SectionError
from cosim.core.types import Array, Numeric

ABOUT = "exact gradients of runs and BFGS; built in, for smooth problems with few trials"
FIRST_STEP = 0.3  # length of the longest step without knowledge of the curvature, in the unit cube
LONGEST_STEP = 0.7  # of any step
SHORTEST_STEP = 1e-4  # of the steps of a line search, relative to its longest one
POSITION_DIFFERENCE = 1e-6  # of a position, for the slope of its value
LEAST_CURVATURE = 1e-10  # least one that is taken into account


def load(problem: SearchProblem) -> Optimiser:
    """Raises InputErrors for a rig or a cost without derivative."""
    return Descent(problem)


class Descent:
    """A descent along the gradient; where it ends, the next one begins at a random position."""

    def __init__(self, problem: SearchProblem) -> None:
        self._slope = Slope(problem.evaluator)
        self._random = np.random.default_rng(problem.seed)
        self._begin(problem.start)

    def _begin(self, position: Array) -> None:
        self._x = position
        self._inverse, self._known = np.eye(len(position)), False  # of the Hessian
        self._before: tuple[Array, Array] | None = None  # position and slope
        self._here: Array | None = None  # the slope

    def ask(self, n: int) -> Array:
        slope = self._slope(self._x) if self._here is None else self._here
        if not np.isfinite(slope).all():  # the run is stopped
            self._begin(self._random.uniform(size=len(self._x)))
            return np.array([self._x, *self._random.uniform(size=(n - 1, len(self._x)))])
        self._learn(slope)
        self._here = slope
        steps = np.geomspace(1.0, SHORTEST_STEP, n - 1) if n > 1 else np.zeros(0)
        way = self._direction(slope)
        return np.clip(np.array([self._x, *(self._x + step * way for step in steps)]), 0.0, 1.0)

    def _direction(self, slope: Array) -> Array:
        """Downwards, not out of the cube, of a length that makes sense."""
        outwards = ((self._x <= 0.0) & (slope > 0.0)) | ((self._x >= 1.0) & (slope < 0.0))
        free = np.where(outwards, 0.0, slope)
        way = np.where(outwards, 0.0, -self._inverse @ free)
        if way @ free >= 0.0:
            self._inverse, self._known = np.eye(len(way)), False
            way = -free
        length = float(np.abs(way).max())
        if length == 0.0:
            return way
        longest = LONGEST_STEP if self._known else FIRST_STEP
        # beyond the step of Newton too, as the curvature is known from one direction at a time
        return way * (min(2.0, longest / length) if self._known else longest / length)

    def _learn(self, slope: Array) -> None:
        """The update of Broyden, Fletcher, Goldfarb and Shanno from the last step."""
        if self._before is None:
            return
        s, y = self._x - self._before[0], slope - self._before[1]
        self._before = None
        if (curvature := float(s @ y)) <= LEAST_CURVATURE:
            return
        if not self._known:
            self._inverse = np.eye(len(s)) * curvature / float(y @ y)
        rotation = np.eye(len(s)) - np.outer(s, y) / curvature
        self._inverse = rotation @ self._inverse @ rotation.T + np.outer(s, s) / curvature
        self._known = True

    def tell(self, positions: Array, scores: Array) -> None:
        best = int(np.argmin(scores))
        if best:  # a step is better
            self._before = None if self._here is None else (self._x, self._here)
            self._x, self._here = positions[best], None
        elif self._known:  # the curvature may mislead
            self._inverse, self._known = np.eye(len(self._x)), False
        else:
            self._begin(self._random.uniform(size=len(self._x)))


class Slope:
    """The derivative of the cost with respect to positions."""

    def __init__(self, evaluator: TrialEvaluator) -> None:
        """Raises InputError for a cost that is no metric."""
        for measure, _ in evaluator.objective.terms:
            if not measure.is_metric:
                what = f"'{measure.name}' is a signal, and its peak has no derivative here"
                if measure.is_misfit:
                    what = f"'{measure.name}' has no derivative here"
                raise SectionError(f"{what}; use --optimiser de", ("optimiser",))
        self._evaluator = evaluator
        start = evaluator.rig.rollouts(
            evaluator.space.arrays(evaluator.space.start[None]),
            duration=evaluator.duration,
            metrics=evaluator.objective.metrics,
        )
        self._has = {name: np.flatnonzero(~np.isnan(values[0])) for name, values in start.metrics.items()}

    def __call__(self, position: Array) -> Array:
        """(d,); NaN where the run is stopped."""
        evaluator, space = self._evaluator, self._evaluator.space
        values = space.values(position[None])
        found = evaluator.rig.gradient(
            evaluator.objective.metrics,
            space.arrays(values),
            evaluator.duration,
            self._cost,
            threads=evaluator.threads,
        )
        by_value = [np.reshape(found[d.parameter], -1)[d.element] for d in space.dimensions]
        ahead, behind = (np.clip(position + side * POSITION_DIFFERENCE, 0.0, 1.0) for side in (1.0, -1.0))
        rates = (space.values(ahead[None]) - space.values(behind[None]))[0] / (ahead - behind)
        return np.array(by_value, dtype=float) * rates

    def _cost(self, metrics: Mapping[str, Numeric]) -> Any:
        total = 0.0
        for measure, weight in self._evaluator.objective.terms:
            joints = self._has[measure.figure] if measure.joint is None else [measure.joint]
            for joint in joints:
                total = total + weight * metrics[measure.figure][joint]
        return ops.array(total)
