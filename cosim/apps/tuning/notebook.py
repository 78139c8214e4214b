"""`cosim tune sessions`: what was tuned so far, sessions beside each other, and trials run again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from cosim.apps.tuning.session import TuningSession, overlay_values
from cosim.apps.tuning.session_data import Trial, best_of
from cosim.apps.tuning.session_folder import HEADER, RIG, read_header, read_trials, rig_of_session, sessions_in
from cosim.apps.tuning.setup import evaluator_of
from cosim.core.errors import InputError, RunError, plural
from cosim.output import console
from cosim.output.text_table import TextTable
from cosim.rig.reading.yaml_source import overrides_of
from cosim.rig.rig import load_rig
from cosim.rig.rig_files import input_files
from cosim.rig.run.run import Run

NONE = "–"
SHOWN = 10  # trials of a session


def open_session(path: str | Path) -> TuningSession:
    """The session in a folder, with its rig as it was. Raises InputError for a folder without one."""
    path = Path(path)
    header = read_header(path)
    evaluator = evaluator_of(rig_of_session(path), header.request, header.log)
    return TuningSession(evaluator, header.request, read_trials(path), path)


def list_sessions(folder: Path) -> TextTable:
    """A row for each session in a folder. Raises InputError without any."""
    found = sessions_in(folder)
    if not found:
        raise InputError("there are no sessions here; begin one with cosim tune gains RIG", str(folder))
    table = TextTable(["session", "rig", "begun (UTC)", "optimiser"], ["trials", "start", "best", "trial"])
    for path, header in found:
        if header is None:
            table.add_row(str(path), "damaged", *[NONE] * 6)
            continue
        trials = read_trials(path)
        best = best_of(trials, start_counts=False)
        done = f"{max(len(trials) - 1, 0)}/{header.request.trials}"
        start = _cost(trials[0]) if trials else NONE
        numbers = (done, start, NONE if best is None else _cost(best), NONE if best is None else str(best.number))
        table.add_row(str(path), header.rig, header.begun, header.request.optimiser or NONE, *numbers)
    return table


def show_session(session: TuningSession) -> list[str]:
    """Its settings, and its best trials."""
    names = [dimension.name for dimension in session.evaluator.space.dimensions]
    table = TextTable(["trial"], ["cost", *names])
    feasible = [trial for trial in session.trials if trial.outcome.feasible]
    for trial in sorted(feasible, key=lambda trial: trial.outcome.score)[:SHOWN]:
        table.add_row(str(trial.number), _cost(trial), *(f"{value:.5g}" for value in trial.values))
    request = session.request
    keys = ("parameters", "minimise", "limits", "plants")
    settings = [f"{key:<10} {_shown(value)}" for key in keys if (value := getattr(request, key))]
    settings += [f"measured   {request.measured}"] * (request.measured is not None)
    done, failed = max(len(session.trials) - 1, 0), len(session.trials) - len(feasible)
    counts = f"{done} of {request.trials} by {request.optimiser}, seed {request.seed}, {failed} failed"
    return [*settings, f"trials     {counts}", *table.lines()]


def _shown(value: dict[str, object]) -> str:
    return ", ".join(name if item is None else f"{name}={item}" for name, item in value.items())


def compare_sessions(sessions: Sequence[TuningSession]) -> TextTable:
    """The best trials of sessions, each a column."""
    table = TextTable([""], [str(session.path) for session in sessions])
    best = [session.found for session in sessions]
    table.add_row("trial", *(NONE if trial is None else str(trial.number) for trial in best))
    table.add_row("cost", *(NONE if trial is None else _cost(trial) for trial in best))
    values = [
        {} if trial is None else dict(zip((d.name for d in s.evaluator.space.dimensions), trial.values, strict=True))
        for s, trial in zip(sessions, best, strict=True)
    ]
    for name in dict.fromkeys(name for column in values for name in column):
        table.add_row(name, *(f"{column[name]:.6g}" if name in column else NONE for column in values))
    figures = [{} if trial is None else trial.outcome.figures for trial in best]
    for name in dict.fromkeys(name for column in figures for name in column):
        found = (column.get(name, (None, None))[1] for column in figures)
        table.add_row(name, *(NONE if value is None else f"{value:.5g}" for value in found))
    return table


def rerun_trial(session: TuningSession, number: int, record: str | None) -> tuple[Trial, Run]:
    """The run of a trial with the plant of the rig, as a recording if `record` names its file. Before, it is evaluated
    again: raises RunError where the result differs from that in the session. Raises InputError for a number that does
    not exist, StoppedRun where the run is stopped, after its recording is complete."""
    assert session.path is not None
    if not 0 <= number < len(session.trials):
        last = len(session.trials) - 1
        raise InputError(f"there is no trial {number} in {session.path}; its trials are 0 to {last}", "--trial")
    trial = session.trials[number]
    again = session.evaluator.evaluate(np.array([trial.values]))[0]
    if Trial(number, trial.values, again).line() != trial.line():
        what = f"trial {number} gives another result here: cost {again.cost:.17g}, recorded {trial.outcome.cost:.17g}"
        raise RunError(f"{what}; it was run with other versions, see {HEADER}", str(session.path))
    path = session.path / RIG / read_header(session.path).as_run
    rig = load_rig(path, overrides_of(overlay_values(session, trial)))
    console.check_inputs(input_files(rig), record=record)
    return trial, rig.run(session.request.duration, record, keep="final")


def _cost(trial: Trial) -> str:
    return f"{trial.outcome.cost:.6g}" if np.isfinite(trial.outcome.cost) else NONE


def sessions(folders: Sequence[Path], trial: int | None, record: str | None) -> None:
    """The command: list, show, compare or run again."""
    if trial is None and record is not None:
        raise InputError("only a trial can be recorded; add --trial", "--record")
    if trial is None and len(folders) == 1 and not (folders[0] / HEADER).exists():
        print(*list_sessions(folders[0]).lines(), sep="\n")
        return
    if trial is not None and len(folders) != 1:
        raise InputError("give the one session of the trial", "--trial")
    console.check_targets([], None, record)
    opened = [open_session(folder) for folder in folders]
    if trial is not None:
        _print_rerun(opened[0], trial, record)
    elif len(opened) == 1:
        print(*show_session(opened[0]), sep="\n")
    else:
        print(*compare_sessions(opened).lines(), sep="\n")


def _print_rerun(session: TuningSession, number: int, record: str | None) -> None:
    with console.busy(f"running trial {number}"):
        trial, run = rerun_trial(session, number, record)
    plants = len(trial.outcome.costs)
    print(f"trial {number}  cost {_cost(trial)} on {plants} {plural(plants, 'plant')}, equal to the bit")
    table = TextTable(["joint"], ["error RMS", "error max", "effort RMS"])
    for name, joint in run.summary["joints"].items():
        found = (joint["error_rms"], joint["error_max"], joint["effort_rms"])
        table.add_row(name, *(NONE if value is None else f"{value:.5g}" for value in found))
    print(*table.lines(), sep="\n")
    if record:
        print(f"wrote    recording {record}")
