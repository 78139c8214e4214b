"""Charts of curves and marks as SVG, for reports.

Some thirty are drawn in a few milliseconds, for which matplotlib takes seconds: a report is a part of every session of
tuning.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from html import escape

import numpy as np

from cosim.core.types import Array
from cosim.output.palette import FAINT, GRID, PALE, SOFT
from cosim.output.plot.curves import thin

LEFT, RIGHT, TOP, BOTTOM = 52.0, 10.0, 22.0, 34.0  # pixels beside the axes
MOST_AXIS_TICKS = 6  # at most, of a linear axis
MOST_DECADES = 5  # with a tick, at most
RANGE_MARGIN = 0.05  # of the range, above and below the curves
SHADE = "#f3f5f7"
BAND_OPACITY = 0.3
AXIS_STEPS = (1.0, 2.0, 5.0, 10.0)


class ChartAxis:
    """A range of values on a line of pixels."""

    def __init__(self, low: float, high: float, logarithmic: bool) -> None:
        self.logarithmic = logarithmic and low > 0.0
        if not high > low:  # one value, or none
            low, high = (low - 0.5 * abs(low) - 1e-9, high + 0.5 * abs(high) + 1e-9) if low == high else (0.0, 1.0)
            self.logarithmic = False
        self.low, self.high = low, high

    def places(self, values: Array, first: float, last: float) -> Array:
        """Pixels of values; NaN of those that the scale does not have."""
        with np.errstate(divide="ignore", invalid="ignore"):
            scaled, low, high = (
                np.log(x) if self.logarithmic else x for x in (np.asarray(values, dtype=float), self.low, self.high)
            )
            found = first + (scaled - low) / (high - low) * (last - first)
        return np.where(np.isfinite(found), found, np.nan)

    @property
    def ticks(self) -> list[float]:
        if self.logarithmic:
            first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
            step = max(1, -(-(last - first) // MOST_DECADES))
            decades = [10.0**k for k in range(first, last + 1, step)]
            return decades if len(decades) > 1 else [self.low, math.sqrt(self.low * self.high), self.high]
        size = 10.0 ** math.floor(math.log10((self.high - self.low) / MOST_AXIS_TICKS))
        step = next(size * step for step in AXIS_STEPS if (self.high - self.low) / (size * step) <= MOST_AXIS_TICKS)
        first = math.ceil(self.low / step - 1e-9)
        return [k * step for k in range(first, math.floor(self.high / step + 1e-9) + 1)]


class SvgChart:
    """Curves and marks are added, then it is drawn once. width, height: pixels, with labels."""

    def __init__(
        self, title: str, x: str = "", width: int = 480, height: int = 220, log: tuple[bool, bool] = (False, False)
    ) -> None:
        """x: label of the horizontal axis; log: of both axes."""
        self._title, self._x, self._width, self._height, self._log = title, x, width, height, log
        self._curves: list[tuple[Array, Array, str, str, float]] = []
        self._bands: list[tuple[Array, Array, Array, str]] = []
        self._marks: list[tuple[Array, Array, str, float]] = []
        self._levels: list[float] = []
        self._shades: list[tuple[float, float]] = []
        self._labels: dict[str, tuple[str, str]] = {}
        self._ranges: list[tuple[float, float] | None] = [None, None]
        self._names: list[str] | None = None

    def line(self, x: Array, y: Array, color: str, label: str = "", dashed: bool = False, width: float = 1.4) -> None:
        columns = max(2, self._width - round(LEFT + RIGHT))
        xs, ys = thin(np.asarray(x, dtype=float), np.asarray(y, dtype=float), columns)
        dash = "5 3" if dashed else ""
        self._curves.append((xs, ys, color, dash, width))
        if label:
            self._labels[label] = color, dash

    def band(self, x: Array, low: Array, high: Array, color: str, label: str = "") -> None:
        """A pale ground between two curves, below all others."""
        columns = max(2, self._width - round(LEFT + RIGHT)) // 2
        stretch = -(-len(x) // columns)
        firsts = np.arange(0, len(x), stretch)
        lowest, highest = (
            by.reduceat(np.asarray(of, dtype=float), firsts) for by, of in ((np.minimum, low), (np.maximum, high))
        )
        self._bands.append((np.asarray(x, dtype=float)[firsts], lowest, highest, color))
        if label:
            self._labels[label] = color, "band"

    def dots(self, x: Array, y: Array, color: str, label: str = "", radius: float = 2.0) -> None:
        self._marks.append((np.asarray(x, dtype=float), np.asarray(y, dtype=float), color, radius))
        if label:
            self._labels[label] = color, "dot"

    def level(self, y: float) -> None:
        """A thin line across."""
        self._levels.append(y)

    def shade(self, first: float, last: float) -> None:
        """A grey ground between two values of the horizontal axis."""
        self._shades.append((first, last))

    def set_range(self, x: tuple[float, float] | None = None, y: tuple[float, float] | None = None) -> None:
        self._ranges = [x or self._ranges[0], y or self._ranges[1]]

    def name_rows(self, names: list[str]) -> None:
        """The vertical axis has rows 0, 1, … with names, from the top."""
        self._names = names
        self.set_range(y=(len(names) - 0.5, -0.5))

    def svg(self) -> str:
        left = LEFT if self._names is None else 6.0 * max(map(len, self._names)) + 16.0
        x0, x1, y0, y1 = left, self._width - RIGHT, self._height - BOTTOM, TOP
        xs, ys = self._axes()
        about = escape(": ".join(filter(None, (self._title, ", ".join(self._labels)))))
        size = f'viewBox="0 0 {self._width} {self._height}" width="{self._width}"'
        parts = [f'<svg {size} role="img" aria-label="{about}">']
        parts += self._frame(xs, ys, (x0, x1, y0, y1))
        for x, low, high, color in self._bands:
            around = np.concatenate([low, high[::-1]])
            points = zip(xs.places(np.concatenate([x, x[::-1]]), x0, x1), ys.places(around, y0, y1), strict=True)
            parts.append(f'<path fill="{color}" fill-opacity="{BAND_OPACITY}" d="{_path(points)}Z"/>')
        for x, y, color, dash, width in self._curves:
            points = zip(xs.places(x, x0, x1), ys.places(y, y0, y1), strict=True)
            stroke = f'stroke="{color}" stroke-width="{width}"' + (f' stroke-dasharray="{dash}"' if dash else "")
            parts.append(f'<path fill="none" {stroke} clip-path="inset(0)" d="{_path(points)}"/>')
        for x, y, color, radius in self._marks:
            places = zip(xs.places(x, x0, x1), ys.places(y, y0, y1), strict=True)
            dots = "".join(f"M{a:.1f} {b:.1f}h0" for a, b in places if not math.isnan(a + b))
            look = f'stroke="{color}" stroke-width="{2 * radius}" stroke-linecap="round"'
            parts.append(f'<path {look} d="{dots}"/>')
        return "".join([*parts, *self._legend(x1), "</svg>"])

    def _axes(self) -> tuple[ChartAxis, ChartAxis]:
        found = []
        for k in (0, 1):
            given = self._ranges[k]
            if given is not None and given[0] > given[1]:
                found.append(_Downwards(*given))
                continue
            if given is not None:
                found.append(ChartAxis(*given, self._log[k]))
                continue
            arrays = [curve[k] for curve in self._curves] + [mark[k] for mark in self._marks]
            arrays += [band[0] for band in self._bands] if k == 0 else [of for band in self._bands for of in band[1:3]]
            values = np.concatenate([np.zeros(0), *arrays])
            values = values[np.isfinite(values)]
            low, high = (float(values.min()), float(values.max())) if len(values) else (math.nan, math.nan)
            logarithmic = self._log[k] and low > 0.0
            if (k == 1 or self._names is not None) and high > low:
                low, high = _widened(low, high, logarithmic)
            found.append(ChartAxis(low, high, logarithmic))
        return found[0], found[1]

    def _frame(self, xs: ChartAxis, ys: ChartAxis, box: tuple[float, float, float, float]) -> Iterator[str]:
        x0, x1, y0, y1 = box
        yield _text(x0, 13, self._title, 12, SOFT)
        for first, last in (xs.places(np.array(ends), x0, x1) for ends in self._shades):
            yield f'<path fill="{SHADE}" d="M{first:.1f} {y0:.1f}V{y1:.1f}H{last:.1f}V{y0:.1f}Z"/>'
        for value, place in zip(xs.ticks, xs.places(np.array(xs.ticks), x0, x1), strict=True):
            yield f'<path stroke="{GRID}" d="M{place:.1f} {y0:.1f}V{y1:.1f}"/>'
            yield _text(place, y0 + 13, _number(value), 10, SOFT, "middle")
        names = dict(enumerate(self._names or ()))
        for value, place in zip(ys.ticks, ys.places(np.array(ys.ticks), y0, y1), strict=True):
            yield f'<path stroke="{GRID}" d="M{x0:.1f} {place:.1f}H{x1:.1f}"/>'
            yield _text(x0 - 6, place + 3.5, names.get(round(value), "") if names else _number(value), 10, SOFT, "end")
        for place in ys.places(np.array(self._levels), y0, y1):
            yield f'<path stroke="{PALE}" d="M{x0:.1f} {place:.1f}H{x1:.1f}"/>'
        yield f'<path fill="none" stroke="{PALE}" d="M{x0:.1f} {y1:.1f}V{y0:.1f}H{x1:.1f}"/>'
        yield _text(0.5 * (x0 + x1), y0 + 28, self._x, 11, FAINT, "middle")

    def _legend(self, right: float) -> Iterator[str]:
        place = right
        for label, (color, dash) in reversed(self._labels.items()):
            place -= 6.5 * len(label)
            yield _text(place, 13, label, 11, SOFT)
            if dash == "band":
                yield f'<path fill="{color}" fill-opacity="{BAND_OPACITY}" d="M{place - 22:.1f} 4h17v10h-17Z"/>'
            elif dash == "dot":
                yield f'<circle cx="{place - 9:.1f}" cy="9" r="3" fill="{color}"/>'
            else:
                stroke = f' stroke-dasharray="{dash}"' if dash else ""
                yield f'<path stroke="{color}" stroke-width="2"{stroke} d="M{place - 22:.1f} 9h17"/>'
            place -= 34.0


class _Downwards(ChartAxis):
    """Rows from the top to the bottom."""

    def __init__(self, low: float, high: float) -> None:
        self.low, self.high, self.logarithmic = low, high, False

    @property
    def ticks(self) -> list[float]:
        return [float(k) for k in range(round(self.low + 0.5))]


def _widened(low: float, high: float, logarithmic: bool) -> tuple[float, float]:
    if logarithmic:
        factor = (high / low) ** RANGE_MARGIN
        return low / factor, high * factor
    space = RANGE_MARGIN * (high - low)
    return low - space, high + space


def _path(points: Iterator[tuple[float, float]]) -> str:
    """Interrupted where a point is NaN."""
    words, drawn = [], False
    for x, y in points:
        if math.isnan(x) or math.isnan(y):
            drawn = False
            continue
        words.append(f"{'L' if drawn else 'M'}{x:.1f} {y:.1f}")
        drawn = True
    return "".join(words)


def _text(x: float, y: float, text: str, size: int, color: str, anchor: str = "start") -> str:
    if not text:
        return ""
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text {place} fill="{color}" font-size="{size}">{escape(text)}</text>'


def _number(value: float) -> str:
    """Short, without the zeros of an exponent."""
    text = f"{value:.4g}" if not value or 1e-3 <= abs(value) < 1e5 else f"{value:.2g}"
    mantissa, e, exponent = text.partition("e")
    return f"{mantissa}e{int(exponent)}" if e else text
