"""The motion of a prescribed spherical joint or base: orientations at given times, in the rig or in a CSV file."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from cosim.core.errors import InputError, plural
from cosim.core.paths import check_file, locate
from cosim.core.types import Array, param, params
from cosim.mechanics.multibody.given_rotation import GivenRotation, Interpolation
from cosim.plugins.trajectories._piecewise import increasing
from cosim.rig.sections.directions import Orientation, of_unit_length

COLUMNS = ("t", "qx", "qy", "qz", "qw")


@params
class OrientationKeys:
    orientations: tuple[Orientation, ...] = param(unit="rad", default=())
    times: tuple[float, ...] = param(unit="s", min=0, default=())
    file: str | None = param(default=None, doc="CSV file with the columns t, qx, qy, qz, qw")
    interpolation: Interpolation = param(default="squad")

    def __post_init__(self) -> None:
        if (self.file is None) != bool(self.orientations):
            raise ValueError("give orientations and their times, or a file of both")
        if self.file is not None and self.times:
            raise ValueError("the file has the times; take out 'times'")
        if self.orientations:
            increasing(self.times, len(self.orientations), "orientations")

    def rotation(self, start: Array, folder: Path) -> GivenRotation:
        """The motion from a quaternion at t = 0; that of a file begins with its first row. Raises InputError, and
        ValueError for orientations half a turn apart."""
        if self.file is None:
            times, quaternions = [0.0, *self.times], [start, *map(np.array, self.orientations)]
        else:
            times, quaternions = read_orientations(locate(self.file, folder))
        try:
            return GivenRotation.through(times, quaternions, self.interpolation)
        except ValueError as error:
            raise InputError(str(error)) from None


def read_orientations(path: Path) -> tuple[list[float], list[Array]]:
    """(times, quaternions) of a CSV file with the columns of COLUMNS in any order; other ones are ignored.

    Raises InputError with the line of what is wrong."""
    times, quaternions = list[float](), list[Array]()
    try:
        check_file(path)
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = csv.reader(file)
            header = [name.strip() for name in next(rows, [])]
            if missing := [name for name in COLUMNS if name not in header]:
                raise InputError(f"{path}:1: column '{missing[0]}' is missing; the columns are {', '.join(COLUMNS)}")
            places = [header.index(name) for name in COLUMNS]
            for row in rows:
                if any(cell.strip() for cell in row):
                    t, *quaternion = _numbers(row, places, f"{path}:{rows.line_num}")
                    if times and t <= times[-1]:
                        what = f"the times must increase, and {t:g} follows {times[-1]:g}"
                        raise InputError(f"{path}:{rows.line_num}: {what}")
                    times.append(t)
                    quaternions.append(_checked(quaternion, f"{path}:{rows.line_num}"))
    except OSError as error:
        raise InputError(f"'{path}' cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"'{path}' is no CSV file: {error}") from None
    if len(times) < 2:
        raise InputError(f"{path}: has {len(times)} {plural(len(times), 'row')}; a motion needs two or more")
    if times[0] < 0.0:
        raise InputError(f"{path}: begins at {times[0]:g} s; the times are 0 or more")
    return times, quaternions


def _numbers(row: Sequence[str], places: Sequence[int], place: str) -> list[float]:
    try:
        found = [float(row[k]) for k in places]
    except (ValueError, IndexError):
        raise InputError(f"{place}: a cell is missing or no number") from None
    if not all(map(math.isfinite, found)):
        raise InputError(f"{place}: a number is not finite")
    return found


def _checked(quaternion: Sequence[float], place: str) -> Array:
    try:
        return np.array(of_unit_length(tuple(quaternion)))
    except ValueError as error:
        raise InputError(f"{place}: {error}") from None
