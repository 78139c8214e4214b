"""What proposes the trials of a session: a module for each optimiser, found by its name.

A module has ABOUT, a line, and `load(problem)`, which returns an `Optimiser`. Optimisers see positions in the unit cube
and scores; with the same seed they propose the same.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from types import ModuleType
from typing import Protocol

from cosim.apps.tuning.evaluation import TrialEvaluator
from cosim.core.errors import InputError, SectionError
from cosim.core.plugin_loading import OPTIMISER, find, known_names
from cosim.core.types import Array


class Optimiser(Protocol):
    """Proposes positions in the unit cube and gets their scores, in turn."""

    def ask(self, n: int) -> Array:
        """(m, d) positions of the next trials, m = n at most; m = 0: it has no further ones."""
        ...

    def tell(self, positions: Array, scores: Array) -> None:
        """The scores (m,) of the trials at positions (m, d) that `ask` returned last; smaller is better."""
        ...


@dataclass(frozen=True)
class SearchProblem:
    """What an optimiser knows of a search: its unit cube, where it begins, and the size of its batches.

    size: d; start (d,): position of the gains of the rig, at the ends of its bounds where these are beyond them; batch:
    trials of one `ask`; evaluator: for those that look at the rig itself.
    """

    size: int
    start: Array
    seed: int
    batch: int
    evaluator: TrialEvaluator


def known_optimisers() -> dict[str, str]:
    """Name -> its line."""
    return {name: find(OPTIMISER, name).ABOUT for name in known_names(OPTIMISER)}


def find_optimiser(name: str) -> ModuleType:
    """Its module. Raises InputError for an unknown name."""
    try:
        return find(OPTIMISER, name)
    except InputError as error:
        raise SectionError(error.what, ("optimiser",)) from None


def load_optimiser(name: str, problem: SearchProblem) -> Optimiser:
    """Raises InputError for an unknown name, and for an optimiser that does not fit the rig or is not installed."""
    return find_optimiser(name).load(problem)


def default_optimiser() -> str:
    """The best one that is installed for many parameters."""
    return "de" if importlib.util.find_spec("optuna") is None else "tpe"


def not_installed(name: str, package: str) -> SectionError:
    what = f"optimiser '{name}' needs {package}; install it with pip install 'cosim[tune]', or use --optimiser de"
    return SectionError(what, ("optimiser",))
