"""Differential evolution, current to one of the best (Zhang and Sanderson, JADE, 2009), without adaptation."""

from __future__ import annotations

import numpy as np

from cosim.apps.tuning.optimisers import Optimiser, SearchProblem
from cosim.core.types import Array

ABOUT = "differential evolution; built in, needs nothing"
SMALLEST_POPULATION, PER_DIMENSION, LARGEST_POPULATION = 12, 5, 60  # members of the population
BEST = 0.15  # fraction of the population that counts as best
DIFFERENCE_FACTORS = (0.4, 0.95)  # of differences
CROSSOVER = 0.9


class DifferentialEvolution:
    def __init__(self, problem: SearchProblem) -> None:
        from scipy.stats.qmc import LatinHypercube

        self._random = np.random.default_rng(problem.seed)
        size = min(max(PER_DIMENSION * problem.size, SMALLEST_POPULATION), LARGEST_POPULATION)
        self._members = LatinHypercube(problem.size, rng=self._random).random(size)
        self._members[0] = problem.start
        self._scores = np.full(size, np.inf)
        self._asked = 0
        self._targets: list[int] = []

    def ask(self, n: int) -> Array:
        self._targets = [(self._asked + k) % len(self._members) for k in range(n)]
        self._asked += n
        return np.array([self._proposal(target) for target in self._targets])

    def _proposal(self, target: int) -> Array:
        if np.isinf(self._scores[target]):  # of the first generation
            return self._members[target]
        x, random = self._members[target], self._random
        best = np.argsort(self._scores, kind="stable")[: max(2, round(BEST * len(self._members)))]
        a, b = self._members[random.choice(len(self._members), 2, replace=False)]
        factor = random.uniform(*DIFFERENCE_FACTORS)
        mutant = x + factor * (self._members[random.choice(best)] - x) + factor * (a - b)
        mutant = np.where(mutant < 0.0, 0.5 * x, np.where(mutant > 1.0, 0.5 * (x + 1.0), mutant))
        crossed = random.uniform(size=len(x)) < CROSSOVER
        crossed[random.integers(len(x))] = True
        return np.where(crossed, mutant, x)

    def tell(self, positions: Array, scores: Array) -> None:
        for target, x, score in zip(self._targets, positions, scores, strict=False):
            if score <= self._scores[target]:
                self._members[target], self._scores[target] = x, score


def load(problem: SearchProblem) -> Optimiser:
    return DifferentialEvolution(problem)
