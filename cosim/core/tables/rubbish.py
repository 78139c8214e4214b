"""Rows of a log that are rubbish: lines that were cut off, cells without a finite number, absurd numbers, and spikes.

An absurd number is larger than any joint has (1e9 in SI), or a time far from all others. A spike is a position that
leaves its neighbours for one or two rows, farther than any motion does. Its distance from the median of
the seven rows around it is more than ten times the fifth smallest of these seven distances (how far the joint moves
there, and two may be of the spike), and than the distance that 95 % of all rows keep (noise). A turn of a fast motion
has twice the former at most. A step is no spike, and velocities and efforts may jump.

Such rows are left out and reported with their lines. Where they are many, the log is refused: then it is no rubbish
but another kind of table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from cosim.core.errors import InputError, plural
from cosim.core.tables.even_rows import LONG, typical_interval
from cosim.core.tables.table import FileTable, TableRows
from cosim.core.types import Array
from cosim.core.units import show_percent

MOST_RUBBISH = 0.05  # of the rows
ABSURD = 1e9  # SI: no joint has such a position, velocity, effort or current
FAR_IN_TIME = 1e6  # middle halves of all times, from their median
AROUND = 7  # rows, in which a spike is seen
OTHERS = 4  # index of the distance, by size, that is of the motion
SPIKE = 10.0  # distances
WRAPPED = 4.0 * np.pi  # rad: an angle that goes farther to and fro does not jump by a turn
SHORTEST = 20  # rows: in fewer no spike can be found
MOST_RANGES = 8  # of lines that a message names


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
        numbers = np.sort(self.numbers)
        runs = np.split(numbers, np.flatnonzero(np.diff(numbers) > 1) + 1)
        parts = [f"{run[0]}" if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs[:MOST_RANGES]]
        return f"{plural(len(numbers), self.word)} {', '.join(parts)}" + (" …" if len(runs) > MOST_RANGES else "")

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


def spikes(t: Array, values: Array, angles: Array) -> np.ndarray:
    """bool (k,): rows with a spike in positions (k, n) at increasing times (k,); angles (n,): bool, which may jump by
    a turn and are no spike then."""
    if len(t) < SHORTEST:
        return np.zeros(len(t), dtype=bool)
    bounds = np.where(angles, WRAPPED, 0.0)
    wide = np.ptp(values, axis=0) > bounds
    far = _is_far(t, values[:, wide], bounds[wide])
    smooth = np.unwrap(values[~far][:, angles], axis=0)
    far[~far] = _is_far(t[~far], smooth, np.zeros(smooth.shape[1]))
    return far


def _is_far(t: Array, values: Array, least: Array) -> np.ndarray:
    """bool (k,): by more than `least` (n,), too."""
    found = np.zeros(len(t), dtype=bool)
    pieces = [piece for piece in _pieces(t) if piece.stop - piece.start >= AROUND]
    for column, bound in zip(values.T, least, strict=True):
        distance, moved = np.zeros(len(t)), np.zeros(len(t))
        for piece in pieces:
            rows = np.pad(column[piece], AROUND // 2, mode="edge")  # no spike where a side is unknown
            windows = np.lib.stride_tricks.sliding_window_view(rows, AROUND)
            apart = np.abs(windows - np.median(windows, axis=1)[:, None])
            distance[piece] = apart[:, AROUND // 2]
            moved[piece] = np.partition(apart, OTHERS, axis=1)[:, OTHERS]
        usual = max(float(np.quantile(distance, 1.0 - MOST_RUBBISH)), _resolution(column))
        found |= distance > np.maximum(SPIKE * np.maximum(moved, usual), bound)
    return found


def _pieces(t: Array) -> list[slice]:
    """Rows without a gap between them."""
    steps = np.diff(t)
    ends = np.flatnonzero(steps > LONG * typical_interval(steps)) + 1
    return [slice(a, b) for a, b in zip([0, *ends], [*ends, len(t)], strict=True)]


def _resolution(values: Array) -> float:
    """Of rows (k,), the typical change from row to row where there is one: the increment of an encoder, or a motion."""
    changes = np.abs(np.diff(values))
    return float(np.median(changes[changes > 0.0])) if changes.any() else 0.0


def _far(t: Array) -> np.ndarray:
    """bool (k,): times that are far from all others."""
    known = t[np.isfinite(t)]
    if not len(known):
        return np.zeros(len(t), dtype=bool)
    low, middle, high = np.quantile(known, [0.25, 0.5, 0.75])
    with np.errstate(over="ignore", invalid="ignore"):
        return (np.abs(t - middle) > FAR_IN_TIME * (high - low)) & (high > low)
