"""Spikes and steps of signals over time, which no motion has.

A spike leaves its neighbours for one or two rows and comes back. Its distance from the median of the seven rows around
it is more than ten times the fifth smallest of these seven distances (how far the joint moves there, and two may be of
the spike), and than the distance that 95 % of all rows keep (noise). A turn of a fast motion has twice the former at
most.

A step stays. From one row to the next the signal is at least twenty times as fast as in any of the ten intervals
before and behind, in which it moves, and goes twenty times as far as it typically does. A step between two rests is
wanted: square waves and stairs have it; so are steps that return with one size, which sawteeth have.
"""

from __future__ import annotations

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
