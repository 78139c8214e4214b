"""What is odd about the positions in a table: another unit, angles that wrap, spikes and steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from cosim.core.errors import listed
from cosim.core.tables.joint_table import JointTable
from cosim.core.tables.jumps import Displaced, are_dense, bridged, displaced, spikes, steps
from cosim.core.tables.quantities import TIME
from cosim.core.types import Array
from cosim.core.units import TURN

WRAP = 0.75 * TURN  # rad between two rows: what goes so far has probably jumped from one end of the circle to the other
SAME = 1e-6  # rad: in which a circle ends
ALONE = 20.0  # times as long as all other rows take: a wrong time, and no rest
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
    yield from _ends(table)


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
    t, column, turns = table.t, positions[:, None], np.array([unit == "rad"])
    found = [Displaced(int(row), int(row) + 1, 0.0) for row in np.flatnonzero(spikes(t, column, turns)[:, 0])]
    found += [Displaced(int(row), None, 0.0) for row in np.flatnonzero(steps(t, column, turns)[:, 0])]
    known = {near for fault in found for near in range(fault.first - 1, fault.first + 3)}
    small = displaced(t, np.unwrap(positions) if unit == "rad" else positions)
    found += [fault for fault in small if not {fault.first, fault.end} & known]
    for fault in sorted(found, key=lambda fault: fault.first)[:MOST_JUMPS]:
        place = table.place(fault.first, table.columns[k])
        row = "" if len(table.lines) else f"row {fault.first + 1}: "
        yield f"{place}: {row}joint '{joint}' {_words(table, positions, fault, unit)}"
    if (more := len(found) - MOST_JUMPS) > 0:
        yield f"{table.path}: joint '{joint}' has {more} more such {'row' if more == 1 else 'rows'}"


def _words(table: JointTable, positions: Array, fault: Displaced, unit: str | None) -> str:
    row, end = fault.first, fault.end
    here, change = _shown(positions[row], unit), _shown(positions[row] - positions[row - 1], unit)
    if end is None:
        what = f"jumps by {change} to {here} within {table.t[row] - table.t[row - 1]:.3g} s, much faster than beside it"
        return f"{what}, and stays there; correct the rows before or behind it, or give them the time for the way"
    if end == row + 1:
        sides = positions[max(0, row - 3) : row + 4]
        around = float(np.median(sides)) if not fault.size else float(positions[row]) - fault.size
        what = f"is at {here} in a row whose neighbours are at about {_shown(around, unit)}, a spike"
        return f"{what}; take the row out, or correct it"
    what = f"is off by about {_shown(fault.size, unit)} from here to {table.row(end - 1)}, {end - row} rows, a block"
    return f"{what} between two jumps; take these rows out, or correct them"


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


def _ends(table: JointTable) -> Iterator[str]:
    """Times before the run, and one at an end that is far from all others, of samples of a motion."""
    t = table.t
    if t[0] < 0.0:
        what = f"the table begins at {t[0]:.6g} s, and the run at 0 s; what is before is left out"
        yield f"{table.place(0, TIME)}: {what}; begin its times at 0"
    if not are_dense(t):
        return
    for row, beside, rest in ((0, 1, t[-1] - t[1]), (len(t) - 1, len(t) - 2, t[-2] - t[0])):
        if abs(t[row] - t[beside]) > ALONE * rest:
            at = "" if len(table.lines) else f"row {row + 1}: "
            which, others = ("first", "next") if row == 0 else ("last", "one above")
            what = f"the {which} time, {t[row]:.6g} s, is {abs(t[row] - t[beside]):.4g} s from the {others}"
            yield f"{table.place(row, TIME)}: {at}{what}, and all others take {rest:.4g} s; correct it"


def _shown(value: float, unit: str | None) -> str:
    return f"{value:.4g} {unit or 'rad or m'}"
