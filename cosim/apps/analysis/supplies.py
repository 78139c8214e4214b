"""Which supply, fuse, brake resistor and capacitor a rig needs, from a run: what flowed, and what follows with margins.

Currents and powers are those at the ticks, peaks between them are not seen; energies are integrated with the motion.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cosim.core.errors import InputError
from cosim.core.units import UNITS, show_quantity
from cosim.mechanics.bondgraph.power_account import RETURNED
from cosim.output.palette import BLUE, RUST
from cosim.output.report_page import ReportPage
from cosim.output.svg_chart import SvgChart
from cosim.output.text_table import TextTable, bold
from cosim.rig.run.run import Run

Array = NDArray[np.float64]

# rated currents of fuses [A], IEC 60269-1, and of larger ones by the same steps
RATED = (2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 16.0, 20.0, 25.0, 32.0, 40.0, 50.0, 63.0, 80.0, 100.0, 125.0, 160.0, 200.0)
FUSE_LOAD = 0.8  # of the rated current of a fuse, that it carries all the time
RESISTOR_MARGIN = 1.25  # of its power over the mean one
CAPACITOR_TOLERANCE = 0.8  # of the nominal capacitance that an electrolytic capacitor has at least
GRID = 50.0  # Hz
PEAKS = 6  # of the rectified voltage per period
WINDOWS = (0.01, 0.1, 1.0, 10.0)  # s, of I²t and of the mean power of the resistor
PAUSE = 0.05  # s without braking between two stops
RIPPLE = 0.05  # of the voltage, from peak to peak
LINE = math.sqrt(2.0 / 3.0)  # RMS current of each of three lines per current behind the bridge


class SizingFigure(NamedTuple):
    """A figure and what it follows from."""

    key: str
    what: str
    value: float
    unit: str
    source: str

    @property
    def shown(self) -> str:
        return show_quantity(self.value, self.unit) if self.unit in UNITS else f"{self.value:.4g} {self.unit}"


@dataclass(frozen=True)
class SupplySizing:
    """By supply, and of the axes on any of them, figures in groups: title -> figures."""

    run: Run
    supplies: Mapping[str, Mapping[str, Sequence[SizingFigure]]]
    axes: Mapping[str, Sequence[SizingFigure]]

    def lines(self) -> list[str]:
        found = [f"{bold(self.run.rig.name)}  {self.run.t[-1]:.6g} s; currents and powers at the ticks"]
        for name, groups in {**self.supplies, **{axis: {"axis": of} for axis, of in self.axes.items()}}.items():
            table = TextTable((name, "figure", "value", "from"), ())
            for group, figures in groups.items():
                for figure in figures:
                    table.add_row(group, figure.what, figure.shown, figure.source)
            found += ["", *table.lines()]
        return found

    def as_json(self) -> dict[str, Any]:
        """SI units."""

        def values(figures: Sequence[SizingFigure]) -> dict[str, Any]:
            return {f.key: {"value": float(f.value), "unit": f.unit, "from": f.source} for f in figures}

        return {
            "rig": self.run.rig.name,
            "duration_s": float(self.run.t[-1]),
            "supplies": {
                name: {group: values(figures) for group, figures in groups.items()}
                for name, groups in self.supplies.items()
            },
            "axes": {name: values(figures) for name, figures in self.axes.items()},
        }

    def page(self) -> ReportPage:
        page = ReportPage(f"Supplies of {self.run.rig.name}")
        page.text(
            f"From a run of {self.run.t[-1]:.6g} s. Currents and powers are those at the ticks: peaks between them are"
            " not seen. Energies are integrated with the motion.",
            note=True,
        )
        for name, groups in self.supplies.items():
            page.heading(name)
            page.charts(_charts(self.run, name))
            for group, figures in groups.items():
                page.table([group, "value", "from"], [[f.what, f.shown, f.source] for f in figures])
        for name, figures in self.axes.items():
            page.heading(name)
            page.table(["axis", "value", "from"], [[f.what, f.shown, f.source] for f in figures])
        return page


def size_supplies(run: Run, ripple: float = RIPPLE) -> SupplySizing:
    """ripple: of the voltage of a link, from peak to peak, as a fraction. Raises InputError for a run without a
    supply."""
    names = [
        name
        for name in run.summary["powers"]
        if f"{name}/voltage" in run.signals and f"{name}/supply_loss" in run.signals
    ]
    if not names:
        raise InputError("no drive of this run is on a supply; give the rig a section 'supplies'", "--supplies")
    axes = [name for name in run.rig.joints if f"{name}/supply_current" in run.signals]
    several = len(names) > 1
    return SupplySizing(
        run,
        {name: dict(_groups(run, name, ripple, () if several else axes)) for name in names},
        {name: _of_axis(run, name) for name in axes},
    )


def _groups(run: Run, name: str, ripple: float, axes: Sequence[str]) -> Iterator[tuple[str, list[SizingFigure]]]:
    t, u, i = run.t, run[f"{name}/voltage"], run[f"{name}/current"]
    yield "supply", _of_supply(t, u, i)
    yield "fuse", _of_fuse(t, i)
    if f"{name}/chopper_loss" in run.signals:
        yield "resistor", _of_resistor(run, name)
    yield "capacitor", _of_capacitor(u, i, ripple)
    yield "energy", _of_energy(run, name, axes)


def _of_supply(t: Array, u: Array, i: Array) -> list[SizingFigure]:
    power = u * i
    return [
        SizingFigure("current_peak", "peak current", float(i.max()), "A", "largest current of the source"),
        SizingFigure("current_rms", "RMS current", rms(t, i), "A", "over the run"),
        SizingFigure(
            "line_current_rms", "RMS current of a line", LINE * rms(t, i), "A", "√(2/3) of it, behind a bridge"
        ),
        SizingFigure("power_peak", "peak power", float(power.max()), "W", "voltage of the link times current"),
        SizingFigure("power_mean", "mean power", mean(t, power), "W", "over the run"),
        SizingFigure(
            "returned_peak", "peak power taken back", abs(min(float(power.min()), 0.0)), "W", "the same, backwards"
        ),
    ]


def _of_fuse(t: Array, i: Array) -> list[SizingFigure]:
    least = rms(t, i) / FUSE_LOAD
    found = [
        SizingFigure(
            "rated_current", "rated current", rated(least), "A", f"RMS current at {FUSE_LOAD:.0%} of it, next step"
        )
    ]
    for window in (w for w in WINDOWS if w < t[-1]):
        heat = float(largest_integral(t, i * i, window))
        what = f"I²t in {window:g} s"
        found.append(SizingFigure(f"i2t_{window:g}s", what, heat, "A²s", "largest; its curve is above it at this time"))
    return found


def _of_resistor(run: Run, name: str) -> list[SizingFigure]:
    t, u, p = run.t, run[f"{name}/voltage"], run[f"{name}/chopper_loss"]
    stops = braking(t, p)
    energies = run[f"{name}/chopper_energy"]
    bursts = [float(energies[end] - energies[begin]) for begin, end in stops]
    average = float(energies[-1] - energies[0]) / t[-1]
    found = [
        SizingFigure("power_peak", "peak power", float(p.max()), "W", "largest power of the chopper"),
        SizingFigure("power_mean", "mean power", average, "W", "energy over the duration of the run"),
        SizingFigure(
            "rated_power", "rated power", RESISTOR_MARGIN * average, "W", f"mean power times {RESISTOR_MARGIN:g}"
        ),
        SizingFigure("stops", "times of braking", float(len(stops)), "1", f"with pauses above {PAUSE:g} s between"),
        SizingFigure("energy_per_stop", "energy of a stop", max(bursts, default=0.0), "J", "the largest one"),
    ]
    for window in (w for w in WINDOWS if w < t[-1]):
        power = float(largest_integral(t, p, window)) / window
        found.append(SizingFigure(f"power_{window:g}s", f"power over {window:g} s", power, "W", "largest mean"))
    if p.max() > 0.0:
        k = int(p.argmax())
        largest = float(u[k] * u[k] / p[k])
        found.append(
            SizingFigure("resistance", "resistance at most", largest, "ohm", "u² over the power, at the peak power")
        )
    return found


def _of_capacitor(u: Array, i: Array, ripple: float) -> list[SizingFigure]:
    largest = max(float(i.max()), 0.0)
    between = largest / (PEAKS * GRID * ripple * float(np.median(u)))
    return [
        SizingFigure("voltage_min", "lowest voltage", float(u.min()), "V", "of the link"),
        SizingFigure("voltage_max", "largest voltage", float(u.max()), "V", "of the link"),
        SizingFigure(
            "capacitance",
            f"capacitance for a ripple of {ripple:.3g}",
            between / CAPACITOR_TOLERANCE,
            "F",
            f"peak current for 1/{PEAKS} of a period of {GRID:g} Hz, {1.0 - CAPACITOR_TOLERANCE:.0%} tolerance",
        ),
    ]


def _of_energy(run: Run, name: str, axes: Sequence[str]) -> list[SizingFigure]:
    powers = run.summary["powers"][name]
    found = [
        SizingFigure(key, what, powers[part], "J", "integrated over the run")
        for key, part, what in (
            ("taken", "electrical", "from the source, less returned"),
            ("returned", RETURNED, "returned to the source"),
            ("chopper", "chopper", "in the brake resistor"),
            ("supply", "supply", "lost in the supply"),
        )
        if part in powers
    ]
    if axes:
        u = run[f"{name}/voltage"]
        powers_of = {axis: u * run[f"{axis}/supply_current"] for axis in axes}
        back = sum(mean(run.t, np.maximum(-p, 0.0)) * run.t[-1] for p in powers_of.values())
        together = -float(np.min(np.sum(list(powers_of.values()), axis=0)))
        found.append(
            SizingFigure("regenerated", "regenerated by the axes", float(back), "J", "negative powers, at the ticks")
        )
        found.append(
            SizingFigure(
                "regenerated_peak", "largest power of all axes back", max(together, 0.0), "W", "their sum, at the ticks"
            )
        )
    return found


def _of_axis(run: Run, name: str) -> list[SizingFigure]:
    i = run[f"{name}/supply_current"]
    return [
        SizingFigure("current_peak", "peak current", float(np.abs(i).max()), "A", "from or to the link"),
        SizingFigure("current_rms", "RMS current", rms(run.t, i), "A", "over the run"),
    ]


# --- of samples ---


def mean(t: Array, x: Array) -> float:
    """By trapezoids."""
    return float(np.trapezoid(x, t) / (t[-1] - t[0]))


def rms(t: Array, x: Array) -> float:
    return math.sqrt(mean(t, x * x))


def largest_integral(t: Array, x: Array, window: float) -> float:
    """The largest ∫ x dt over any interval of this length [s], by trapezoids."""
    step = (t[-1] - t[0]) / (len(t) - 1)
    n = max(round(window / step), 1)
    total = np.concatenate([[0.0], np.cumsum(0.5 * (x[1:] + x[:-1])) * step])
    return float((total[n:] - total[:-n]).max())


def braking(t: Array, power: Array) -> list[tuple[int, int]]:
    """(first, last) index of each interval of braking."""
    on = np.flatnonzero(power > 0.0)
    if not len(on):
        return []
    apart = np.flatnonzero(np.diff(t[on]) > PAUSE)
    firsts, lasts = np.concatenate([[0], apart + 1]), np.concatenate([apart, [len(on) - 1]])
    return [(max(int(on[a]) - 1, 0), min(int(on[b]) + 1, len(t) - 1)) for a, b in zip(firsts, lasts, strict=True)]


def rated(current: float) -> float:
    """The next rated current of a fuse."""
    scale = 1.0
    while current > RATED[-1] * scale:
        scale *= 10.0
    return next(size * scale for size in RATED if size * scale >= current)


def _charts(run: Run, name: str) -> list[SvgChart]:
    charts = []
    for what, title, color in (("voltage", "voltage, V", BLUE), ("current", "current of the source, A", RUST)):
        chart = SvgChart(title, "time, s")
        chart.line(run.t, run[f"{name}/{what}"], color)
        charts.append(chart)
    return charts
