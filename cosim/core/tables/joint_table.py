"""One quantity of joints over time, in SI, from a file that a rig names: waypoints, efforts, measurements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cosim.core.errors import InputError, SourceLocation, did_you_mean
from cosim.core.paths import locate
from cosim.core.tables.files import open_table
from cosim.core.tables.joint_columns import columns_of, unit_of_column
from cosim.core.tables.table import Table
from cosim.core.tables.times import check_increasing, times_of
from cosim.core.types import Array, param, params
from cosim.core.units import JOINT_DIMENSIONS, UNITS, known_unit

TIME = "t"


@params
class TableFile:
    """The keys of a section that names a file with a table."""

    file: str = param(doc="table, relative to the rig's folder")
    units: dict | None = param(default=None, doc="unit of `t`, a column or a joint, where the file does not say it")
    columns: dict | None = param(default=None, doc="column of `t` or of a joint, where its name does not say it")
    topic: str | None = param(default=None, doc="of an MCAP file with several")

    def path(self, folder: Path) -> Path:
        return locate(self.file, folder)


@dataclass(frozen=True)
class JointTable:
    """t (k,) [s], increasing; values (k, n), SI; lines (k,): of the file, empty where it has none; notes: what was
    guessed."""

    path: Path
    t: Array
    values: Array
    lines: np.ndarray
    notes: tuple[str, ...]

    def place(self, row: int, key: str = "") -> SourceLocation:
        return SourceLocation(str(self.path), int(self.lines[row]) if len(self.lines) else None, key)

    def row(self, row: int) -> str:
        """The row in words: its line, or its number."""
        return f"line {self.lines[row]}" if len(self.lines) else f"row {row + 1}"


def read_joint_table(given: TableFile, folder: Path, joints: Sequence[str], quantity: str) -> JointTable:
    """The quantity, a key of `JOINT_DIMENSIONS` such as `position`, of all joints at increasing times.

    Raises InputError, InputErrors with the lines of what is wrong.
    """
    table = open_table(given.path(folder), given.topic)
    units, named = _units(table, given.units, joints), _columns(table, given.columns, joints)
    times = times_of(table, units.get(TIME), named.get(TIME))
    columns = columns_of(table, joints, quantity, named, bare=True)
    rows = table.numbers(columns)
    factors = [
        _factor(table, column, unit_of_column(table, column, units, joint, quantity), quantity, joint)
        for joint, column in zip(joints, columns, strict=True)
    ]
    check_increasing(table, times.seconds, rows.lines)
    return JointTable(table.path, times.seconds, rows.values * factors, rows.lines, (*table.notes, *times.notes))


def _units(table: Table, given: Mapping[Any, Any] | None, joints: Sequence[str]) -> dict[str, str]:
    found = dict[str, str]()
    for key, value in (given or {}).items():
        unit, name = known_unit(str(value)), str(key)
        if unit is None:
            raise InputError(f"there is no unit '{value}'{did_you_mean(str(value), UNITS)}", f"units.{name}")
        if name not in (TIME, *joints, *table.names, *(quantity for quantity in ("position", "velocity", "effort"))):
            near = did_you_mean(name, [TIME, *joints, *table.names])
            raise InputError(f"there is no joint and no column '{name}'{near}", f"units.{name}")
        found[name] = unit
    return found


def _columns(table: Table, given: Mapping[Any, Any] | None, joints: Sequence[str]) -> dict[str, str]:
    found = dict[str, str]()
    for key, value in (given or {}).items():
        name, column = str(key), str(value)
        if name not in (TIME, *joints):
            raise InputError(f"there is no joint '{name}'{did_you_mean(name, [TIME, *joints])}", f"columns.{name}")
        if column not in table.names:
            near = did_you_mean(column, table.names)
            raise InputError(f"{table.path} has no column '{column}'{near}", f"columns.{name}")
        found[name] = column
    return found


def _factor(table: Table, column: int, unit: str | None, quantity: str, joint: str) -> float:
    """To SI. Raises InputError for a unit of another quantity."""
    if unit is None:
        return 1.0
    dimension, factor = UNITS[unit]
    allowed = JOINT_DIMENSIONS[f"joint {quantity}"]
    if dimension not in allowed:
        what = f"a {quantity} is in {' or '.join(allowed)}, this column is in {unit}; give joint '{joint}' another one"
        raise InputError(what, table.place(table.header, table.names[column]))
    return factor
