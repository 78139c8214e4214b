"""Covariance matrix adaptation (Hansen, The CMA evolution strategy: a tutorial, 2016), by the package cmaes."""

from __future__ import annotations

import numpy as np

from cosim.apps.tuning.optimisers import Optimiser, SearchProblem, not_installed
from cosim.core.types import Array

ABOUT = "CMA evolution strategy; for smooth problems with many trials"
SPREAD = 0.25  # standard deviation of the first trials, in the unit cube


class CovarianceAdaptation:
    """Begins at the gains of the rig; one that has converged begins again elsewhere."""

    def __init__(self, problem: SearchProblem) -> None:
        """Raises InputError where cmaes is not installed."""
        try:
            import cmaes
        except ImportError:
            raise not_installed("cma", "cmaes") from None
        self._new, self._problem = cmaes.CMA, problem
        self._random = np.random.default_rng(problem.seed)
        self._told: list[tuple[Array, float]] = []
        self._begin(problem.start)

    def _begin(self, mean: Array) -> None:
        d = self._problem.size
        self._strategy = self._new(
            mean=np.clip(mean, 0.05, 0.95),
            sigma=SPREAD,
            bounds=np.array([[0.0, 1.0]] * d),
            seed=int(self._random.integers(2**31)),
            population_size=max(self._problem.batch, 4 + int(3 * np.log(d))),
        )

    def ask(self, n: int) -> Array:
        return np.array([self._strategy.ask() for _ in range(n)])

    def tell(self, positions: Array, scores: Array) -> None:
        self._told += [(x, float(score)) for x, score in zip(positions, scores, strict=True)]
        size = self._strategy.population_size
        if len(self._told) < size:
            return
        self._strategy.tell(self._told[:size])
        self._told = self._told[size:]
        if self._strategy.should_stop():
            self._told = []
            self._begin(self._random.uniform(size=self._problem.size))


def load(problem: SearchProblem) -> Optimiser:
    return CovarianceAdaptation(problem)
