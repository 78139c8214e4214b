"""A log: what a machine measured of its joints, row by row, in SI and in the order of time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from cosim.core.errors import listed
from cosim.core.tables.joint_columns import TIME, NamedColumns
from cosim.core.tables.times import CLOSEST, times_of
from cosim.core.types import Array


class MeasuredColumn(NamedTuple):
    """A column that is read. dof_unit: of the positions of the joint, rad or m."""

    joint: str
    quantity: str
    column: int
    dof_unit: str


class JointLog(NamedTuple):
    """t (k,) [s], increasing; values (k, n), SI, angles without jumps by a turn; lines (k,): of the file, empty where
    it has none; notes: what was guessed or changed."""

    t: Array
    values: Array
    lines: np.ndarray
    notes: tuple[str, ...]


def read_log(of: NamedColumns, wanted: Sequence[MeasuredColumn]) -> JointLog:
    """These columns of a table. Raises InputError, InputErrors for cells that are no numbers."""
    columns = [m.column for m in wanted]
    table = of.table.with_rows_of(columns)
    times = times_of(table, of.units.get(TIME), of.named.get(TIME), log=True, keys=of.keys)
    rows = table.numbers(columns)
    factors = [of.factor(m.joint, m.quantity, m.column, m.dof_unit) for m in wanted]
    order, notes = _in_order(times.seconds)
    t, values = times.seconds[order], (rows.values * factors)[order]
    lines = rows.lines[order] if len(rows.lines) else rows.lines
    angles = [k for k, m in enumerate(wanted) if m.quantity.endswith("position") and m.dof_unit == "rad"]
    smooth = np.unwrap(values[:, angles], axis=0)
    jumped = np.abs(smooth - values[:, angles]).max(axis=0, initial=0.0) > np.pi
    if jumped.any():
        joints = [wanted[k].joint for k, jumps in zip(angles, jumped, strict=True) if jumps]
        notes.append(f"angles that jump by a turn are unwrapped: {listed(joints)}")
    values[:, angles] = smooth
    return JointLog(t, values, lines, (*table.notes, *times.notes, *notes))


def _in_order(t: Array) -> tuple[np.ndarray, list[str]]:
    """(indices of the rows by increasing times, each time once; what was changed)"""
    notes = list[str]()
    order = np.arange(len(t))
    if backwards := int((np.diff(t) < 0.0).sum()):
        order = np.argsort(t, kind="stable")
        notes.append(f"rows are sorted by their times, which go back {backwards} times")
    new = np.concatenate([[True], np.diff(t[order]) >= CLOSEST]) if len(t) else np.zeros(0, dtype=bool)
    if repeated := int((~new).sum()):
        notes.append(f"{repeated} rows at times that are there already are left out")
    return order[new], notes
