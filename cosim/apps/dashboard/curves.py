"""What the charts of a page show: curves, and the samples of the last seconds or of all of a recording."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from cosim.core.units import unit_sign

BLUE, RUST, GREEN, OCHRE, VIOLET, GREY = "#3b82c4", "#d1603d", "#3f9c68", "#c79a2e", "#8a63c9", "#9aa0a6"
PALETTE = (BLUE, RUST, GREEN, OCHRE, VIOLET, GREY, "#2aa7b5", "#c4568f")
POINTS = 1200  # of a curve, as many as a chart has pixels


class Curve(NamedTuple):
    """of: the signals that `values` takes; by default the curve is the first one."""

    label: str
    of: tuple[str, ...]
    color: str
    dashed: bool = False
    values: Callable[..., np.ndarray] | None = None


class Chart(NamedTuple):
    title: str
    unit: str
    curves: tuple[Curve, ...]


def error(reference: np.ndarray, position: np.ndarray) -> np.ndarray:
    return reference - position


# title, unit of a signal of the joint that gives the unit, curves: label, signals, colour, dashed
JOINT_CHARTS: tuple[tuple[str, str, tuple[Curve, ...]], ...] = (
    (
        "position",
        "position",
        (Curve("position", ("position",), BLUE), Curve("reference", ("reference_position",), RUST, True)),
    ),
    ("error", "position", (Curve("error", ("reference_position", "position"), VIOLET, values=error),)),
    ("velocity", "velocity", (Curve("velocity", ("velocity",), GREEN),)),
    (
        "effort",
        "effort",
        (Curve("effort", ("effort",), OCHRE), Curve("command", ("command_effort",), RUST, True)),
    ),
)


def joint_charts(joint: str, titles: Sequence[str], units: Mapping[str, str]) -> list[Chart]:
    """The charts of these titles; without the curves whose signals are not there, and without empty charts."""
    found = []
    for title, unit, curves in JOINT_CHARTS:
        own = [curve._replace(of=tuple(f"{joint}/{signal}" for signal in curve.of)) for curve in curves]
        own = [curve for curve in own if all(signal in units for signal in curve.of)]
        if own and title in titles:
            found.append(Chart(f"{joint} {title}", unit_sign(units[f"{joint}/{unit}"]), tuple(own)))
    return found


def signal_chart(signals: Sequence[str], units: Mapping[str, str]) -> Chart:
    """One chart of any signals."""
    curves = tuple(Curve(name, (name,), PALETTE[k % len(PALETTE)]) for k, name in enumerate(signals))
    shown = dict.fromkeys(unit_sign(units[name]) for name in signals)
    return Chart("chosen signals", ", ".join(filter(None, shown)), curves)


def values_of(curve: Curve, column: Callable[[str], np.ndarray]) -> np.ndarray:
    """column: the values of a signal."""
    columns = [column(name) for name in curve.of]
    return columns[0] if curve.values is None else curve.values(*columns)


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
