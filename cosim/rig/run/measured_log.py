"""A log of another program as a run, to compare a run with: what it measured of the joints of that run."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from cosim.core.errors import InputError
from cosim.core.recordings.reader import FOREIGN
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
    the start of the run, whatever its time is. Raises InputError for a file
    without any, or without one that has a gain, see `open_table`."""
    table = open_table(path, options.topic)
    of = NamedColumns.of(table, run.joints, options, by_order=True)
    found = dict[str, MeasuredColumn]()
    for joint in run.joints:
        for quantity, signals in COMPARED.items():
            signal = next((name for name in signals if f"{joint}/{name}" in run), None)
            column = None if signal is None else of.column(joint, quantity)
            if column is None and of.gain(joint, quantity) is not None:
                raise InputError(of.lacking([joint], quantity), table.place(table.header))
            if column is not None:
                found[f"{joint}/{signal}"] = MeasuredColumn(joint, quantity, column, run.units[f"{joint}/position"])
    if not found:
        raise InputError(of.lacking(run.joints, "position"), table.place(table.header))
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
    notes = (*log.notes, *_other_units(run, log, found, of.keys[0]))
    return MeasuredLog(rig, log.t, log.values, 0.0, 0.0, gaps=gaps, notes=notes)


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


def run_or_log(path: str | Path, run: Run, options: TableOptions = SAID_BY_THE_FILE, from_start: bool = False) -> Run:
    """What a run is compared with: another run, or a log of its joints, see `measured_log`. Raises InputError for what
    is neither."""
    if Path(path).suffix.lower() in TABLES:
        return measured_log(path, run, options, from_start)
    try:
        return load_run(path)
    except InputError as error:
        if FOREIGN not in error.what:
            raise
    return measured_log(path, run, options, from_start)
