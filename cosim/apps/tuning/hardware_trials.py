"""What a session is tried on: a real rig, and which of its trials. All of it is checked before the search begins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cosim.apps.tuning.evaluation import TrialEvaluator
from cosim.apps.tuning.session_data import SessionData, Trial
from cosim.core.errors import InputError, did_you_mean
from cosim.rig.parameter_table import table_of
from cosim.rig.rig import Rig
from cosim.rig.sections.tuning import TuningKeys

LARGEST_STEP = 10.0  # factor of a gain from one run of a real rig to the next


@dataclass(frozen=True)
class HardwareTrials:
    """The real rig of a session, and the trials to run on it. rig: with real motors; chosen: numbers of trials, else
    the best `count`; factor: of a gain between two runs."""

    rig: Rig
    chosen: Sequence[int]
    count: int
    factor: float

    def __post_init__(self) -> None:
        """Raises InputError for numbers out of range."""
        if not 1.0 < self.factor <= LARGEST_STEP:
            what = f"expected a factor above 1, up to {LARGEST_STEP:g}, got {self.factor:g}"
            raise InputError(what, "--step-factor")
        if self.count < 1:
            raise InputError(f"expected a number from 1 on, got {self.count}", "--candidates")

    def check(self, evaluator: TrialEvaluator, request: TuningKeys) -> None:
        """Of a session that is about to begin. Raises InputError for what will not fit it."""
        check_fits(self.rig, evaluator)
        for number in self.chosen:
            if not 0 <= number <= request.trials:
                raise InputError(f"there will be no trial {number}; its trials are 0 to {request.trials}", "--trial")

    def candidates(self, session: SessionData) -> list[Trial]:
        """The trials to try, the best one last, so that the way to it is through the others.

        Raises InputError for trials that do not exist or do not hold all limits, RunError where none does.
        """
        if self.chosen:
            return [_chosen(session, number) for number in self.chosen]
        _ = session.best  # raises RunError
        good = [trial for trial in session.trials[1:] if trial.outcome.feasible]
        return sorted(good, key=lambda trial: trial.outcome.score)[: self.count][::-1]


def check_fits(real: Rig, evaluator: TrialEvaluator) -> None:
    """Raises InputError for a rig without real motors, or that is not the one of a session."""
    place, own = str(real.spec.path), evaluator.rig
    if not real.hardware:
        raise InputError("has no real motors; give a rig with drivers", place)
    if real.joints != own.joints:
        raise InputError(f"has the joints {', '.join(real.joints)}, not the session's", place)
    known, before = table_of(real).live, table_of(own).live
    for name in dict.fromkeys(d.parameter for d in evaluator.space.dimensions):
        if name not in before:
            what = f"the session varies '{name}', a number of the plant"
            raise InputError(f"{what}; real motors have their own", place)
        if name not in known:
            raise InputError(f"has no parameter '{name}' of the session{did_you_mean(name, known)}", place)
        if known[name].size != before[name].size:
            raise InputError(f"has another number of values of '{name}' than the session", place)
    if evaluator.log is not None:
        evaluator.log.check_signals(real)


def _chosen(session: SessionData, number: int) -> Trial:
    if not 0 <= number < len(session.trials):
        last = len(session.trials) - 1
        raise InputError(f"there is no trial {number} in {session.path}; its trials are 0 to {last}", "--trial")
    trial = session.trials[number]
    if not trial.outcome.feasible:
        raise InputError(f"trial {number} failed in simulation: {trial.outcome.failed}; choose another", "--trial")
    return trial
