"""`cosim tune gains`: a session of the command line, its progress while it searches, and its result."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cosim.apps.tuning.evaluation import TrialEvaluator
from cosim.apps.tuning.hardware import HardwareReplay
from cosim.apps.tuning.hardware_report import write_hardware_report
from cosim.apps.tuning.hardware_trials import HardwareTrials
from cosim.apps.tuning.misfit import TargetLog
from cosim.apps.tuning.session import FailedTuning, Progress, TuningSession
from cosim.apps.tuning.session_data import Trial
from cosim.apps.tuning.session_folder import OVERLAY, PARENT, REPORT, latest_path, new_path
from cosim.apps.tuning.setup import fingerprint_of
from cosim.apps.tuning.tune import run_session
from cosim.core.errors import InputError
from cosim.core.tables.options import TableOptions
from cosim.core.units import unit_sign
from cosim.output import console
from cosim.output.console import options_named
from cosim.output.text_table import TextTable
from cosim.rig.reading.yaml_source import Override
from cosim.rig.rig import Rig, load_rig
from cosim.rig.rig_files import input_files
from cosim.rig.run.consent import GivenQuestion
from cosim.rig.run.run_warnings import give
from cosim.rig.sections.tuning import TuningKeys

NONE = "–"
# keys whose option may be repeated -> the option, and whether it must have a value
PAIRS = {
    "parameters": ("--parameter", False),
    "minimise": ("--minimise", False),
    "limits": ("--limit", True),
    "plants": ("--plant", True),
}
# keys of the log -> their options
OF_A_LOG = {"units": "--unit", "columns": "--column", "gains": "--gain", "topic": "--topic"}


def tune_rig(
    path: Path,
    overrides: Sequence[Override],
    given: Mapping[str, Any],
    folder: str | None,
    resume: bool,
    dask: str | None,
    hardware: HardwareTrials | None = None,
) -> TuningSession:
    """Run a session, or go on with one, and print its result. given: keys of the section `tuning`; hardware: on what
    its trials will be tried.

    Raises FailedTuning where it is interrupted or no trial holds all limits, after its results were printed.
    """
    with console.busy(f"compiling {path.stem}"):
        rig = load_rig(path, overrides)
    rig.require_joints("cosim tune gains")
    _, misfits = rig.warnings  # unstable gains are the matter of its first trial
    give(misfits)
    place = _place(rig, folder, resume)

    def begin(evaluator: TrialEvaluator, request: TuningKeys) -> None:
        if hardware is not None:
            hardware.check(evaluator, request)
        if evaluator.log is not None:
            _print_notes(evaluator.log)

    for name in (OVERLAY, REPORT):
        console.refuse_inputs(input_files(rig, overrides), place / name, "--session")
    try:
        with (
            options_named({key: option for key, (option, _) in PAIRS.items()} | OF_A_LOG),
            shown_progress(rig.spec.name) as progress,
        ):
            session = run_session(rig, given, place, resume, dask, progress, begin)
    except FailedTuning as failed:
        print_result(failed.session)
        raise
    print_result(session)
    return session


def _print_notes(log: TargetLog) -> None:
    """What was guessed of a log, which the search would not show: it may be in another unit."""
    if log.notes and sys.stderr.isatty():
        console.write_line("")
    for note in log.notes:
        print(f"note     {log.path}: {note}", flush=True)


def hardware_trials(path: Path, chosen: Sequence[int], count: int, factor: float) -> HardwareTrials:
    """On the real rig of a file: trials of these numbers, else the best `count`; factor: of a gain between two runs.

    Raises InputErrors for a rig or numbers that cannot be."""
    with console.busy(f"compiling {path.stem}"):
        return HardwareTrials(load_rig(path), chosen, count, factor)


def try_on_hardware(session: TuningSession, hardware: HardwareTrials, ask: GivenQuestion) -> None:
    """Run candidates of a session on a real rig, and print and report each beside its simulation. ask: before each run.

    Raises InputErrors for a rig that does not fit, RunError where a run is not good, after the report was written.
    """
    candidates = hardware.candidates(session)
    replay = HardwareReplay(session, hardware.rig, ask, lambda line: print(line, flush=True), hardware.factor)
    try:
        replay.try_all(candidates)
    finally:
        if replay.runs:
            write_hardware_report(replay, replay.folder / REPORT)
            print(f"wrote    report {replay.folder / REPORT}")
        if replay.best is not None:
            print(f"wrote    gains {replay.gains_file}")


def _place(rig: Rig, folder: str | None, resume: bool) -> Path:
    """The folder of the session."""
    if folder == "":
        raise InputError("'' is no folder; name one", "--session")
    if folder is not None:
        return Path(folder)
    if resume:
        return latest_path(Path(PARENT), fingerprint_of(rig), rig.spec.name)
    return new_path(Path(PARENT), rig.spec.name)


def print_result(session: TuningSession) -> None:
    """The gains and the figures, of the start and the best trial, and the files."""
    if not session.trials:
        return
    best, start = session.found, session.trials[0]
    if best is not None:
        table = TextTable(["parameter"], ["start", "best", "lowest", "highest"])
        for dimension, value in zip(session.evaluator.space.dimensions, best.values, strict=True):
            numbers = (dimension.start, value, dimension.low, dimension.high)
            table.add_row(dimension.name, *(f"{number:.6g}" for number in numbers))
        print(*table.lines(), sep="\n")
        print(*_figures(session, start, best).lines(), sep="\n")
    for what, path in session.written.items():
        print(f"wrote    {what} {path}")


def _figures(session: TuningSession, start: Trial, best: Trial) -> TextTable:
    """With the plant of the rig, and with the worst of several."""
    several = len(session.evaluator.plants) > 1
    table = TextTable(
        ["figure", "unit"], ["start", *["worst"] * several, f"trial {best.number}", *["worst"] * several, "limit"]
    )
    objective = session.evaluator.objective
    bounds = {limit.measure.name: limit.condition for limit in objective.limits}

    def row(name: str, unit: str, pairs: Sequence[Sequence[float | None]], bound: str) -> None:
        shown = (value for pair in pairs for value in pair[: 1 + several])
        table.add_row(name, unit, *(NONE if value is None else f"{value:.5g}" for value in shown), bound)

    for measure in dict.fromkeys(objective.measures):
        pairs = [
            [objective.shown(measure, value) for value in trial.outcome.figures.get(measure.name, ())] or [None, None]
            for trial in (start, best)
        ]
        row(measure.name, unit_sign(objective.unit(measure)), pairs, bounds.get(measure.name, ""))
    row("cost", "", [(next(iter(t.outcome.costs), None), t.outcome.cost) for t in (start, best)], "")
    return table


def read_options(options: Mapping[str, Any], log: TableOptions) -> dict[str, Any]:
    """The keys of the section `tuning` that were given. options: key -> value, a list of texts for one of PAIRS; log:
    how it is read."""
    pairs = {key: _pairs(options[key], *words) for key, words in PAIRS.items()}
    of_a_log = {key: getattr(log, key) or None for key in OF_A_LOG}
    return {key: value for key, value in {**options, **pairs, **of_a_log}.items() if value is not None}


def _pairs(texts: Sequence[str], option: str, needed: bool) -> dict[str, str | None] | None:
    """`NAME=VALUE` of an option that may be repeated; None for none. needed: whether it must have a value.

    Raises InputError for an invalid text.
    """
    found: dict[str, str | None] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not name or (needed and not value) or (equals and not value):
            raise InputError(f"expected NAME=VALUE, got '{text}'", option)
        found[name.strip()] = value.strip() if equals else None
    return found or None


@contextmanager
def shown_progress(name: str) -> Iterator[Progress]:
    """On a terminal one line that changes; in a pipe a line for each better trial and each tenth of the session."""
    terminal, left = sys.stderr.isatty(), TimeLeft()
    seen = [-1, 0]  # the best trial, and the tenths

    with console.busy(f"preparing {name}") as prepared:

        def show(session: TuningSession) -> None:
            prepared()
            done, total, best = len(session.trials) - 1, session.request.trials, session.found
            line = f"{done}/{total} trials  {_best_text(best)}{left.text(done, total)}"
            if terminal:
                console.write_line(f"tuning {name}: {line}")
                return
            now = [-1 if best is None else best.number, 10 * done // total]
            if now != seen:
                seen[:] = now
                print(line, flush=True)

        try:
            yield show
        finally:
            prepared()
            if terminal:
                console.write_line("")


class TimeLeft:
    """Of a session, by the rate of its trials since the first batch, in which the rig is compiled."""

    def __init__(self) -> None:
        self._first: tuple[int, float] | None = None  # trials that were done, and the time [s]

    def text(self, done: int, total: int) -> str:
        """After two spaces; empty where it is not known, and at the end."""
        now = time.monotonic()
        if self._first is None:
            self._first = done, now
        trials, seconds = done - self._first[0], now - self._first[1]
        return f"  {in_words(seconds * (total - done) / trials)} left" if trials and done < total else ""


def in_words(seconds: float) -> str:
    """`40 s`, `12 min` or `2 h 5 min`."""
    if seconds < 90.0:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60.0)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def _best_text(best: Trial | None) -> str:
    return "none holds all limits yet" if best is None else f"best {best.number}: cost {best.outcome.cost:.6g}"
