"""The log of the machine that the runs of a session are to be like, read from its file."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from cosim.apps.tuning.misfit import MISFIT, ROUNDING, LogColumn, TargetLog, measured_signal
from cosim.apps.tuning.objective import Objective
from cosim.core.errors import InputError, SectionError, listed
from cosim.core.paths import locate, read_file
from cosim.core.tables.options import COMMAND_KEYS, TableOptions
from cosim.core.types import Array
from cosim.rig.rig import Rig
from cosim.rig.run.measured_log import COMPARED, MeasuredLog, run_or_log
from cosim.rig.run.run import Run
from cosim.rig.run.run_metadata import run_metadata_of
from cosim.rig.sections.tuning import TuningKeys

SHORTEST = 0.5  # of a run, that a log has
AT_REST = 1e-3  # deviation from the mean, relative to the joint that moves most, up to which a joint is at rest
READING = ("units", "columns", "topic", "gains")  # keys of the section that say how a log is read


def absolute_log(path: str, folder: Path) -> str:
    """A path of a log that is relative to a folder. Raises SectionError for a variable that is not set."""
    try:
        return os.path.abspath(locate(path, folder))
    except InputError as error:
        raise SectionError(error.what, ("measured",)) from None


def read_target(rig: Rig, request: TuningKeys, objective: Objective, seconds: float) -> TargetLog | None:
    """The log of a request, None without one. seconds: of a run.

    Raises InputError for a file that cannot be read, that is of another rig or too short, or in which no joint moves;
    SectionError for options of a log that do not fit it, for a log without misfit, and where there is no log.
    """
    places = [(("minimise", measure.name), measure) for measure, _ in objective.terms if measure.is_misfit]
    places += [(("limits", limit.measure.name), limit.measure) for limit in objective.limits if limit.measure.is_misfit]
    if request.measured is None:
        for keys in [*(keys for keys, _ in places), *((key,) for key in READING if getattr(request, key))]:
            raise SectionError("there is no log; give its file by --measured, or by the key 'measured'", keys)
        return None
    if not places:
        raise SectionError(f"nothing is compared with this log; add {MISFIT} to minimise or limits", ("measured",))
    log = _target(rig, request, request.measured, seconds)
    have = sorted({column.joint for column in log.columns})
    for keys, measure in places:
        if measure.joint is not None and measure.joint not in have:
            moved = listed([rig.joints[k] for k in have])
            raise SectionError(f"the log has a motion of {moved}, not of {rig.joints[measure.joint]}", keys)
    return log


def _target(rig: Rig, request: TuningKeys, path: str, seconds: float) -> TargetLog:
    rig.require_joints(MISFIT)
    run = _run_at_start(rig, seconds)
    found = _read(request, path, run)
    t = np.asarray(found.t) - found.t[0]
    if t[-1] < SHORTEST * seconds:
        what = f"is {t[-1]:.4g} s long, less than half of a run of {seconds:g} s"
        raise InputError(f"{what}; give another duration, or a log of a whole run", path)
    inside = t <= seconds * (1.0 + ROUNDING)
    columns = list(_columns(found, run, inside, path))
    moving = _moving(columns, run)
    if not moving:
        raise InputError("no joint moves in it; give a log of a motion", path)
    notes = list(found.notes) if isinstance(found, MeasuredLog) else [found.lacks] * bool(found.lacks)
    if still := {column.joint for column in columns} - {column.joint for column in moving}:
        notes.append(f"at rest, and without {MISFIT}: {listed([rig.joints[k] for k in sorted(still)])}")
    digest = hashlib.sha256(read_file(path)).hexdigest()
    return TargetLog(path, digest, np.minimum(t[inside], seconds), tuple(moving), len(rig.joints), tuple(notes))


def _run_at_start(rig: Rig, seconds: float) -> Run:
    """The run of the rig as it is, with the signals that a log may have."""
    known = rig.tick_model.signals.names
    names = [f"{joint}/{signal}" for joint in rig.joints for signals in COMPARED.values() for signal in signals]
    kept = tuple(name for name in names if name in known)
    batch = rig.rollouts(duration=seconds, signals=kept, threads=1)
    values = np.stack([batch.samples[name][0] for name in kept], axis=1)
    return Run(run_metadata_of(rig), batch.t, values, 0.0, 0.0, kept=kept)


def _read(request: TuningKeys, path: str, run: Run) -> Run:
    """A recording or a log. Its options are keys of the section."""
    given = TableOptions(request.units or {}, request.columns or {}, request.topic, COMMAND_KEYS, request.gains or {})
    try:
        return run_or_log(path, run, given, from_start=True)
    except InputError as error:
        for key, option in zip(READING, COMMAND_KEYS, strict=True):
            if error.place is not None and str(error.place).startswith(option):
                rest = str(error.place).removeprefix(option)
                raise SectionError(error.what, (key, rest) if rest else (key,)) from None
        raise


def _columns(found: Run, run: Run, inside: Array, path: str) -> Iterator[LogColumn]:
    """Of the joints that the log and the rig have. Raises InputError where there is none, or a unit is another one."""
    if not set(found.rig.joints) & set(run.joints):
        what = f"is of a rig with the joints {', '.join(found.rig.joints) or 'none'}, not {', '.join(run.joints)}"
        raise InputError(f"{what}; give a log of this rig", path)
    for k, joint in enumerate(run.joints):
        for quantity, signals in COMPARED.items():
            signal = next((name for name in (f"{joint}/{each}" for each in signals) if name in run), None)
            own = measured_signal(found, joint, quantity)
            if signal is None or own is None:
                continue
            if found.units[own] != run.units[signal]:
                what = f"has {own} in {found.units[own]}, the rig in {run.units[signal]}"
                raise InputError(f"{what}; give a log of this rig", path)
            values = np.array(found[own][inside], dtype=float)
            if len(known := values[~np.isnan(values)]):
                yield LogColumn(k, quantity, signal, values, float(np.var(known)))


def _moving(columns: Sequence[LogColumn], run: Run) -> list[LogColumn]:
    """Without those that are constant, and without joints at rest: whose first quantity, the position if there is one,
    deviates from its mean by less than a thousandth of the same quantity's largest deviation."""
    largest, joints = dict[tuple[str, str], float](), dict[int, bool]()
    for column in columns:
        kind = column.quantity, run.units[column.signal]
        largest[kind] = max(largest.get(kind, 0.0), column.spread)
    found = list[LogColumn]()
    for column in columns:
        rounding = ROUNDING * float(np.nanmax(np.abs(column.values), initial=0.0))
        least = max(AT_REST**2 * largest[column.quantity, run.units[column.signal]], rounding**2)
        moves = column.spread > least
        if joints.setdefault(column.joint, moves) and moves:
            found.append(column)
    return found
