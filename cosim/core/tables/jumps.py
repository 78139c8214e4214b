"""Spikes and steps of signals over time, which no motion has.

A spike leaves its neighbours for one or two rows and comes back. Its distance from the median of the seven rows around
it is more than ten times the fifth smallest of these seven distances (how far the joint moves there, and two may be of
the spike), and than the distance that 95 % of all rows keep (noise). A turn of a fast motion has twice the former at
most.

A step stays. From one row to the next the signal is at least twenty times as fast as in any of the ten intervals
before and behind, in which it moves, and goes twenty times as far as it typically does. A step between two rests is
wanted: square waves and stairs have it; so are steps that return with one size, which sawteeth have.

What was planned has smaller faults, too, `displaced`: they are judged by second differences, which have no slope of the
motion. A step adds its size to one change between rows, which then leaves the range of the changes beside it; a bend
does not. Two of opposite sign enclose displaced rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cosim.core.tables.even_rows import LONG, typical_interval
from cosim.core.types import Array

AROUND = 7  # rows, in which a spike is seen
OTHERS = 4  # index of the distance, by size, that is of the motion
SPIKE = 10.0  # distances
NOISY = 0.05  # of the rows may keep larger distances than noise has
FEW = 2  # spikes of a signal that is at rest otherwise; more are its resolution
LEAST = 0.01  # rad, m or the unit of the signal: resolution of one that is at rest otherwise
WRAPPED = 4.0 * np.pi  # rad: an angle that goes farther to and fro does not jump by a turn
SHORTEST = 20  # rows: in fewer nothing can be found
DENSE = 0.1  # s between rows: a table with longer intervals has places to go to, far apart, and no motion
SIDE = 10  # intervals on each side of a step
STEP = 20.0  # times the speed beside it
MOVING = 1e-3  # rad/s or m/s
REST = 3.0  # changes beside a gap: what goes farther within it has moved there
PATTERN, ALIKE = 3, 0.1  # so many steps, whose sizes differ by so much of the largest, are wanted
LEAP = 8.0  # times the second differences: beyond the changes beside it
TYPICAL = 0.75  # of the second differences of a table are smaller than what is typical of it
PASSED_OVER = 2  # of the second differences around a change: the other end of displaced rows
EXACT = 1e-6  # of the range: smaller second differences are rounding
MOST_DISPLACED = 40  # rows: more are another part of the motion
BACK = 0.3  # of the larger step, by which the one back may differ


def are_dense(t: Array) -> bool:
    """Whether rows at these times (k,) [s] are samples of a motion."""
    return len(t) >= SHORTEST and float(np.median(np.diff(t))) <= DENSE


def spikes(t: Array, values: Array, angles: Array) -> np.ndarray:
    """bool (k, n): where signals (k, n) at increasing times (k,) have a spike; angles (n,): bool, which may jump by a
    turn and have none then."""
    found = np.zeros(values.shape, dtype=bool)
    if len(t) < SHORTEST:
        return found
    bounds = np.where(angles, WRAPPED, 0.0)
    wide = np.ptp(values, axis=0) > bounds
    found[:, wide] = _are_far(t, values[:, wide], bounds[wide])
    left = ~found.any(axis=1)
    smooth = np.unwrap(values[left][:, angles], axis=0)
    found[np.ix_(left, angles)] |= _are_far(t[left], smooth, np.zeros(smooth.shape[1]))
    return found


def _are_far(t: Array, values: Array, least: Array) -> np.ndarray:
    """bool (k, n): by more than `least` (n,), too."""
    found = np.zeros(values.shape, dtype=bool)
    pieces = [piece for piece in _pieces(t) if piece.stop - piece.start >= AROUND]
    for k, (column, bound) in enumerate(zip(values.T, least, strict=True)):
        distance, moved = np.zeros(len(t)), np.zeros(len(t))
        for piece in pieces:
            rows = np.pad(column[piece], AROUND // 2, mode="edge")  # no spike where a side is unknown
            windows = np.lib.stride_tricks.sliding_window_view(rows, AROUND)
            apart = np.abs(windows - np.median(windows, axis=1)[:, None])
            distance[piece] = apart[:, AROUND // 2]
            moved[piece] = np.partition(apart, OTHERS, axis=1)[:, OTHERS]
        usual = max(float(np.quantile(distance, 1.0 - NOISY)), _resolution(column, distance))
        found[:, k] = distance > np.maximum(SPIKE * np.maximum(moved, usual), bound)
    return found


def _resolution(values: Array, distance: Array) -> float:
    """Of rows (k,), the typical change from row to row where there is one: the increment of an encoder, or a motion;
    distance (k,): by which rows stand out."""
    changes = np.abs(np.diff(values))
    out = distance > 0.0
    if 0 < out.sum() <= FEW and not changes[~(out[1:] | out[:-1])].any():
        return LEAST
    return float(np.median(changes[changes > 0.0])) if changes.any() else 0.0


def steps(t: Array, values: Array, angles: Array) -> np.ndarray:
    """bool (k, n): where signals (k, n) at increasing times (k,) have made a step from the row above; angles (n,):
    bool, which may jump by a turn."""
    found = np.zeros(values.shape, dtype=bool)
    if not are_dense(t):
        return found
    smooth = values.copy()
    smooth[:, angles] = np.unwrap(values[:, angles], axis=0)
    for k, column in enumerate(smooth.T):
        for piece in _pieces(t):
            if piece.stop - piece.start > SIDE + 1:
                found[piece.start + 1 : piece.stop, k] = _leaps(np.diff(t[piece]), np.diff(column[piece]))
        rows = np.flatnonzero(found[:, k])
        sizes = np.abs(column[rows] - column[rows - 1])
        typical = np.abs(np.diff(column))
        small = sizes < STEP * float(np.median(typical[typical > 0.0], axis=0)) if len(rows) else sizes < 0.0
        wanted = len(rows) >= PATTERN and np.ptp(sizes) <= ALIKE * sizes.max()
        found[rows[small | wanted], k] = False
    return found


def _leaps(intervals: Array, changes: Array) -> np.ndarray:
    """bool (k,): whether a signal changes within an interval much faster than within those beside it."""
    speeds = np.abs(changes) / intervals
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(speeds, SIDE), 2 * SIDE + 1)
    before, behind = windows[:, :SIDE].max(axis=1), windows[:, SIDE + 1 :].max(axis=1)
    before[0], behind[-1] = behind[0], before[-1]
    moves = np.minimum(before, behind) > MOVING
    return moves & (speeds >= STEP * np.maximum(before, behind))


class Displaced(NamedTuple):
    """Rows from `first` to before `end` that are off by `size`; end: None where the rows behind stay with them."""

    first: int
    end: int | None
    size: float


def displaced(t: Array, values: Array) -> list[Displaced]:
    """Of samples (k,) of a planned motion at increasing times (k,), angles unwrapped."""
    if not are_dense(t):
        return []
    leaps = list[tuple[int, float]]()
    typical = _typical_bend(t, values)
    for piece in _pieces(t):
        if piece.stop - piece.start > SIDE + 1:
            sizes = _beyond(np.diff(t[piece]), np.diff(values[piece]), typical)
            leaps += [(piece.start + 1 + int(k), float(sizes[k])) for k in np.flatnonzero(sizes)]
    found = list[Displaced]()
    while leaps:
        (row, size), *leaps = leaps
        back = leaps and leaps[0][0] - row <= MOST_DISPLACED and abs(size + leaps[0][1]) <= BACK * abs(size)
        found.append(Displaced(row, leaps.pop(0)[0] if back else None, size))
    return [each for each in found if not _is_wanted(each, found)]


def _typical_bend(t: Array, values: Array) -> float:
    """Of second differences that are none of rounding."""
    bends = np.abs(np.diff(np.diff(values) / np.diff(t))) * float(np.median(np.diff(t)))
    rounding = EXACT * float(np.ptp(values))
    bends = bends[bends > rounding]
    return float(np.quantile(bends, TYPICAL)) if len(bends) else rounding


def _beyond(intervals: Array, changes: Array, typical: float) -> Array:
    """(k,): by how much each change leaves the range of those beside it; 0 where that is no more than usual, or where
    the signal rests on both sides."""
    speeds = changes / intervals
    bends = np.abs(np.diff(speeds)) * np.minimum(intervals[1:], intervals[:-1])
    low, high = np.minimum(speeds[:-2], speeds[2:]), np.maximum(speeds[:-2], speeds[2:])
    out = np.zeros(len(changes))
    out[1:-1] = (speeds[1:-1] - np.clip(speeds[1:-1], low, high)) * intervals[1:-1]
    around = np.lib.stride_tricks.sliding_window_view(
        np.pad(bends, SIDE), 2 * SIDE
    )  # of change k: k - 1, k are its own
    others = np.delete(around, [SIDE - 1, SIDE], axis=1)[: len(changes)]
    usual = np.maximum(np.partition(others, -1 - PASSED_OVER, axis=1)[:, -1 - PASSED_OVER], typical)
    sides = np.lib.stride_tricks.sliding_window_view(np.pad(np.abs(speeds), SIDE, mode="edge"), 2 * SIDE + 1)
    moves = np.maximum(np.median(sides[:, :SIDE], axis=1), np.median(sides[:, SIDE + 1 :], axis=1)) > MOVING
    return np.where(moves & (np.abs(out) > LEAP * usual), out, 0.0)


def _is_wanted(leap: Displaced, all_leaps: list[Displaced]) -> bool:
    """Whether it returns with one size, as sawteeth and square waves have it; single rows do not."""
    if leap.end is not None and leap.end - leap.first <= FEW:
        return False
    sizes = np.abs([each.size for each in all_leaps if (each.end is None) == (leap.end is None)])
    return len(sizes) >= PATTERN and bool(np.ptp(sizes) <= ALIKE * sizes.max())


def bridged(t: Array, values: Array) -> np.ndarray:
    """bool (k, n): rows behind a gap between samples (k, n) at increasing times (k,), within which a signal goes much
    farther than within any of the intervals beside it: not a rest without rows."""
    found = np.zeros(values.shape, dtype=bool)
    if are_dense(t):
        changes = np.abs(np.diff(values, axis=0))
        for piece in _pieces(t)[1:]:
            k = piece.start - 1  # the interval of the gap
            beside = np.concatenate([changes[max(0, k - SIDE) : k], changes[k + 1 : k + 1 + SIDE]])
            found[piece.start] = changes[k] > REST * beside.max(axis=0, initial=0.0)
    return found


def _pieces(t: Array) -> list[slice]:
    """Rows without a gap between them."""
    intervals = np.diff(t)
    ends = np.flatnonzero(intervals > LONG * typical_interval(intervals)) + 1
    return [slice(a, b) for a, b in zip([0, *ends], [*ends, len(t)], strict=True)]
