"""The points of a curve: thinned, and interrupted where an angle jumps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import numpy as np

from cosim.output.signal_charts import SignalCurve

PIXEL_COLUMNS = 800  # points are thinned to the minimum and maximum of each
START_FRACTION = 0.01  # of the time of a run: its start
BLOCK = 1 << 16  # samples that are looked at together
LARGEST_VALUE = 1e100  # larger values of a diverged run would overflow the axes


class DerivedSignal:
    """A signal computed from others where it is used. Of it and of signals on the disk only parts are in memory."""

    def __init__(self, function: Callable[..., np.ndarray], *signals: Samples) -> None:
        self._function, self._signals = function, signals

    def __len__(self) -> int:
        return len(self._signals[0])

    def __getitem__(self, key: slice | np.ndarray) -> np.ndarray:
        return self._function(*(signal[key] for signal in self._signals))


Samples = np.ndarray | DerivedSignal


def samples_of(curve: SignalCurve, signals: Mapping[str, Samples]) -> Samples:
    """(k,) of a curve whose signals are there."""
    return curve.of(signals.__getitem__, lambda first, second: DerivedSignal(np.subtract, first, second))


def is_zero(y: Samples) -> bool:
    """Whether all samples are 0."""
    return not any(np.any(y[begin : begin + BLOCK]) for begin in range(0, len(y), BLOCK))


def thin(
    x: np.ndarray, y: Samples, columns: int, begin: int = 0, end: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """At most 2·columns points of the curve (x, y), both (k,), from `begin` to `end`, that look the same.

    The minimum and the maximum of every stretch stay, so no peak is lost. Values that are not finite, or beyond
    `LARGEST_VALUE`, become NaN: an interruption of the curve.
    """
    end = len(y) if end is None else end
    width = -(-(end - begin) // columns)
    if width <= 2:
        return x[begin:end], _drawable(y[begin:end])
    kept = []
    step = width * max(1, BLOCK // width)
    for start in range(begin, end, step):
        part = _drawable(y[start : min(start + step, end)])
        stretches = np.full(-(-len(part) // width) * width, np.nan)
        stretches[: len(part)] = part
        stretches = stretches.reshape(-1, width)
        gaps = np.isnan(stretches)
        lowest = np.where(gaps, np.inf, stretches).argmin(axis=1)
        highest = np.where(gaps, -np.inf, stretches).argmax(axis=1)
        starts = start + np.arange(len(stretches)) * width
        kept.append(np.unique([starts + lowest, starts + highest]))
    keep = np.concatenate(kept)
    return x[keep], _drawable(y[keep])


def _drawable(y: np.ndarray) -> np.ndarray:
    return np.where(np.abs(y) <= LARGEST_VALUE, y, np.nan)


def range_of(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """The minimum and the maximum of a thinned curve (x, y), both (k,), NaN if it has none; without its start if it
    only rises from 0 there.

    A drive begins without current: its effort rises from 0 within `START_FRACTION` of the time, and the axis would
    show little else.
    """
    x, y = x[np.isfinite(y)], y[np.isfinite(y)]
    if not len(y):
        return np.nan, np.nan
    low, high = float(y.min()), float(y.max())
    rest = y[x > x[0] + START_FRACTION * (x[-1] - x[0])]
    if len(rest) and y[0] == 0.0 and 0.0 in (low, high) and max(abs(low), abs(high)) == np.abs(rest).max():
        return float(rest.min()), float(rest.max())
    return low, high


def thin_pieces(x: np.ndarray, y: Samples, jumps: np.ndarray, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """The thinned curve, interrupted before each of the samples `jumps`; the columns are divided among its pieces."""
    xs, ys = [], []
    for begin, end in pairwise([0, *jumps.tolist(), len(y)]):
        a, b = thin(x, y, -(-columns * (end - begin) // max(len(y), 1)) or 1, begin, end)
        xs += [a, a[-1:]]
        ys += [b, np.full(len(b[-1:]), np.nan)]
    return np.concatenate(xs[:-1]), np.concatenate(ys[:-1])


def angle_jumps(name: str, signals: Mapping[str, Samples], units: Mapping[str, str]) -> np.ndarray:
    """Indices of the samples before which an angle of a spherical or free joint jumps; none for other signals.

    Such a joint has a quaternion `<joint>.qx/position`. Its angles (rad) are the components of a rotation vector, which
    changes its sign at half a turn.
    """
    joint, what = _joint_and_interface(name)
    if units.get(name) != "rad" or f"{joint}.qx/position" not in signals:
        return np.zeros(0, dtype=int)
    angles = [s for s in signals if units.get(s) == "rad" and _joint_and_interface(s) == (joint, what)]
    jumps = []
    with np.errstate(over="ignore", invalid="ignore"):  # in a diverged run
        for begin in range(0, len(signals[name]), BLOCK):
            step = np.diff([signals[s][begin : begin + BLOCK + 1] for s in angles], axis=1)
            jumps.append(begin + 1 + np.flatnonzero((step * step).sum(axis=0) > np.pi**2))
    return np.concatenate([np.zeros(0, dtype=int), *jumps])


def interruptions(t: np.ndarray, gaps: Sequence[tuple[float, float]]) -> np.ndarray:
    """Indices of the samples behind the gaps (begin, end) [s] of a recording."""
    return np.searchsorted(t, [0.5 * (begin + end) for begin, end in gaps])


def _joint_and_interface(name: str) -> tuple[str, str]:
    """(joint, interface) of `<joint>.<dof>/<interface>`."""
    dof, _, what = name.rpartition("/")
    return dof.rpartition(".")[0], what
