"""`cosim.tune`: a session from a rig to its results."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

from cosim.apps.tuning import session_folder
from cosim.apps.tuning.evaluation import TrialEvaluator
from cosim.apps.tuning.session import FailedTuning, Progress, TuningSession, Workers, run_trials
from cosim.apps.tuning.session_folder import SessionFolder, SessionHeader
from cosim.apps.tuning.setup import evaluator_of, fingerprint_of, placed, request_of
from cosim.core.errors import CosimError, InputError
from cosim.execution.posix_signals import interrupted
from cosim.rig.rig import Rig
from cosim.rig.rig_files import files_of
from cosim.rig.sections.tuning import TuningKeys

Choice = Mapping[str, Any] | Iterable[str]
PACKAGES = ("cosim", "numpy", "scipy", "optuna", "cmaes")
# words of messages
SEVERAL = {"parameters", "limits", "plants", "samples", "units", "columns", "gains"}
NAMES = {"minimise": "cost", "measured": "log"}
EXTENDED = {"trials"}  # keys that a session may go on with other values of


def tune(
    rig: Rig,
    parameters: Choice | None = None,
    minimise: Choice | None = None,
    limits: Mapping[str, Any] | None = None,
    plants: Mapping[str, Any] | None = None,
    *,
    measured: str | Path | None = None,
    units: Mapping[str, str] | None = None,
    columns: Mapping[str, Any] | None = None,
    gains: Mapping[str, Any] | None = None,
    topic: str | None = None,
    samples: int | None = None,
    robust: Literal["worst", "mean"] | None = None,
    optimiser: str | None = None,
    trials: int | None = None,
    batch: int | None = None,
    seed: int | None = None,
    duration: float | str | None = None,
    folder: str | Path | None = None,
    resume: bool = False,
    dask: str | None = None,
    progress: Progress | None = None,
) -> TuningSession:
    """Look for the parameters of a rig that minimise a cost within hard limits, over a set of perturbed plants.

    parameters: names, or name -> text such as `10..2000`; minimise: figures of merit, or figure -> weight; limits:
    figure -> bound; plants: number -> fraction; measured: log of the machine that runs are compared with; units,
    columns, gains and topic: how it is read. All of them, and samples, robust, optimiser, trials, batch, seed and
    duration, are keys of the section `tuning`, which they are added to or replace. folder: keeps the session, with its
    report and the gains as an overlay; resume: go on with the one in the folder, with its own settings; dask: address
    of a scheduler whose workers evaluate; progress: called with the session after each batch.

    Raises InputErrors for names and values that do not fit the rig. Raises FailedTuning where the session is
    interrupted or no trial holds all limits; its `session` has all trials up to then.
    """
    given = {
        "parameters": parameters,
        "minimise": minimise,
        "limits": limits,
        "plants": plants,
        "measured": measured,
        "units": units,
        "columns": columns,
        "gains": gains,
        "topic": topic,
        "samples": samples,
        "robust": robust,
        "optimiser": optimiser,
        "trials": trials,
        "batch": batch,
        "seed": seed,
        "duration": duration,
    }
    if folder == "":
        raise InputError("'' is no folder; name one", "folder")
    path = None if folder is None else Path(folder)
    if resume and path is None:
        raise InputError("there is no folder to go on with; give folder", "resume")
    given = {key: value for key, value in given.items() if value is not None}
    return run_session(rig, given, path, resume, dask, progress)


def run_session(
    rig: Rig,
    given: Mapping[str, Any],
    path: Path | None,
    resume: bool = False,
    dask: str | None = None,
    progress: Progress | None = None,
    check: Callable[[TrialEvaluator, TuningKeys], None] | None = None,
) -> TuningSession:
    """See `tune`; given: keys of the section `tuning`; check: called before the first trial."""
    with placed(rig, given), ExitStack() as stack:
        kept = None
        if resume:
            assert path is not None
            kept = SessionFolder.open(path)
            stack.callback(kept.close)
            request = _resumed(rig, kept, given)
            kept.update(request)
        else:
            request = request_of(rig, given)
        evaluator = evaluator_of(rig, request, "" if kept is None else kept.header.log)
        if check is not None:
            check(evaluator, request)
        if kept is None:
            evaluator.check_figures()
        workers = _workers(evaluator, request, dask, stack)
        if path is not None and kept is None:
            kept = _created(rig, path, request, "" if evaluator.log is None else evaluator.log.digest)
            stack.callback(kept.close)
        session = TuningSession(evaluator, request, [] if kept is None else list(kept.trials), path)
        try:
            run_trials(session, workers, kept, progress)
            _finish(session)
        except InputError:
            raise
        except (KeyboardInterrupt, CosimError) as error:
            if kept is not None:
                session.trials = kept.written()
            with suppress(KeyboardInterrupt, CosimError):  # Ctrl-C once more, or a disk that is full
                _finish(session)
            raise FailedTuning(_interrupted(session, error), session) from (
                error if isinstance(error, KeyboardInterrupt) else None
            )
    if session.found is None:
        raise FailedTuning(session.why_none, session)
    return session


def _workers(evaluator: TrialEvaluator, request: TuningKeys, dask: str | None, stack: ExitStack) -> Workers:
    """This process, or the workers of a scheduler."""
    if dask is None:
        return evaluator
    from cosim.apps.tuning.dask_workers import DaskWorkers

    return stack.enter_context(DaskWorkers(dask, evaluator, request))


def _created(rig: Rig, path: Path, request: TuningKeys, log: str) -> SessionFolder:
    files = files_of(rig)
    header = SessionHeader(
        rig=rig.spec.name,
        file=str(rig.spec.path),
        as_run=files.as_run,
        gains=tuple(rig.tick_model.parameters.tolist()),
        request=request,
        fingerprint=fingerprint_of(rig),
        versions={name: version for name in PACKAGES if (version := _version(name))},
        begun=session_folder.now(),
        log=log,
    )
    return SessionFolder.create(path, header, files)


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def _resumed(rig: Rig, kept: SessionFolder, given: Mapping[str, Any]) -> TuningKeys:
    """The request of a session that goes on. Raises InputError for one of another rig or with other settings."""
    header = kept.header
    if header.rig != rig.spec.name:
        what = f"is a session of the rig '{header.rig}', not of '{rig.spec.name}'"
        raise InputError(f"{what}; choose its folder with --session", str(kept.path))
    if header.fingerprint != fingerprint_of(rig):
        what = f"is a session of '{header.rig}' as it was before a change"
        raise InputError(f"{what}; undo the change, or begin another session", str(kept.path))
    request = header.request
    changed = replace(request, **{key: getattr(request_of(rig, given), key) for key in given})
    for key in given:
        if key not in EXTENDED and getattr(changed, key) != getattr(request, key):
            name = f"{NAMES.get(key, key)} {'were' if key in SEVERAL else 'was'}"
            what = f"its {name} {_shown(getattr(request, key))}, not {_shown(getattr(changed, key))}"
            raise InputError(f"{what}; take the option out, or begin another session", str(kept.path))
    return changed


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(name if item is None else f"{name}={item}" for name, item in value.items()) or "none"
    return str(value)


def _interrupted(session: TuningSession, error: BaseException) -> str:
    done, total = max(len(session.trials) - 1, 0), session.request.trials
    found, what, why = session.found, "interrupted", f": {error}"
    if isinstance(error, KeyboardInterrupt):
        what, why = interrupted(error), ""
    best = "" if found is None else f", the best is trial {found.number} with the cost {found.outcome.cost:.6g}"
    fix = "" if session.path is None else f"; go on with --resume --session {shlex.quote(str(session.path))}"
    return f"{what} after {done} of {total} trials{best}{why}{fix}"


def _finish(session: TuningSession) -> None:
    """Write the report and the gains of a session with a folder."""
    if session.path is None or not session.trials:
        return
    session.save_report(path := session.path / session_folder.REPORT)
    session.written["report"] = path
    if session.found is not None:
        session.save_overlay(path := session.path / session_folder.OVERLAY)
        session.written["gains"] = path
