"""A log of another program as a run, to compare a run with: what it measured of the joints of that run."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from cosim.core.errors import InputError, listed
from cosim.core.recordings.reader import FOREIGN, NO_RIG
from cosim.core.tables import open_table
from cosim.core.tables.joint_columns import NamedColumns
from cosim.core.tables.log import JointLog, MeasuredColumn, read_log
from cosim.core.tables.options import SAID_BY_THE_FILE, TableOptions
from cosim.rig.run.run import Run, load_run

# quantity of a log -> the signals of a joint that it is compared with, the first one that the run has
COMPARED = {
    "position": ("position",),
    "velocity": ("velocity",),
    "effort": ("measured_effort", "effort"),
    "current": ("current",),
}
TABLES = (".csv", ".tsv", ".txt", ".log", ".dat", ".parquet", ".mat", ".npy")  # suffixes that no run has
MISSING_ROWS = 10.0  # times the median time between rows: nothing is known of what lies between
ALIKE = 0.95  # correlation of a signal with that of the run …
SAME_FACTOR = 0.1  # … and how near its ratio to it is to a factor of units
SAME_SIZE = 1.5  # ratio of signals that are alike
UNLIKE = 0.8  # correlation of a signal with its own, where that of another joint is alike
FEWEST_ROWS = 20  # in which signals are alike
# unit of a run -> other ones, with the factor of their numbers
OTHER_UNITS: dict[str, dict[str, float]] = {
    "rad": {"deg": 180.0 / np.pi, "turn": 0.5 / np.pi},
    "rad/s": {"deg/s": 180.0 / np.pi, "rpm": 30.0 / np.pi},
    "m": {"mm": 1e3},
    "m/s": {"mm/s": 1e3},
    "N*m": {"mN*m": 1e3},
    "A": {"mA": 1e3},
}


@dataclasses.dataclass(eq=False, repr=False)
class MeasuredLog(Run):
    """notes: what was guessed or changed when it was read. It has no summary."""

    notes: tuple[str, ...] = ()

    @cached_property
    def summary(self) -> Any:
        return {}


def measured_log(
    path: str | Path, run: Run, options: TableOptions = SAID_BY_THE_FILE, from_start: bool = False
) -> MeasuredLog:
    """The quantities of the joints of a run in a table, in the units of its signals; from_start: its first row is at
    the start of the run, whatever its time is. Raises InputError for a file without any, or without one that has a
    gain, see `open_table`."""
    table = open_table(path, options.topic)
    of = NamedColumns.of(table, run.joints, options, by_order=True)
    found = dict[str, MeasuredColumn]()
    for joint in run.joints:
        for quantity, signals in COMPARED.items():
            signal = next((name for name in signals if f"{joint}/{name}" in run), None)
            column = None if signal is None else of.column(joint, quantity)
            if column is None and of.gain(joint, quantity) is not None:
                raise of.error_of([joint], quantity)
            if column is not None:
                found[f"{joint}/{signal}"] = MeasuredColumn(joint, quantity, column, run.units[f"{joint}/position"])
    if not found:
        raise of.error_of(run.joints, "position")
    log = read_log(of, list(found.values()))
    if len(log.t) < 2:
        what = f"has {len(log.t)} row at a time of its own; two or more are needed, with times of enough digits"
        raise InputError(what, table.place())
    if from_start:
        log = log._replace(t=log.t - log.t[0] + run.t[0])
    steps = np.diff(log.t)
    gaps = tuple(
        (float(log.t[k]), float(log.t[k + 1])) for k in np.flatnonzero(steps > MISSING_ROWS * np.median(steps))
    )
    rig = dataclasses.replace(
        run.rig, name=Path(path).stem, path=str(path), units={name: run.units[name] for name in found}
    )
    known = {*run.joints, *(name.rpartition("/")[0] for name in run.units)}
    notes = [*log.notes, *of.of_no_joint(known, list(COMPARED)), *_left_out(run, of, found)]
    notes += [*_other_units(run, log, found, of.keys[0]), *_turned_and_swapped(run, log, found, of)]
    return MeasuredLog(rig, log.t, log.values, 0.0, 0.0, gaps=gaps, notes=tuple(notes))


def _left_out(run: Run, of: NamedColumns, found: Mapping[str, MeasuredColumn]) -> Iterator[str]:
    """Of quantities that the run does not have."""
    read = {each.column for each in found.values()}
    for quantity in COMPARED:
        left = [joint for joint in run.joints if _column(of, joint, quantity) not in {None, *read}]
        if left:
            fix = f"; to compare efforts, give {of.keys[3]}'effort=… N*m/A'" if quantity == "current" else ""
            yield f"the {quantity} of {listed(left)} is left out, the run has none{fix}"


def _column(of: NamedColumns, joint: str, quantity: str) -> int | None:
    try:
        return of.column(joint, quantity)
    except InputError:  # several that it could be
        return None


def _other_units(run: Run, log: JointLog, found: Mapping[str, MeasuredColumn], key: str) -> Iterator[str]:
    """Of signals that are alike those of the run, but as many times as large as in another unit. key: how a unit is
    given."""
    inside = (log.t >= run.t[0]) & (log.t <= run.t[-1])
    for (name, column), values in zip(found.items(), log.values[inside].T, strict=True):
        own = np.interp(log.t[inside], run.t, run[name])
        sizes = float(np.linalg.norm(own)), float(np.linalg.norm(values))
        if min(sizes) <= 0.0 or values @ own < ALIKE * sizes[0] * sizes[1]:
            continue
        for other, factor in OTHER_UNITS.get(run.units[name], {}).items():
            if abs(sizes[1] / sizes[0] / factor - 1.0) < SAME_FACTOR:
                what = f"{name} is {sizes[1] / sizes[0]:.3g} times the run's, and alike"
                yield f"{what}; if its column is in {other}, give {key}{column.joint}/{column.quantity}={other}"


def _turned_and_swapped(
    run: Run, log: JointLog, found: Mapping[str, MeasuredColumn], of: NamedColumns
) -> Iterator[str]:
    """Of signals that are alike those of the run with the other sign, or alike those of another joint."""
    inside = (log.t >= run.t[0]) & (log.t <= run.t[-1])
    names = list(found)
    if inside.sum() < FEWEST_ROWS:
        return
    own = np.column_stack([np.interp(log.t[inside], run.t, run[name]) for name in names])
    alike = _likeness(log.values[inside], own)
    for k, name in enumerate(names):
        joint, quantity = found[name].joint, found[name].quantity
        if alike[k, k] < -ALIKE:
            what = f"{name} is alike the run's with the other sign"
            yield f"{what}; if its axis points the other way, give {of.keys[3]}{joint}/{quantity}=-1"
            continue
        same = [j for j in range(len(names)) if found[names[j]].quantity == quantity]
        best = max(same, key=lambda j: alike[k, j])
        if alike[k, best] > ALIKE and alike[k, k] < UNLIKE:
            what = f"{name} is alike {names[best]} of the run, and not its own"
            column = of.table.names[found[name].column]
            key = f"{of.keys[1]}{shlex.quote(f'{found[names[best]].joint}/{quantity}={column}')}"
            yield f"{what}; if joints are swapped, give {key} and so on"


def _likeness(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(n, n): correlation of each column of (k, n) with each of the other; 0 where one differs in size, or rests."""
    a, b = (values - values.mean(axis=0) for values in (a, b))
    sizes = np.outer(np.linalg.norm(a, axis=0), 1.0 / np.maximum(np.linalg.norm(b, axis=0), np.finfo(float).tiny))
    products = np.outer(np.linalg.norm(a, axis=0), np.linalg.norm(b, axis=0))
    alike = np.divide(a.T @ b, products, out=np.zeros_like(products), where=products > 0.0)
    return np.where(np.abs(np.log(np.maximum(sizes, 1e-300))) < np.log(SAME_SIZE), alike, 0.0)


def run_or_log(path: str | Path, run: Run, options: TableOptions = SAID_BY_THE_FILE, from_start: bool = False) -> Run:
    """What a run is compared with: another run, or a log of its joints, see `measured_log`. Raises InputError for what
    is neither."""
    if Path(path).suffix.lower() in TABLES:
        return measured_log(path, run, options, from_start)
    try:
        return load_run(path)
    except InputError as error:
        if FOREIGN not in error.what and NO_RIG not in error.what:  # an export of a run has its signals alone
            raise
    return measured_log(path, run, options, from_start)
