"""Points that fill the space evenly (Sobol, scrambled), to look at a problem without searching."""

from __future__ import annotations

import warnings

from cosim.apps.tuning.optimisers import Optimiser, SearchProblem
from cosim.core.types import Array

ABOUT = "evenly spread trials, without a search; built in"


class EvenlySpread:
    """The points of a Sobol sequence, whatever their scores."""

    def __init__(self, problem: SearchProblem) -> None:
        from scipy.stats.qmc import Sobol

        self._sequence = Sobol(problem.size, rng=problem.seed)

    def ask(self, n: int) -> Array:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # its numbers of points need not be powers of 2
            return self._sequence.random(n)

    def tell(self, positions: Array, scores: Array) -> None:
        pass


def load(problem: SearchProblem) -> Optimiser:
    return EvenlySpread(problem)
