"""A log: what a machine measured of its joints, row by row, in SI and in the order of time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from cosim.core.errors import InputError, SourceLocation, listed, plural
from cosim.core.tables.joint_columns import NamedColumns
from cosim.core.tables.jumps import spikes, steps
from cosim.core.tables.quantities import TIME
from cosim.core.tables.rubbish import RowPlaces, sound_rows
from cosim.core.tables.times import CLOSEST, misplaced, numeric_times, times_of
from cosim.core.types import Array

ROWS_OF_A_LOG = 20  # fewer at times of others before are rows that came late


class MeasuredColumn(NamedTuple):
    """A column that is read. dof_unit: of the positions of the joint, rad or m."""

    joint: str
    quantity: str
    column: int
    dof_unit: str


class JointLog(NamedTuple):
    """t (k,) [s], increasing; values (k, n), SI, angles without jumps by a turn; places: of the rows in the file;
    notes: what was guessed or changed."""

    t: Array
    values: Array
    places: RowPlaces
    notes: tuple[str, ...]


def read_log(of: NamedColumns, wanted: Sequence[MeasuredColumn]) -> JointLog:
    """These columns of a table, without rows that are rubbish (see `cosim.core.tables.rubbish`). Raises InputError,
    InputErrors for cells that are no numbers."""
    columns = [m.column for m in wanted]
    table = of.table.with_rows_of(columns)
    factors = np.array([of.factor(m.joint, m.quantity, m.column, m.dof_unit) for m in wanted])
    named = of.named.get(TIME)
    table, found, places, left_out = sound_rows(table, columns, factors, numeric_times(table, named, of.keys[1]))
    times = times_of(table, of.units.get(TIME), named, log=True, keys=of.keys)
    _check_one_log(times.seconds, places, table.place())
    order, notes = _in_order(times.seconds, places)
    t, values = times.seconds[order], (found * factors)[order]
    places = places.of(order)
    angles = np.array([m.quantity.endswith("position") and m.dof_unit == "rad" for m in wanted], dtype=bool)
    positions = np.array([m.quantity.endswith("position") for m in wanted], dtype=bool)
    bad = np.logical_or.reduce(spikes(t, values[:, positions], angles[positions]), axis=1)
    if bad.any():
        notes.append(places.of(bad).left_out("with positions that no motion has"))
        t, values, places = t[~bad], values[~bad], places.of(~bad)
    smooth = np.unwrap(values[:, angles], axis=0)
    jumped = np.abs(smooth - values[:, angles]).max(axis=0, initial=0.0) > np.pi
    if jumped.any():
        joints = [wanted[int(k)].joint for k in np.flatnonzero(angles)[jumped]]
        notes.append(f"angles that jump by a turn are unwrapped: {listed(joints)}")
    values[:, angles] = smooth
    notes += _jumps(t, values, places, positions, [of.table.names[m.column] for m in wanted])
    guessed = of.said((m.joint, m.quantity, m.column) for m in wanted)
    return JointLog(t, values, places, (*table.notes, *times.notes, *guessed, *left_out, *notes))


def _check_one_log(t: Array, places: RowPlaces, place: SourceLocation) -> None:
    """Raises InputError where times begin again within those before: sorting would mix two logs. Single rows may be
    late, and parts of a log may be written in another order."""
    begins = np.flatnonzero(np.diff(t) < 0.0) + 1
    ends = np.append(begins[1:], len(t))
    lowest, highest = np.minimum.accumulate(t), np.maximum.accumulate(t)
    long = ends - begins >= ROWS_OF_A_LOG
    for begin, end in zip(begins[long], ends[long], strict=True):
        part = t[begin:end]
        within = int(((part >= lowest[begin - 1]) & (part <= highest[begin - 1])).sum())
        if within >= ROWS_OF_A_LOG:
            what = f"times go back from {t[begin - 1]:.6g} to {t[begin]:.6g} s at {places.row(int(begin))}"
            what += f", and {within} rows from there on are at times of rows before: two logs in one file"
            raise InputError(f"{what}; cut it there and give both files", place)


def _jumps(t: Array, values: Array, places: RowPlaces, positions: Array, names: Sequence[str]) -> Iterator[str]:
    """What stays in the log: steps of positions, and spikes of others."""
    turned = np.zeros(len(names), dtype=bool)  # angles are unwrapped
    leaps, peaks = steps(t, values, turned), spikes(t, values, turned)
    for k, (name, is_position) in enumerate(zip(names, positions, strict=True)):
        rows = np.flatnonzero(leaps[:, k] if is_position else peaks[:, k])
        if not len(rows):
            continue
        row, at = int(rows[0]), places.of(rows).words()
        if is_position:
            size = values[row, k] - values[row - 1, k]
            times = f"{len(rows)} times, first " if len(rows) > 1 else ""
            what = f"column '{name}' jumps {times}by {size:.4g} from one row to the next and stays there: {at}"
            yield f"{what}; if its zero has moved there, cut the log into two"
        else:
            what = f"column '{name}' has {len(rows)} {plural(len(rows), 'spike')}, to {values[row, k]:.4g}: {at}"
            yield f"{what}; they count, so take these rows out if they are none of the motion"


def _in_order(t: Array, places: RowPlaces) -> tuple[np.ndarray, list[str]]:
    """(indices of the rows by increasing times, each time once; what was changed)"""
    notes = list[str]()
    order = np.arange(len(t))
    back = np.flatnonzero(np.diff(t) < 0.0) + 1
    if len(back):
        order = np.argsort(t, kind="stable")
        rows = [row if (odd := misplaced(t, row)) is None else odd for row in back.tolist()]
        where = places.of(np.array(rows)).words()
        times = f"{len(back)} {plural(len(back), 'time')}"
        notes.append(f"rows are sorted by their times, which go back {times}: {where}")
    new = np.concatenate([[True], np.diff(t[order]) >= CLOSEST]) if len(t) else np.zeros(0, dtype=bool)
    if repeated := int((~new).sum()):
        notes.append(f"{repeated} rows at times that are there already are left out")
    return order[new], notes
