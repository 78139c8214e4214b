"""The layouts of the plot of chosen signals, a row of axes for each unit, and of that of several runs, a row for each
signal, a colour and dashes for each run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cosim.core.recordings.sample_encoding import TIMING
from cosim.output.palette import FAINT, PALETTE, SOFT
from cosim.output.plot.curves import PIXEL_COLUMNS, Samples, angle_jumps, interruptions, thin_pieces
from cosim.output.plot.event_markers import PlotMarks
from cosim.output.plot.run_figure import format_axes
from cosim.output.plot.style import DPI, drawable, fix_layout
from cosim.output.plot.text_layout import (
    LEGEND_SIZE,
    PlotLegend,
    TextBlock,
    anonymous,
    shorten_to_width,
    show_names,
    text_width,
)

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.figure import Figure

WIDTH, ROW = 10.0, 2.6  # inches
MOST_SIGNALS = 24  # of a run without joints

LEGEND_MARGIN = 0.35  # inches, of the legend at the sides
NAME_SIZE, CURVE_SIZE = 9.5, 8.0  # points, of titles and of the names of curves
COLUMNS = 4  # of the names of curves
BESIDE, HANDLE = 1.0, 0.5  # inches: numbers and margins beside axes; the line before the name of a curve
# widths of dashes and gaps, of runs after the first: a curve that another one covers shows in its gaps
DASHES = (), (6.0, 2.0), (3.0, 2.0), (1.5, 1.5)


def of_parts(signals: Iterable[str]) -> list[str]:
    """The signals that are drawn of a run without joints: the first ones."""
    return [name for name in signals if not name.startswith(f"{TIMING}/")][:MOST_SIGNALS]


def _fitting(names: Iterable[str]) -> list[str]:
    """Names of curves, shortened where they are wider than the axes."""
    names = list(names)
    if sum(text_width(name, CURVE_SIZE) + HANDLE for name in names[:COLUMNS]) <= WIDTH and len(names) <= COLUMNS:
        return names
    room = (WIDTH - BESIDE) / min(len(names), COLUMNS) - HANDLE
    widest = max(text_width(name, CURVE_SIZE) for name in names)
    return [shorten_to_width(name, CURVE_SIZE, room) for name in names] if widest > 2.0 * room else names


def draw_signals(
    t: np.ndarray,
    signals: Mapping[str, Samples],
    chosen: Sequence[str],
    units: Mapping[str, str],
    marks: PlotMarks,
    texts: tuple[str, str, str],
    breaks: np.ndarray,
) -> Figure:
    """The matplotlib figure; texts: title, description and note; breaks: see `RunFigureContent`."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    rows: dict[str, list[str]] = {}
    for name in dict.fromkeys(chosen):
        rows.setdefault(units.get(name, ""), []).append(name)
    title, description, footer = (
        TextBlock.of(text, size, WIDTH) for text, size in zip(texts, (13.0, 9.5, 8.5), strict=True)
    )
    head, foot = 0.2 + title.height + description.height, 0.12 + footer.height
    height = head + ROW * len(rows) + foot
    layout = ConstrainedLayoutEngine(rect=(0.0, foot / height, 1.0, 1.0 - (head + foot) / height), w_pad=0.08)
    figure = Figure(figsize=(WIDTH, height), dpi=DPI, layout=layout)
    grid = figure.subplots(len(rows), 1, sharex=True, squeeze=False)[:, 0].tolist()
    legends: list[dict[str, Artist]] = []
    for axes, (unit, names) in zip(grid, rows.items(), strict=True):
        legends.append({})
        for k, name in enumerate(names):
            color, width = PALETTE[k % len(PALETTE)], max(1.8 - 0.2 * k, 0.8)
            jumps = np.union1d(angle_jumps(name, signals, units), breaks)
            points = thin_pieces(t, signals[name], jumps, PIXEL_COLUMNS)
            (legends[-1][name],) = axes.plot(*points, color=color, linewidth=width)
        format_axes(axes, unit)
        axes.tick_params(labelbottom=axes is grid[-1])
    handles = marks.draw(grid)
    legends[0] |= handles
    for axes, own in zip(grid, legends, strict=True):
        names = [*own] if len(own) == 1 else own
        legend = axes.legend(
            own.values(),
            anonymous(own),
            loc="lower left",
            bbox_to_anchor=(0.0, 1.0),
            ncols=COLUMNS,
            frameon=False,
            fontsize=CURVE_SIZE,
        )
        show_names(legend, _fitting(own))
    grid[-1].set_xlabel("time [s]")
    title.write(figure, 0.12, weight="bold")
    description.write(figure, 0.12 + title.height, color=SOFT)
    footer.write(figure, height - 0.06 - footer.height, color=FAINT)
    fix_layout(figure)
    figure.align_ylabels()
    return figure


class OverlaidRun(NamedTuple):
    """t (k,) in s; signals: name -> (k,), of those in the plot that the run has; gaps: see `RecordedRun`."""

    name: str
    t: np.ndarray
    signals: Mapping[str, Samples]
    gaps: Sequence[tuple[float, float]] = ()


def draw_overlay(runs: Sequence[OverlaidRun], chosen: Sequence[str], units: Mapping[str, str]) -> Figure:
    """The matplotlib figure."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine
    from matplotlib.lines import Line2D

    legend = PlotLegend.of([drawable(run.name) for run in runs], WIDTH - 2 * LEGEND_MARGIN)
    head = 0.2 + legend.height
    height = head + ROW * len(chosen)
    layout = ConstrainedLayoutEngine(rect=(0.0, 0.0, 1.0, 1.0 - head / height), w_pad=0.08)
    figure = Figure(figsize=(WIDTH, height), dpi=DPI, layout=layout)
    grid = figure.subplots(len(chosen), 1, sharex=True, squeeze=False)[:, 0].tolist()
    looks = [_look(k) for k in range(len(runs))]
    for axes, name in zip(grid, chosen, strict=True):
        for run, look in zip(runs, looks, strict=True):
            if name in run.signals:
                jumps = np.union1d(angle_jumps(name, run.signals, units), interruptions(run.t, run.gaps))
                axes.plot(*thin_pieces(run.t, run.signals[name], jumps, PIXEL_COLUMNS), **look)
        format_axes(axes, units[name])
        shown = shorten_to_width(drawable(name), NAME_SIZE, WIDTH - BESIDE)
        axes.set_title(shown, fontsize=NAME_SIZE, color=SOFT, loc="left")
        axes.tick_params(labelbottom=axes is grid[-1])
    grid[-1].set_xlabel("time [s]")
    fix_layout(figure)
    figure.align_ylabels()
    shown = figure.legend(
        [Line2D([], [], **look) for look in looks],
        anonymous(looks),
        ncols=legend.columns,
        fontsize=LEGEND_SIZE,
        frameon=False,
        loc="upper center",
    )
    show_names(shown, legend.names)
    return figure


def _look(k: int) -> dict[str, Any]:
    """Of the curves of the k-th run."""
    dashes = {"dashes": DASHES[k % len(DASHES)]} if k % len(DASHES) else {}
    return {"color": PALETTE[k % len(PALETTE)], "linewidth": max(1.8 - 0.2 * k, 0.8), **dashes}
