"""What the charts of a page show: curves, and the samples of the last seconds or of all of a recording."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from cosim.core.units import unit_sign
from cosim.output.signal_charts import (
    EFFORT,
    POSITION,
    TRACKING_ERROR,
    VELOCITY,
    SignalChart,
    SignalCurve,
    curves_beside,
)

POINTS = 1200  # of a curve, as many as a chart has pixels


# titles of the charts of a joint; the velocity in place of the tracking error of a joint without a reference
SHOWN = POSITION, TRACKING_ERROR, EFFORT
UNTRACKED = POSITION, VELOCITY, EFFORT


def shown_charts(charts: Mapping[str, SignalChart]) -> list[SignalChart]:
    """Of those of a joint by title."""
    titles = SHOWN if TRACKING_ERROR in charts else UNTRACKED
    return [charts[title] for title in titles if title in charts]


def chart_of_signals(signals: Sequence[str], units: Mapping[str, str]) -> SignalChart:
    """One chart of any signals."""
    shown = dict.fromkeys(unit_sign(units[name]) for name in signals)
    return SignalChart("", "chosen signals", ", ".join(filter(None, shown)), curves_beside(signals))


def values_of(curve: SignalCurve, column: Callable[[str], np.ndarray]) -> np.ndarray:
    """column: the values of a signal."""
    return curve.of(column, np.subtract)


class History:
    """The newest `capacity` samples in a table that grows; old ones are dropped in blocks."""

    def __init__(self, signals: int, capacity: int = 20_000) -> None:
        self._table = np.empty((2 * capacity, 1 + signals))
        self._capacity, self._size = capacity, 0

    def __len__(self) -> int:
        return self._size

    def add(self, t: np.ndarray, values: np.ndarray) -> None:
        """t: (k,) [s]; values: (k, number of signals)."""
        t, values = t[-self._capacity :], values[-self._capacity :]
        if self._size + len(t) > len(self._table):
            kept = self._table[self._size - self._capacity + len(t) : self._size].copy()
            self._table[: len(kept)] = kept
            self._size = len(kept)
        rows = slice(self._size, self._size + len(t))
        self._table[rows, 0], self._table[rows, 1:] = t, values
        self._size += len(t)

    def clear(self) -> None:
        self._size = 0

    @property
    def t(self) -> np.ndarray:
        return self._table[: self._size, 0]

    def last(self, seconds: float) -> slice:
        """The rows of the last seconds."""
        if not self._size:
            return slice(0, 0)
        return slice(int(np.searchsorted(self.t, self.t[-1] - seconds)), self._size)

    def column(self, signal: int, rows: slice) -> np.ndarray:
        return self._table[rows, 1 + signal]

    def row(self, t: float | None = None) -> np.ndarray | None:
        """(number of signals,) at this time or just before it, by default the newest; None of an empty history."""
        if not self._size:
            return None
        k = self._size if t is None else int(np.searchsorted(self.t, t, side="right"))
        return self._table[max(k, 1) - 1, 1:]


def thinned(t: np.ndarray, curves: list[np.ndarray], points: int = POINTS) -> tuple[np.ndarray, list[np.ndarray]]:
    """At most about `points` of the samples, with the smallest and the largest value of each block of a curve kept."""
    block = -(-2 * len(t) // points)
    if block <= 2:
        return t, curves
    k = len(t) // block
    body = slice(0, k * block)
    times = t[body].reshape(k, block)[:, [0, block // 2]].ravel()
    thin = []
    for curve in curves:
        blocks = curve[body].reshape(k, block)
        low, high = np.argmin(blocks, axis=1), np.argmax(blocks, axis=1)
        rows = np.arange(k)
        first, second = np.minimum(low, high), np.maximum(low, high)
        thin.append(np.stack([blocks[rows, first], blocks[rows, second]], axis=1).ravel())
    return times, thin
