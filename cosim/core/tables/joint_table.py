"""One quantity of joints over time, in SI, from a file that a rig names: waypoints, efforts, measurements."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import numpy as np

from cosim.core.errors import InputError, InputErrors, SourceLocation, plural
from cosim.core.paths import locate
from cosim.core.tables.files import open_table
from cosim.core.tables.joint_columns import NamedColumns
from cosim.core.tables.options import TableOptions
from cosim.core.tables.quantities import TIME
from cosim.core.tables.rubbish import ABSURD
from cosim.core.tables.table import FileTable
from cosim.core.tables.times import check_increasing, times_of
from cosim.core.types import Array, param, params

LARGEST = {"position": 1e6}  # rad or m; of other quantities as in logs


@params
class TableFile:
    """The keys of a section that names a file with a table; kinds: of its joints, where they are known; all_joints: of
    the rig, empty where they are not known."""

    file: str = param(doc="table, relative to the rig's folder")
    units: dict | None = param(default=None, doc="unit of `t`, a column or a joint, where the file does not say it")
    columns: dict | None = param(default=None, doc="column of `t` or of a joint, where its name does not say it")
    topic: str | None = param(default=None, doc="of an MCAP file with several")

    kinds: Mapping[str, str | None] = field(default_factory=dict, init=False, repr=False)
    all_joints: Collection[str] = field(default=(), init=False, repr=False)

    def of_joints(self, kinds: Mapping[str, str | None], all_joints: Collection[str] = ()) -> Self:
        """The same of these joints, whose units are checked: name -> kind such as `prismatic`."""
        found = copy(self)
        object.__setattr__(found, "kinds", dict(kinds))
        object.__setattr__(found, "all_joints", all_joints)
        return found

    def dof_unit(self, joint: str) -> str | None:
        """Of its positions, None where unknown."""
        return {"prismatic": "m", "revolute": "rad", "continuous": "rad"}.get(self.kinds.get(joint) or "")

    def path(self, folder: Path) -> Path:
        return locate(self.file, folder)

    @property
    def options(self) -> TableOptions:
        return TableOptions(self.units or {}, self.columns or {}, self.topic)


@dataclass(frozen=True)
class JointTable:
    """t (k,) [s], increasing; values (k, n), SI; columns, units (n,): names of the columns, and the units that the file
    or the caller gives them, None of others; lines (k,): of the file, empty where it has none; notes: what was guessed.
    """

    path: Path
    t: Array
    values: Array
    columns: tuple[str, ...]
    units: tuple[str | None, ...]
    lines: np.ndarray
    notes: tuple[str, ...]

    def place(self, row: int, key: str = "") -> SourceLocation:
        return SourceLocation(str(self.path), int(self.lines[row]) if len(self.lines) else None, key)

    def row(self, row: int) -> str:
        """The row in words: its line, or its number."""
        return f"line {self.lines[row]}" if len(self.lines) else f"row {row + 1}"


def read_joint_table(given: TableFile, folder: Path, joints: Sequence[str], quantity: str) -> JointTable:
    """The quantity, such as `position`, of all joints at increasing times.

    Raises InputError, InputErrors with the lines of what is wrong.
    """
    table = open_table(given.path(folder), given.topic)
    of = NamedColumns.of(table, joints, given.options, about=quantity)
    columns = of.required(joints, quantity, bare=True)
    table = table.with_rows_of(columns)
    times = times_of(table, of.units.get(TIME), of.named.get(TIME), keys=of.keys)
    rows = table.numbers(columns)
    factors = [
        of.factor(joint, quantity, column, given.dof_unit(joint)) for joint, column in zip(joints, columns, strict=True)
    ]
    new = _new_rows(times.seconds, rows.values)
    t, values, lines = (
        times.seconds[new],
        (rows.values * factors)[new],
        rows.lines[new] if len(rows.lines) else rows.lines,
    )
    names = tuple(table.names[column] for column in columns)
    _check_sizes(table, lines, [TIME, *names], np.column_stack([t, values]), quantity)
    check_increasing(table, t, lines)
    wanted = [(joint, quantity, column) for joint, column in zip(joints, columns, strict=True)]
    notes = [*table.notes, *times.notes, *of.said(wanted)]
    if given.all_joints:
        notes += of.of_no_joint(given.all_joints, [quantity])
    if repeated := int((~new).sum()):
        notes.append(f"left out {repeated} {plural(repeated, 'row')} equal to the row above")
    units = tuple(of.unit(joint, quantity, column) for joint, column in zip(joints, columns, strict=True))
    return JointTable(table.path, t, values, names, units, lines, tuple(notes))


def _check_sizes(table: FileTable, lines: np.ndarray, names: Sequence[str], values: Array, quantity: str) -> None:
    """Raises InputErrors for columns, times first, with values (k, n) that no joint has."""
    most = np.array([ABSURD, *[LARGEST.get(quantity, ABSURD)] * (len(names) - 1)])
    errors = list[InputError]()
    for k in np.flatnonzero((np.abs(values) > most).any(axis=0)).tolist():
        rows = np.flatnonzero(np.abs(values[:, k]) > most[k])
        value = values[rows[0], k]
        what = f"{value:.4g} in SI is more than any joint has, {most[k]:g}"
        what = f"is {value:.4g} s, later than any motion" if k == 0 else what
        at = "" if len(lines) else f"row {rows[0] + 1}: "
        more = f", in {len(rows) - 1} more {plural(len(rows) - 1, 'row')} too" if len(rows) > 1 else ""
        place = table.place(int(lines[rows[0]]) if len(lines) else None, names[k])
        errors.append(InputError(f"{at}{what}{more}; check the number and its unit", place))
    if errors:
        raise InputErrors(errors)


def _new_rows(t: Array, values: Array) -> np.ndarray:
    """bool (k,): whether a row differs from the one above; simulators write a row before and behind each event."""
    new = np.ones(len(t), dtype=bool)
    new[1:] = (np.diff(t) != 0.0) | (np.diff(values, axis=0) != 0.0).any(axis=1)
    return new
