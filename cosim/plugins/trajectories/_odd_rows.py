"""What is odd about the positions in a table: another unit, angles that wrap, spikes and steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from cosim.core.errors import listed
from cosim.core.tables.joint_table import JointTable
from cosim.core.tables.jumps import are_dense, bridged, spikes, steps
from cosim.core.types import Array
from cosim.core.units import TURN

WRAP = 0.75 * TURN  # rad between two rows: what goes so far has probably jumped from one end of the circle to the other
SAME = 1e-6  # rad: in which a circle ends
MOST_JUMPS = 3  # of a joint that are named


class _Suspicion(NamedTuple):
    """What goes farther and faster than this, SI, may be in another unit than the joint's."""

    far: float
    fast: float
    joint_unit: str
    other: str


_MAY_BE = {
    "rad": _Suspicion(2.0 * TURN, TURN, "rad", "deg"),
    "m": _Suspicion(2.0, 5.0, "m", "mm"),
    None: _Suspicion(2.0 * TURN, TURN, "rad or m", "deg or mm"),
}


def odd_rows(
    table: JointTable, positions: Array, joints: Sequence[str], dof_unit: Callable[[str], str | None]
) -> Iterator[str]:
    """positions (k, n): of the reference; dof_unit: rad or m of a joint, None where unknown."""
    for k, joint in enumerate(joints):
        unit = dof_unit(joint)
        if said := _of_another_unit(table, k, joint, unit) or _wraps(table, positions[:, k], joint, unit):
            yield said
        else:
            yield from _jumps(table, positions[:, k], k, joint, unit)
    yield from _gaps(table, positions, joints)


def _of_another_unit(table: JointTable, k: int, joint: str, unit: str | None) -> str:
    """Empty where the unit is given, or where a joint may go so."""
    may_be, column = _MAY_BE[unit], table.values[:, k]
    far, fast = np.abs(column).max(), _speed(table.t, column)
    if table.units[k] is not None or far <= may_be.far or fast <= may_be.fast:
        return ""
    farthest = column[np.argmax(np.abs(column))]
    what = f"joint '{joint}' goes to {farthest:.4g} {may_be.joint_unit}, up to {fast:.4g} per second"
    fix = f"if column '{table.columns[k]}' is in {may_be.other}"
    return f"{table.path}: {what}; {fix}, give units: {{{joint}: {may_be.other.partition(' ')[0]}}}"


def _speed(t: Array, positions: Array) -> float:
    """The largest one; of samples of a motion the largest that it keeps for three rows, so that no jump counts."""
    speeds = np.abs(np.diff(positions) / np.diff(t))
    if not are_dense(t):
        return float(speeds.max())
    return float(np.lib.stride_tricks.sliding_window_view(speeds, 3).min(axis=1).max())


def _wraps(table: JointTable, positions: Array, joint: str, unit: str | None) -> str:
    """Of a joint that may turn round, and whose table has angles of one turn; else empty."""
    changes = np.diff(positions)
    row = int(np.argmax(np.abs(changes)))
    change = float(changes[row])
    if unit == "m" or not WRAP < abs(change) <= TURN + SAME or np.ptp(positions) > TURN + SAME:
        return ""
    short = math.degrees(math.remainder(change, TURN))
    what = f"joint '{joint}' turns by {math.degrees(change):.4g}° from the row above"
    return f"{table.place(row + 1)}: {what}, {short:.3g}° the shorter way; if angles wrap, give wrap: shortest"


def _jumps(table: JointTable, positions: Array, k: int, joint: str, unit: str | None) -> Iterator[str]:
    """Spikes and steps of a table whose rows are samples of a motion."""
    if not are_dense(table.t):
        return
    column, turns = positions[:, None], np.array([unit == "rad"])
    peaks, leaps = (np.flatnonzero(find(table.t, column, turns)[:, 0]) for find in (spikes, steps))
    jumps = sorted([*((int(row), True) for row in peaks), *((int(row), False) for row in leaps)])
    for row, comes_back in jumps[:MOST_JUMPS]:
        place, column_of = table.place(row, table.columns[k]), "" if len(table.lines) else f"row {row + 1}: "
        here = _shown(positions[row], unit)
        if comes_back:
            around = _shown(float(np.median(positions[max(0, row - 3) : row + 4])), unit)
            what = f"joint '{joint}' is at {here} in a row whose neighbours are at about {around}, a spike"
            fix = "take the row out, or correct it"
        else:
            what = f"joint '{joint}' jumps by {_shown(positions[row] - positions[row - 1], unit)} to {here} within"
            what += f" {table.t[row] - table.t[row - 1]:.3g} s, much faster than beside it, and stays there"
            fix = "correct the rows before or behind it, or give them the time for the way"
        yield f"{place}: {column_of}{what}; {fix}"
    if (more := len(jumps) - MOST_JUMPS) > 0:
        yield f"{table.path}: joint '{joint}' has {more} more such {'row' if more == 1 else 'rows'}"


def _gaps(table: JointTable, positions: Array, joints: Sequence[str]) -> Iterator[str]:
    """Samples of a motion that are missing."""
    found = bridged(table.t, positions)
    rows = np.flatnonzero(found.any(axis=1))
    if not len(rows):
        return
    row, apart = rows[0], float(np.median(np.diff(table.t)))
    at = "" if len(table.lines) else f"row {row + 1}: "
    what = (
        f"no row within {table.t[row] - table.t[row - 1]:.4g} s before this one, where others are {apart:.3g} s apart"
    )
    moved = listed([joint for joint, moves in zip(joints, found[row], strict=True) if moves])
    others = f", nor at {len(rows) - 1} other places" if len(rows) > 1 else ""
    yield f"{table.place(row)}: {at}{what}{others}; what {moved} does there is made up, so add the rows"


def _shown(value: float, unit: str | None) -> str:
    return f"{value:.4g} {unit or 'rad or m'}"
