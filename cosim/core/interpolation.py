"""Tables of numbers over one axis or two, interpolated, for numbers and symbols alike.

Between points k and k + 1 of an axis, with h their distance and u = (x − x_k) / h, the value is
    linear         y_k + (y_{k+1} − y_k) u
    cubic, pchip   Hermite's cubic of the values and the slopes at both points
`cubic` has the slopes of the natural spline (de Boor, A Practical Guide to Splines, chapter IV), `pchip` those of
Fritsch and Butland (SIAM J. Sci. Stat. Comput. 5 (1984), 300), with which no value lies beyond its two points. Over two
axes, values and slopes along the first axis are themselves interpolated over the second one.

On symbols a table is the sum of its pieces, each 0 outside of its interval: derivatives are exact, also at the points,
where the slope is that to the right.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, get_args

import numpy as np

from cosim.core import ops
from cosim.core.types import Array, Numeric

Interpolation = Literal["linear", "cubic", "pchip"]
Outside = Literal["hold", "linear", "error"]
INTERPOLATIONS: tuple[str, ...] = get_args(Interpolation)
OUTSIDE: tuple[str, ...] = get_args(Outside)


@dataclass(frozen=True, eq=False)
class LookupTable:
    """A function of as many numbers as `points` has axes.

    points: of each axis, increasing; values: an array with one axis for each; outside: beyond the first and the last
    point the value is held, continued with its slope, or not a number.
    """

    points: tuple[Array, ...]
    values: Array
    interpolation: Interpolation = "linear"
    outside: Outside = "hold"

    def __post_init__(self) -> None:
        """Raises ValueError for points that do not increase, fewer than two, and values that do not fit them."""
        shape = tuple(len(points) for points in self.points)
        if self.values.shape != shape:
            raise ValueError(f"{_sizes(shape)} points need {_sizes(shape)} values, got {_sizes(self.values.shape)}")
        for points in self.points:
            if len(points) < 2:
                raise ValueError("two points or more are needed on each axis")
            wrong = np.flatnonzero(~(np.diff(points) > 0.0))
            if wrong.size:
                first, second = points[wrong[0]], points[wrong[0] + 1]
                raise ValueError(f"points must increase, but {second:.12g} follows {first:.12g}")
        if not all(np.isfinite(array).all() for array in (*self.points, self.values)):
            raise ValueError("all points and values must be finite")
        object.__setattr__(self, "_knots", self._built(self.points, self.values))

    def __call__(self, *x: Numeric) -> Numeric:
        knots: _Knots = self._knots  # type: ignore[attr-defined]
        return knots.at(*x)

    def _built(self, points: Sequence[Array], values: Array) -> _Knots:
        def rows(array: Array) -> Sequence[float | _Knots]:
            return array.tolist() if len(points) == 1 else [self._built(points[1:], row) for row in array]

        linear = self.interpolation == "linear"
        slopes = None if linear else rows(_slopes(points[0], values, self.interpolation))
        return _Knots(points[0].tolist(), rows(values), slopes, self.outside)


def _sizes(shape: Sequence[int]) -> str:
    return " × ".join(map(str, shape))


def _slopes(x: Array, y: Array, interpolation: str) -> Array:
    """Of the interpolation at the points, along the first axis of y."""
    from scipy.interpolate import CubicSpline, PchipInterpolator

    if interpolation == "cubic":
        return CubicSpline(x, y, bc_type="natural")(x, 1)
    return PchipInterpolator(x, y)(x, 1)


@dataclass(frozen=True)
class _Knots:
    """The points of an axis; values and slopes at each: numbers, or knots of the next axis."""

    points: Sequence[float]
    values: Sequence[float | _Knots]
    slopes: Sequence[float | _Knots] | None
    outside: str

    def at(self, x: Numeric, *rest: Numeric) -> Numeric:
        @cache
        def value(k: int) -> Numeric:
            return _of_row(self.values[k], rest)

        @cache
        def slope(k: int) -> Numeric:
            assert self.slopes is not None
            return _of_row(self.slopes[k], rest)

        return interpolated(x, self.points, value, None if self.slopes is None else slope, self.outside)


def _of_row(row: float | _Knots, x: Sequence[Numeric]) -> Numeric:
    return row.at(*x) if isinstance(row, _Knots) else row


def interpolated(
    x: Numeric,
    points: Sequence[float],
    value: Callable[[int], Numeric],
    slope: Callable[[int], Numeric] | None = None,
    outside: str = "hold",
) -> Numeric:
    """At x, from the value and the slope at each of the points; without slopes it is linear between them. A single
    point has its value everywhere."""
    last = len(points) - 1
    if not last:
        return value(0)

    def piece(k: int) -> Numeric:
        """The value from point k to the next one; of k = −1 and the last point, beyond the points."""
        if k in (-1, last):
            return beyond(max(k, 0))
        h, y, step = points[k + 1] - points[k], value(k), value(k + 1) - value(k)
        u = (x - points[k]) / h
        if slope is None:
            return y + step * u
        m, n = h * slope(k), h * slope(k + 1)
        return y + u * (m + u * (3.0 * step - 2.0 * m - n + u * (m + n - 2.0 * step)))

    def beyond(k: int) -> Numeric:
        if outside == "error":
            return math.nan
        if outside == "hold":
            return value(k)
        inner = max(k - 1, 0)
        steep = slope(k) if slope else (value(inner + 1) - value(inner)) / (points[inner + 1] - points[inner])
        return value(k) + steep * (x - points[k])

    if not ops.is_symbolic(x):
        # NaN belongs to the first piece, which passes it on
        begun = -1 if x < points[0] else 0 if not x >= points[1] else int(np.searchsorted(points, x, "right")) - 1
        return piece(last if x > points[last] else min(begun, last - 1))
    begun_at = [ops.logical_not(x < points[0]), *(x >= point for point in points[1:-1]), x > points[last]]
    before = [ops.logical_not(begun) for begun in begun_at]
    inside = [before[0], *map(ops.logical_and, begun_at, before[1:]), begun_at[last]]
    return ops.sum(ops.where(within, piece(k), 0.0) for k, within in enumerate(inside, -1))
