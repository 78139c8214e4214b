"""Rows of a log that are rubbish: lines that were cut off, cells without a finite number, absurd numbers, and spikes.

An absurd number is larger than any joint has (1e9 in SI), or a time far from all others. For spikes see
`cosim.core.tables.jumps`; velocities and efforts may jump.

Such rows are left out and reported with their lines. Where they are many, the log is refused: then it is no rubbish
but another kind of table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from cosim.core.errors import InputError, plural
from cosim.core.tables.row_ranges import row_ranges
from cosim.core.tables.table import FileTable, TableRows
from cosim.core.types import Array
from cosim.core.units import show_percent

MOST_RUBBISH = 0.05  # of the rows
ABSURD = 1e9  # SI: no joint has such a position, velocity, effort or current
FAR_IN_TIME = 1e6  # middle halves of all times, from their median


class RowPlaces(NamedTuple):
    """Where rows are in a file. numbers (k,): of lines, or of rows of a file without lines; word: `line` or `row`."""

    numbers: np.ndarray
    word: str

    @classmethod
    def in_file(cls, rows: TableRows) -> RowPlaces:
        return cls(rows.lines, "line") if len(rows.lines) else cls(np.arange(1, len(rows.values) + 1), "row")

    def of(self, rows: np.ndarray) -> RowPlaces:
        """Of some of the rows, by indices or a mask."""
        return self._replace(numbers=self.numbers[rows])

    def row(self, k: int) -> str:
        """`line 12`"""
        return f"{self.word} {self.numbers[k]}"

    def words(self) -> str:
        """`lines 2 to 9, 14`"""
        return f"{plural(len(self.numbers), self.word)} {row_ranges(self.numbers)}"

    def left_out(self, what: str) -> str:
        """The note that these rows were left out."""
        n = len(self.numbers)
        return f"{n} {plural(n, 'row')} {what} {'is' if n == 1 else 'are'} left out: {self.words()}"


class SoundRows(NamedTuple):
    """table: with the sound rows alone; values (k, n): of its columns, as they are written; places: of the rows; notes:
    what was left out."""

    table: FileTable
    values: Array
    places: RowPlaces
    notes: tuple[str, ...]


def sound_rows(table: FileTable, columns: Sequence[int], factors: Array, times: Sequence[int]) -> SoundRows:
    """The rows with a finite number in all these columns, none absurd. factors (n,): to SI; times: columns of times
    that are numbers. Raises InputErrors for text among numbers, and where too many rows are none."""
    n = len(columns)
    found = table.read([*columns, *times])
    broken = np.logical_not(np.isfinite(found.values).all(axis=1))
    absurd = np.zeros_like(broken)
    with np.errstate(invalid="ignore", over="ignore"):
        absurd |= (np.abs(found.values[:, :n] * factors) > ABSURD).any(axis=1)
    for column in found.values[:, n:].T:
        absurd |= _far(column)
    absurd &= ~broken
    most = MOST_RUBBISH * len(found.values)
    if any(wrong.column for wrong in found.wrong) or broken.sum() > most:
        table.numbers([*columns, *times])  # raises, with each line
    bad, places, values = broken | absurd, RowPlaces.in_file(found), found.values[:, :n]
    if not bad.any():
        return SoundRows(table, values, places, ())
    if bad.sum() > most:
        share = f"{show_percent(float(bad.mean()))} of the rows, {show_percent(MOST_RUBBISH)} may be"
        what = f"numbers above {ABSURD:g} in SI, or times far from all others, are in {share}: {places.of(bad).words()}"
        raise InputError(f"{what}; check columns and units", table.place())
    causes = ((broken, "without finite numbers or cut off"), (absurd, "with absurd numbers"))
    notes = tuple(places.of(which).left_out(what) for which, what in causes if which.any())
    return SoundRows(table.only(np.flatnonzero(~bad)), values[~bad], places.of(~bad), notes)


def _far(t: Array) -> np.ndarray:
    """bool (k,): times that are far from all others."""
    known = t[np.isfinite(t)]
    if not len(known):
        return np.zeros(len(t), dtype=bool)
    low, middle, high = np.quantile(known, [0.25, 0.5, 0.75])
    with np.errstate(over="ignore", invalid="ignore"):
        return (np.abs(t - middle) > FAR_IN_TIME * (high - low)) & (high > low)
