"""Cubic polynomials through the rows of a table that start and end at rest.

The columns are the time and the position of each joint, in any dialect that `cosim.core.tables` reads; other columns
are ignored.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from cosim.core.errors import InputError, plural
from cosim.core.tables.joint_table import JointTable, TableFile, read_joint_table
from cosim.core.types import Array, Numeric, param, params
from cosim.plugins.trajectories._odd_rows import odd_rows
from cosim.plugins.trajectories._piecewise import PiecewisePolynomial
from cosim.plugins.trajectories._turns import Wrap, along, wrap_key

MOST_POSITIONS = 500_000  # of a file; they become constants of the machine code, which is built in about 10 s
SAME = 1e-6  # rad or m: a row that is so near to where the rig starts is there


@params
class Params(TableFile):
    between: Literal["spline", "monotone", "rest"] = param(
        default="spline",
        doc="spline: continuous acceleration; monotone: never beyond two rows; rest: stops at each row",
    )
    wrap: Wrap = wrap_key()
    start: Literal["blend", "jump"] = param(
        default="blend", doc="where the rig starts elsewhere than the first row: blend into it, as a real motor does"
    )


@dataclass(frozen=True, eq=False)
class Waypoints:
    """The motion through the rows. blends: whether a rig that starts elsewhere blends into it; doubts: see `load`;
    elsewhere: where it begins, if that is not where the rig starts."""

    motion: PiecewisePolynomial
    blends: bool
    doubts: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()

    @property
    def end(self) -> float:
        return self.motion.end

    @property
    def breaks(self) -> Array:
        return self.motion.breaks

    def sample(self, t: Numeric) -> dict[str, Numeric]:
        return self.motion.sample(t)


def load(params: Params, joints: tuple[str, ...], folder: Path, start: Array) -> Waypoints:
    """What was guessed and what is odd in the table is in its `doubts`. Raises InputError, or InputErrors with one for
    each wrong cell, for an invalid file."""
    table = read_waypoints(params, folder, joints)
    positions = np.array(along(start, table.values, params.wrap)[1:])
    motion = PiecewisePolynomial.of(table.t, _coefficients(table.t, positions, params.between), "waypoints")
    doubts = (*(f"{table.path}: {note}" for note in table.notes), *odd_rows(table, positions, joints, params.dof_unit))
    elsewhere = tuple(_first_row(table, positions, joints, start, params.start))
    return Waypoints(motion, params.start == "blend", doubts, elsewhere)


def read_waypoints(given: TableFile, folder: Path, joints: tuple[str, ...], quantity: str = "position") -> JointTable:
    """Two rows or more, and not too many. Raises InputError, InputErrors."""
    table = read_joint_table(given, folder, joints, quantity)
    rows, most = len(table.t), MOST_POSITIONS // len(joints)
    if rows > most:
        what = f"{rows:,} rows for {len(joints)} {plural(len(joints), 'joint')} are too many; keep {most:,} or fewer"
        raise InputError(what, table.place(most))
    if rows < 2:
        raise InputError(f"two waypoints or more are needed, got {rows}", table.place(0) if rows else str(table.path))
    return table


def _first_row(table: JointTable, positions: Array, joints: tuple[str, ...], start: Array, how: str) -> Iterator[str]:
    """Where the first row is not where the rig starts."""
    distance = np.abs(positions[0] - start)
    if (far := int(np.sum(distance > SAME))) == 0:
        return
    k = int(np.argmax(distance))
    what = f"the rig starts joint '{joints[k]}' at {start[k]:.6g}, the table begins at {positions[0, k]:.6g}"
    others = f", and {far - 1} {plural(far - 1, 'other')} elsewhere too" if far > 1 else ""
    way = "blends into it" if how == "blend" else "jumps there"
    fix = f"start there by joints.{joints[k]}.initial.position, or begin the table where the rig starts"
    yield f"{table.place(0)}: {what}{others}: the reference {way}; {fix}"


def _coefficients(times: Array, positions: Array, between: str) -> Array:
    """(4, m - 1, n): coefficients of the powers 3, 2, 1, 0 of the time since the start of each piece.

    monotone: the slopes of Fritsch and Butland, SIAM J. Sci. Stat. Comput. 5 (1984), 300, and 0 at both ends.
    """
    from scipy.interpolate import CubicHermiteSpline, CubicSpline, PchipInterpolator

    if between == "spline":
        return CubicSpline(times, positions, bc_type="clamped").c
    slopes = np.zeros_like(positions)
    if between == "monotone":
        slopes[1:-1] = PchipInterpolator(times, positions).derivative()(times)[1:-1]
    return CubicHermiteSpline(times, positions, slopes).c
