"""Two runs side by side: what differs in their settings, their summaries and their signals."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cosim.core.errors import InputError
from cosim.output.signal_store import BLOCK
from cosim.rig.run.run import Run, load_run

# of the summary: what every run has anew
VOLATILE = ("speed", "timing", "drivers", "stream")

FOLLOWED = ("/reference_position", "/position")  # of these signals, the first that both runs have
LONGEST_SHIFT = 0.5  # of the shorter run


@dataclass(frozen=True)
class SignalDifference:
    """Of a signal of both runs, over the time that both have: rms and largest absolute difference b − a, and the time
    [s] of the largest."""

    unit: str
    rms: float
    max: float
    t: float


@dataclass(frozen=True)
class Comparison:
    """Two runs compared. changed: field of the summary, such as `joints.elbow.error_rms`, or `parameters.arm.kp` -> its
    values in a and b, None where there is none; signals: in both, by name; only_a, only_b: signals of one run;
    end: of the time [s] that both have; shift: the time t of a is t + shift of b [s]."""

    a: Run
    b: Run
    changed: Mapping[str, tuple[Any, Any]]
    signals: Mapping[str, SignalDifference]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    end: float
    shift: float = 0.0

    @property
    def identical(self) -> bool:
        """Whether no signal differs, to the bit."""
        same = not self.only_a and not self.only_b and len(self.a.t) == len(self.b.t)
        return same and all(difference.max == 0.0 for difference in self.signals.values())

    def __repr__(self) -> str:
        differing = sum(difference.max != 0.0 for difference in self.signals.values())
        return f"<Comparison {self.a.rig.name}, {self.b.rig.name}: {differing} of {len(self.signals)} signals differ>"


def compare(a: Run | str | Path, b: Run | str | Path, shift: float = 0.0) -> Comparison:
    """Compare two runs, or files of runs (see `load_run`). Where their ticks have different times, b is interpolated
    linearly at the times of a, but not across a gap of a recording: these times are left out.

    shift: the time t of a is t + shift of b [s], see `alignment_of`.
    Raises InputError for files that hold no run and for runs without a common joint or a common time.
    """
    a, b = (load_run(run) if isinstance(run, str | Path) else run for run in (a, b))
    for name, run in (("a", a), ("b", b)):
        if not len(run.t):
            raise InputError(f"{name} has no tick; compare runs that have some", "compare")
    check_joints(a, b)
    end = min(float(a.t[-1]), float(b.t[-1]) - shift)
    rows = _common_rows(a, b, end, shift)
    if not rows:
        spans = ", ".join(f"{name} is from {run.t[0]:g} to {run.t[-1]:g} s" for name, run in (("a", a), ("b", b)))
        raise InputError(f"the runs have no common time: {spans}; compare runs of the same time", "compare")
    signals = _differences(a, b, rows, [name for name in a.signals if name in b], shift)
    flat_a, flat_b = (flattened({k: v for k, v in run.summary.items() if k not in VOLATILE}) for run in (a, b))
    fields = dict.fromkeys([*flat_a, *flat_b]) if flat_a and flat_b else ()  # a log has none
    changed = {
        key: (flat_a.get(key), flat_b.get(key)) for key in fields if not _equal(flat_a.get(key), flat_b.get(key))
    }
    only_a, only_b = (tuple(s for s in x.signals if s not in y) for x, y in ((a, b), (b, a)))
    return Comparison(a, b, changed, signals, only_a, only_b, end, shift)


def check_joints(a: Run, b: Run) -> None:
    """Raises InputError for runs of rigs without a common joint."""
    if a.rig.joints != b.rig.joints and not set(a.rig.joints) & set(b.rig.joints):
        joints = " and ".join(f"{name} has {', '.join(run.rig.joints) or 'none'}" for name, run in (("a", a), ("b", b)))
        raise InputError(f"the runs have no joint in common: {joints}; compare runs of one rig", "compare")


class Parting(NamedTuple):
    """The first time t [s] at which a signal differs by more than the tolerance; difference: b − a there, relative: its
    absolute value as a fraction of the largest value of the signal."""

    signal: str
    unit: str
    t: float
    difference: float
    relative: float


def partings(comparison: Comparison, tolerance: float = 0.01) -> list[Parting]:
    """Where the runs part, the first signal first, of several at one time the one that differs most. tolerance: as a
    fraction of the largest value of each signal."""
    a, b = comparison.a, comparison.b
    sizes = {name: size_of(comparison, name) for name in comparison.signals}
    left = [name for name, d in comparison.signals.items() if d.max > tolerance * sizes[name] > 0.0]
    found: list[Parting] = []
    for t, of_a, of_b in _blocks(a, b, _common_rows(a, b, comparison.end, comparison.shift), left, comparison.shift):
        beyond = _difference(of_a, of_b) > tolerance * np.array([sizes[name] for name in left])
        for k in np.flatnonzero(beyond.any(axis=0)):
            first = int(beyond[:, k].argmax())
            if all(parting.signal != left[k] for parting in found):
                difference = float(of_b[first, k] - of_a[first, k])
                relative = abs(difference) / sizes[left[k]]
                found.append(Parting(left[k], a.units[left[k]], float(t[first]), difference, relative))
    return sorted(found, key=lambda parting: (parting.t, -np.nan_to_num(parting.relative, nan=np.inf)))


def _common_rows(a: Run, b: Run, end: float, shift: float) -> range:
    """The rows of a whose times both runs have."""
    first = max(float(a.t[0]), float(b.t[0]) - shift)
    return range(bisect_left(a.t, first), bisect_right(a.t, end))


def size_of(comparison: Comparison, name: str) -> float:
    """The largest absolute value of a signal in both runs."""
    return float(max(np.nanmax(np.abs(run[name]), initial=0.0) for run in (comparison.a, comparison.b)))


def _blocks(
    a: Run, b: Run, rows: range, names: Sequence[str], shift: float
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """(times, values of a, of b) of these signals in these rows of a, without gaps of b, block by block: a run may be
    larger than the memory."""
    columns = [[run.signals.index(name) for name in names] for run in (a, b)]
    for begin in range(rows.start, rows.stop, BLOCK):
        block = slice(begin, min(begin + BLOCK, rows.stop))
        t = np.asarray(a.t[block])
        known = ~_within(b.gaps, t + shift)
        if known.any():
            of_a, of_b = a.values[block][:, columns[0]], _values_at(b, t + shift, columns[1])
            yield t[known], of_a[known], of_b[known]


def _differences(a: Run, b: Run, rows: range, names: Sequence[str], shift: float) -> dict[str, SignalDifference]:
    squares, largest, at = np.zeros(len(names)), np.full(len(names), -1.0), np.zeros(len(names))
    count = 0
    for t, of_a, of_b in _blocks(a, b, rows, names, shift):
        difference, count = _difference(of_a, of_b), count + len(t)
        worst = difference.argmax(axis=0)
        found = difference[worst, np.arange(len(names))]
        at = np.where(found > largest, t[worst], at)
        largest = np.maximum(largest, found)
        with np.errstate(over="ignore"):
            squares += np.einsum("ij,ij->j", difference, difference)
    if not count:
        raise InputError("the runs have no common tick beside their gaps; compare whole recordings", "compare")
    rms = np.sqrt(squares / count)
    figures = zip(names, rms.tolist(), largest.tolist(), at.tolist(), strict=True)
    return {name: SignalDifference(a.units[name], *figure) for name, *figure in figures}


def _within(gaps: Sequence[tuple[float, float]], t: np.ndarray) -> np.ndarray:
    """bool (k,): whether a time is in one of the gaps."""
    found = np.zeros(len(t), dtype=bool)
    for begin, end in gaps:
        found |= (t > begin) & (t < end)
    return found


def _values_at(run: Run, t: np.ndarray, columns: Sequence[int]) -> np.ndarray:
    """(k, n): signals at times within the run, interpolated linearly."""
    begin, end = bisect_right(run.t, t[0]) - 1, bisect_left(run.t, t[-1]) + 1
    times, values = run.t[begin:end], run.values[begin:end][:, columns]
    if np.array_equal(times, t):
        return values
    return np.column_stack([np.zeros((len(t), 0)), *(np.interp(t, times, column) for column in values.T)])


def _difference(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore", invalid="ignore"):  # of runs that diverged
        difference = np.abs(b - a)
    difference[(a == b) | (np.isnan(a) & np.isnan(b))] = 0.0  # infinite, or not measured, in both
    difference[np.isnan(difference)] = np.inf  # in one of them
    return difference


def flattened(data: Any, path: str = "") -> dict[str, Any]:
    """Leaves of nested mappings and lists of mappings by dotted name."""
    if isinstance(data, Mapping):
        items = data.items()
    elif isinstance(data, list) and any(isinstance(item, Mapping) for item in data):
        items = enumerate(data)
    else:
        return {path: data}
    found: dict[str, Any] = {}
    for key, value in items:
        found |= flattened(value, f"{path}.{key}" if path else str(key))
    return found


def _equal(a: Any, b: Any) -> bool:
    both_nan = isinstance(a, float) and isinstance(b, float) and math.isnan(a) and math.isnan(b)
    return both_nan or a == b


def alignment_of(a: Run, b: Run) -> float:
    """The shift [s]: what is at t in a is at t + shift in b, at most half of the shorter run.

    It has the largest correlation of the joints' references, or of their positions, to a fraction of a tick. Raises
    InputError for runs without a common one that moves.
    """
    from scipy.signal import correlate

    check_joints(a, b)
    for kind in FOLLOWED:
        names = [name for name in a.signals if name.endswith(kind) and name in b]
        moving = [name for name in names if np.ptp(a[name]) > 0.0 and np.ptp(b[name]) > 0.0]
        if moving:
            break
    else:
        raise InputError("no joint moves in both runs; compare them without --align", "compare")
    step = float(np.median(np.diff(a.t)))
    grids = [np.arange(float(run.t[0]), float(run.t[-1]) + 0.5 * step, step) for run in (a, b)]
    likeness: np.ndarray | float = 0.0
    for name in moving:
        of_a, of_b = (_normed(np.interp(grid, run.t, run[name])) for grid, run in zip(grids, (a, b), strict=True))
        likeness = likeness + correlate(of_b, of_a, mode="full", method="fft")
    lags = np.arange(-len(grids[0]) + 1, len(grids[1]))
    within = np.abs(lags) <= LONGEST_SHIFT * min(map(len, grids))
    values, lags = np.asarray(likeness)[within], lags[within]
    k = int(values.argmax())
    return float(grids[1][0] - grids[0][0] + (lags[k] + _peak(values[max(k - 1, 0) : k + 2])) * step)


def _normed(values: np.ndarray) -> np.ndarray:
    rate = np.diff(values, append=values[-1])  # what is constant does not count
    return rate / np.linalg.norm(rate)


def _peak(around: np.ndarray) -> float:
    """Of a parabola through three values, from the middle one."""
    if len(around) < 3 or (bend := around[0] - 2.0 * around[1] + around[2]) >= 0.0:
        return 0.0
    return float(0.5 * (around[0] - around[2]) / bend)
