"""The motion of a prescribed spherical joint or base: orientations at given times, in the rig or in a file."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from cosim.core.errors import InputError, SourceLocation, plural
from cosim.core.paths import locate
from cosim.core.tables import FileTable, open_table
from cosim.core.tables.times import check_increasing, times_of
from cosim.core.types import Array, param, params
from cosim.mechanics.multibody.given_rotation import GivenRotation, Interpolation
from cosim.plugins.trajectories._piecewise import increasing
from cosim.rig.sections.directions import Orientation, of_unit_length

QUATERNION = ("qx", "qy", "qz", "qw")


@params
class OrientationKeys:
    orientations: tuple[Orientation, ...] = param(unit="rad", default=())
    times: tuple[float, ...] = param(unit="s", min=0, default=())
    file: str | None = param(default=None, doc="table with the columns t, qx, qy, qz, qw")
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
            path = locate(self.file, folder)
            if not path.exists():
                raise InputError(f"no such file '{self.file}'; it is relative to the rig's folder")
            times, quaternions = read_orientations(path)
        try:
            return GivenRotation.through(times, quaternions, self.interpolation)
        except ValueError as error:
            raise InputError(str(error)) from None


def read_orientations(path: Path) -> tuple[list[float], list[Array]]:
    """(times, quaternions) of a table with a column of times and those of QUATERNION in any order; others are ignored.

    Raises InputError with the line of what is wrong."""
    table = open_table(path)
    times, columns = times_of(table), [_component(table, name) for name in QUATERNION]
    rows = table.numbers(columns)
    t = times.seconds
    if len(t) < 2:
        raise InputError(f"has {len(t)} {plural(len(t), 'row')}; a motion needs two or more", table.place())
    check_increasing(table, t, rows.lines)
    if t[0] < 0.0:
        raise InputError(f"begins at {t[0]:g} s; the times are 0 or more", table.place(table.line_of(rows, 0)))
    quaternions = [_checked(row, table.place(table.line_of(rows, k))) for k, row in enumerate(rows.values.tolist())]
    return t.tolist(), quaternions


def _component(table: FileTable, name: str) -> int:
    """Of a column such as `qx`, or `/pose/orientation/x`."""
    ends = tuple(f"orientation{mark}{name[1]}" for mark in "/.")
    found = [k for k, column in enumerate(table.names) if column.endswith(ends)]
    return found[0] if len(found) == 1 and name not in table.names else table.index(name)


def _checked(quaternion: list[float], place: SourceLocation) -> Array:
    try:
        return np.array(of_unit_length(tuple(quaternion)))
    except ValueError as error:
        raise InputError(str(error), place) from None
