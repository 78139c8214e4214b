"""Tree-structured Parzen estimator of Optuna (Bergstra et al., Algorithms for hyper-parameter optimization, 2011)."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from cosim.apps.tuning.optimisers import Optimiser, SearchProblem, not_installed
from cosim.core.types import Array

ABOUT = "tree-structured Parzen estimator of Optuna; for any problem with up to a thousand trials"


class ParzenEstimator:
    def __init__(self, problem: SearchProblem) -> None:
        """Raises InputError where Optuna is not installed."""
        try:
            import optuna
        except ImportError:
            raise not_installed("tpe", "optuna") from None
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # its experimental parts are meant
            sampler = optuna.samplers.TPESampler(
                seed=problem.seed, multivariate=True, constant_liar=True, n_startup_trials=max(10, problem.batch)
            )
        self._study = optuna.create_study(sampler=sampler)
        unit = optuna.distributions.FloatDistribution(0.0, 1.0)
        self._space = {f"{k:04}": unit for k in range(problem.size)}
        self._asked: list[Any] = []
        self._study.enqueue_trial(self._named(problem.start))

    def _named(self, position: Array) -> dict[str, float]:
        return {name: float(x) for name, x in zip(self._space, position, strict=True)}

    def ask(self, n: int) -> Array:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._asked = [self._study.ask(dict(self._space)) for _ in range(n)]
        return np.array([[trial.params[name] for name in self._space] for trial in self._asked])

    def tell(self, positions: Array, scores: Array) -> None:
        for trial, score in zip(self._asked, scores, strict=False):
            self._study.tell(trial, float(score))


def load(problem: SearchProblem) -> Optimiser:
    return ParzenEstimator(problem)
