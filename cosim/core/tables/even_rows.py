"""Rows equally far apart, out of rows that are not: means of what was measured over equal intervals of time.

Between two rows a signal is taken as a straight line. The mean of these lines over an interval is exact for any rows,
and weights each by the time for which it stands. An interval is two steps of the rows, so that each has rows of its
own; the step is the interval within which half of the recorded time lies, the median for a row at a random time.

A mean over T passes sin(π f T) / (π f T) of a frequency f: −3 dB at 0.443 / T. All signals pass alike.

An interval of more than four steps is a gap: a mean lies in it that has no row. Nothing is known of what is there, so
gaps are given beside the rows, and what needs the motion there leaves it out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from cosim.core.errors import InputError, plural
from cosim.core.types import Array
from cosim.core.units import show_percent

JITTER = 1e-3  # of intervals between rows that are equally far apart, as a fraction of their median
STEPS_PER_MEAN = 2.0
PAUSE = 20.0  # medians: longer intervals are gaps and no part of the step, shorter ones may be pauses between bursts
LONG = 4.0  # steps: in a longer interval lies a mean without a row
MOST_MISSING = 0.2  # of the rows
PASS_BAND = 0.443  # of the rate of means: where they pass half of the power


class EvenRows(NamedTuple):
    """t (k,) [s], equally far apart; values (k, n); window [s]: over which they are means, 0 for rows as they were;
    gaps: (begin, end) [s] between which nothing is known; notes: what was made of uneven rows."""

    t: Array
    values: Array
    window: float
    gaps: tuple[tuple[float, float], ...]
    notes: tuple[str, ...]


def is_even(t: Array) -> bool:
    intervals = np.diff(t)
    step = np.median(intervals)
    return bool((np.abs(intervals - step) <= JITTER * step).all())


def even_rows(t: Array, values: Array, row: Callable[[int], str], place: str) -> EvenRows:
    """Of rows (k, n) at increasing times (k,) [s], k ≥ 2; even ones stay as they are. row: the words for a row, such as
    `line 12`; place: of messages. Raises InputError where too many rows are missing."""
    if is_even(t):
        return EvenRows(t, values, 0.0, (), ())
    intervals = np.diff(t)
    step = typical_interval(intervals)
    after = np.flatnonzero(intervals > LONG * step)
    missing = float(np.sum(intervals[after] - step) / (t[-1] - t[0]))
    if missing > MOST_MISSING:
        what = f"{show_percent(missing)} of the rows are missing, {show_percent(MOST_MISSING)} may be"
        what += f": they are {step:.4g} s apart, but {_largest(t, after, row)}"
        raise InputError(f"{what}{_others(len(after) - 1)}; record all rows, or cut the file there", place)
    window = float(f"{STEPS_PER_MEAN * step:.6g}")
    edges = t[0] + window * np.arange(int((t[-1] - t[0]) / window * (1.0 + 1e-12)) + 1)
    gaps = tuple((float(t[k]), float(t[k + 1])) for k in after)
    notes = [_words(t, intervals, step, window)]
    if len(after):
        said = f"{len(after)} {plural(len(after), 'gap')} of more than {LONG * step:.3g} s, {show_percent(missing)} of"
        notes.append(f"{said} the rows, the largest {_largest(t, after, row)}; rows near a gap do not count")
    return EvenRows(0.5 * (edges[:-1] + edges[1:]), means_between(edges, t, values), window, gaps, tuple(notes))


def typical_interval(intervals: Array) -> float:
    """[s], within which half of the recorded time lies, gaps left out; at least the median."""
    ordered = np.sort(intervals)
    ordered = ordered[ordered <= PAUSE * np.median(ordered)]
    passed = np.cumsum(ordered)
    return float(ordered[np.searchsorted(passed, 0.5 * passed[-1])])


def means_between(edges: Array, t: Array, values: Array) -> Array:
    """(m, n) means between successive edges (m + 1,), within the times (k,), of straight lines through rows (k, n)."""
    steps = np.diff(t)[:, None]
    begin = values[0]  # what is constant has no rounding
    above = values - begin
    areas = np.cumsum(0.5 * steps * (above[1:] + above[:-1]), axis=0)
    area = np.concatenate([np.zeros((1, values.shape[1])), areas])
    k = np.clip(np.searchsorted(t, edges, side="right") - 1, 0, len(t) - 2)
    after = (np.minimum(edges, t[-1]) - t[k])[:, None]
    slope = (above[k + 1] - above[k]) / steps[k]
    total = area[k] + after * (above[k] + 0.5 * after * slope)
    return begin + np.diff(total, axis=0) / np.diff(edges)[:, None]


def _words(t: Array, intervals: Array, step: float, window: float) -> str:
    low, high = (1e3 * float(v) for v in np.percentile(intervals, [1.0, 99.0]))
    rate = len(intervals) / float(t[-1] - t[0])
    what = f"rows are uneven, {rate:.4g} Hz in the mean with {low:.3g} … {high:.3g} ms between them (1 … 99 %)"
    new = f"means over {1e3 * window:.4g} ms are taken, {1.0 / window:.4g} Hz"
    return f"{what}; {new}, with a pass band of {PASS_BAND / window:.3g} Hz"


def _largest(t: Array, after: Array, row: Callable[[int], str]) -> str:
    k = int(after[np.argmax(t[after + 1] - t[after])])
    return f"{t[k + 1] - t[k]:.4g} s after t = {t[k]:.6g} s ({row(k)})"


def _others(count: int) -> str:
    return f", and {count} other {plural(count, 'gap')}" if count else ""
