"""A tuning session: batches of trials that an optimiser proposes, evaluated, kept, and its results.

The gains of a trial are an overlay for `cosim run --overlay`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from cosim.apps.tuning.evaluation import TrialOutcome
from cosim.apps.tuning.optimisers import SearchProblem, load_optimiser
from cosim.apps.tuning.report import write_report
from cosim.apps.tuning.session_data import SessionData, Trial
from cosim.apps.tuning.session_folder import SessionFolder
from cosim.core.errors import InputError, RunError
from cosim.core.types import Array
from cosim.output.output_files import write_file
from cosim.rig.joint_sections import overlay_of_numbers
from cosim.rig.parameter_table import table_of
from cosim.rig.reading.yaml_source import overlay_text


class Workers(Protocol):
    """What evaluates a batch: this process, or others."""

    def evaluate(self, values: Array) -> list[TrialOutcome]: ...


class TuningSession(SessionData):
    """A session, running or over."""

    def save_overlay(self, path: str | Path) -> None:
        """Write the gains of the best trial as a file for `cosim run --overlay`. Raises RunError where there is none,
        InputError for a file that cannot be written."""
        write_gains(self, self.best, path)

    def save_report(self, path: str | Path) -> None:
        """Write the report, one HTML file. Raises InputError for a file that cannot be written."""
        write_report(self, path)


class FailedTuning(RunError):
    """A session that was interrupted or has found nothing; `session` has all trials so far."""

    def __init__(self, what: str, session: TuningSession) -> None:
        super().__init__(what, "tune")
        self.session = session


Progress = Callable[[TuningSession], None]  # called after each batch


def run_trials(
    session: TuningSession, workers: Workers, folder: SessionFolder | None = None, progress: Progress | None = None
) -> None:
    """Add trials until there are as many as requested or the optimiser has no further ones.

    Those that the session has already are not evaluated again, but shown to the optimiser in the same order. Raises
    InputError where it proposes others than these.
    """
    request, space = session.request, session.evaluator.space
    start = space.positions(space.start[None])[0]
    problem = SearchProblem(len(space), start, request.seed, request.batch, session.evaluator)
    optimiser = load_optimiser(request.optimiser or "", problem)
    recorded, session.trials = session.trials, []
    _extend(session, recorded, space.start[None], workers, folder)
    while (left := request.trials + 1 - len(session.trials)) > 0:
        positions = optimiser.ask(request.batch)[:left]
        if not len(positions):
            break
        trials = _extend(session, recorded, space.values(positions), workers, folder)
        optimiser.tell(positions, np.array([trial.outcome.score for trial in trials]))
        if progress is not None and len(session.trials) >= len(recorded):
            progress(session)


def _extend(
    session: TuningSession, recorded: Sequence[Trial], values: Array, workers: Workers, folder: SessionFolder | None
) -> list[Trial]:
    """The next trials (k, d): those recorded, and the others evaluated."""
    first = len(session.trials)
    known = list(recorded[first : first + len(values)])
    for trial, proposed in zip(known, values, strict=False):
        if not np.array_equal(np.array(trial.values), proposed):
            what = f"trial {trial.number} is not what the optimiser proposes now"
            fix = "install the versions in session.json, or begin another session"
            raise InputError(f"{what}; {fix}", str(session.path or "tune"))
    rest = values[len(known) :]
    outcomes = workers.evaluate(rest) if len(rest) else []
    numbers = range(first + len(known), first + len(values))
    new = [Trial(n, tuple(v.tolist()), o) for n, v, o in zip(numbers, rest, outcomes, strict=True)]
    if folder is not None and new:
        folder.append(new)
    session.trials += [*known, *new]
    return [*known, *new]


def overlay_values(session: SessionData, trial: Trial) -> dict[str, object]:
    """key of the rig file -> value."""
    rig = session.evaluator.rig
    table = table_of(rig)
    values = {table.find(name)[0].key: value for name, value in session.parameters_of(trial).items()}
    return overlay_of_numbers(rig, values)


def write_gains(session: SessionData, trial: Trial, path: str | Path) -> None:
    """Raises InputError for a file that cannot be written, RunError for a full disk."""
    text = overlay_text(overlay_values(session, trial), str(session.evaluator.rig.spec.path))
    write_file(path, text.encode(), "gains")
