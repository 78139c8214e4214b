"""The layout of the plot of a run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cosim.core.units import unit_sign
from cosim.output.palette import FAINT, PALE, SOFT
from cosim.output.plot.curves import PIXEL_COLUMNS, Samples, angle_jumps, range_of, samples_of, thin_pieces
from cosim.output.plot.event_markers import NAME_HEIGHT, PlotMarks, draw_event_names
from cosim.output.plot.joint_columns import BOUNDS, LIMIT, MISSING, Charts, style_of
from cosim.output.plot.mechanism_panels import Panel
from cosim.output.plot.style import DPI, fix_layout
from cosim.output.plot.text_layout import TITLE_SIZE, PlotLegend, TextBlock, draw_row_name
from cosim.output.signal_charts import EFFORT

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.gridspec import GridSpec
    from matplotlib.lines import Line2D

MARGIN = 0.12  # inches beside and above the texts
MARGIN_Y = 0.08  # of the range of an axis, above and below
CELL_HEIGHT = 1.6  # inches
AXIS_LABEL_WIDTH = 0.75  # inches of the numbers and the unit beside axes, at most

# half of the range of an axis, at least, by unit
SMALLEST_RANGE = {"rad": 1e-5, "m": 1e-6, "rad/s": 1e-4, "m/s": 1e-5, "N*m": 1e-4, "N": 1e-4, "J": 1e-6}


@dataclass(frozen=True)
class RunFigureContent:
    """The data of the plot: a row per joint, rows of `cells`, a row of `panels`, and `marks` in all.

    charts: of the joints with rows; columns: the titles that are drawn of each;
    limits: joint -> bound by key; breaks: indices of the samples before which all curves are interrupted."""

    t: np.ndarray
    signals: Mapping[str, Samples]
    units: Mapping[str, str]
    charts: Charts
    columns: Sequence[str]
    cells: Sequence[Panel]
    panels: Sequence[Panel]
    marks: PlotMarks
    limits: Mapping[str, Mapping[str, float]]
    breaks: np.ndarray


def draw_run(content: RunFigureContent, texts: tuple[str, str, str]) -> Figure:
    """The matplotlib figure; texts: title, description and note."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    joints, columns, panels = content.charts, content.columns, content.panels
    cell_rows = math.ceil(len(content.cells) / len(columns))
    # all sizes in inches; a single joint gets a taller row, a single column a wider one
    row_height = 1.5 + 1.4 / len(joints)
    width = 0.6 + max(8.0, 4.1 * len(columns))
    title, description, footer = (
        TextBlock.of(text, size, width) for text, size in zip(texts, (13.0, 9.5, 8.5), strict=True)
    )
    # the grid: names of the joints, then a cell for each of the axes of the longer row
    places = max(len(columns), len(panels))
    spans = [places - len(panels) + 1, 1][: len(panels)]
    legends = [
        PlotLegend.of([curve.name for curve in panel.curves], (width - 0.6) * span / places - AXIS_LABEL_WIDTH)
        for panel, span in zip(panels, spans, strict=True)
    ]
    heading = MARGIN + title.height + description.height
    head, foot = heading + 0.32, MARGIN + footer.height
    room = max((legend.height for legend in legends), default=0.0) + 0.17  # a power of ten may be above the axes
    below = 2.3 + room if panels else 0.0
    height = head + row_height * len(joints) + CELL_HEIGHT * cell_rows + below + foot
    area = (0.0, foot / height, 1.0, 1.0 - (head + foot) / height)  # left, bottom, width, height: fractions
    layout = ConstrainedLayoutEngine(rect=area, w_pad=0.08, h_pad=0.05, wspace=0.0, hspace=0.0)
    figure = Figure(figsize=(width, height), dpi=DPI, layout=layout)
    heights = [row_height] * len(joints) + [CELL_HEIGHT] * cell_rows + [below] * bool(panels)
    grid = figure.add_gridspec(len(heights), 1 + places, width_ratios=[0.06, *[1.0] * places], height_ratios=heights)

    rows, handles = _draw_joint_rows(figure, grid, content, places // len(columns), row_height)
    _draw_cells(figure, grid, content, places // len(columns), rows[0][0])
    start = 1
    for panel, legend, span in zip(panels, legends, spans, strict=True):
        axes = figure.add_subplot(grid[-1, start : start + span], sharex=rows[0][0])
        _draw_panel(axes, content, panel, legend, room)
        start += span
    events = content.marks.events
    handles |= content.marks.draw([axes for axes in figure.axes if axes.axison])
    title.write(figure, MARGIN, weight="bold")
    description.write(figure, MARGIN + title.height, color=SOFT)
    footer.write(figure, height - 0.06 - footer.height, color=FAINT)
    figure.legend(
        handles.values(), handles, loc="upper left", bbox_to_anchor=(0.0, 1.0 - heading / height),
        ncols=len(handles), frameon=False, handlelength=2.6,
    )  # fmt: skip
    fix_layout(figure)
    figure.align_ylabels()
    if events:
        for axes in rows[0]:
            draw_event_names(axes, events, axes.get_position().width * width)
    return figure


def _draw_joint_rows(
    figure: Figure, grid: GridSpec, content: RunFigureContent, span: int, row_height: float
) -> tuple[list[list[Axes]], dict[str, Artist]]:
    """The axes of the rows of joints, and the handles of the legend by name."""
    handles: dict[str, Artist] = {}
    rows: list[list[Axes]] = []
    first = None
    for row, (joint, charts) in enumerate(content.charts.items()):
        names = figure.add_subplot(grid[row, 0])
        names.set_axis_off()
        draw_row_name(names, joint, row_height)
        rows.append([])
        for place, column in enumerate(content.columns):
            start = 1 + place * span
            axes = first = figure.add_subplot(grid[row, start : start + span], sharex=first)
            rows[-1].append(axes)
            curves = charts[column].curves if column in charts else ()
            for curve in curves:
                jumps = [angle_jumps(signal, content.signals, content.units) for signal in curve.signals]
                breaks = np.unique(np.concatenate([*jumps, content.breaks]))
                points = thin_pieces(content.t, samples_of(curve, content.signals), breaks, PIXEL_COLUMNS)
                (line,) = axes.plot(*points, **style_of(curve))
                handles.setdefault(curve.label, line)
            if curves:
                if column == EFFORT:
                    _leave_the_rise_out(axes)
                format_axes(axes, content.units.get(curves[0].signals[0], ""))
                limit = _draw_limits(axes, BOUNDS.get(column, ()), content.limits.get(joint, {}))
                handles |= {} if limit is None else {LIMIT["label"]: limit}
            else:
                _mark_empty(axes, MISSING.get(column, "not recorded"))
            axes.tick_params(labelbottom=row == len(content.charts) - 1)
            if row == 0:
                axes.set_title(
                    column,
                    fontsize=TITLE_SIZE,
                    color=SOFT,
                    pad=8 + (NAME_HEIGHT if content.marks.events else 0.0),
                )
            if row == len(content.charts) - 1:
                axes.set_xlabel("time [s]")
    return rows, handles


def _draw_cells(figure: Figure, grid: GridSpec, content: RunFigureContent, span: int, first: Axes) -> None:
    """As many in a row as there are columns."""
    per_row = len(content.columns)
    for k, cell in enumerate(content.cells):
        row, place = len(content.charts) + k // per_row, 1 + span * (k % per_row)
        axes = figure.add_subplot(grid[row, place : place + span], sharex=first)
        lines = _draw_curves(axes, content, cell)
        axes.set_title(cell.title, fontsize=TITLE_SIZE, color=SOFT, pad=4.0)
        if len(lines) > 1:
            names = [curve.name for curve in cell.curves]
            across = len(lines) if len(lines) < 3 else math.ceil(len(lines) / 2)  # within the axes
            axes.legend(lines, names, loc="upper right", ncols=across, frameon=False, fontsize=8.0, handlelength=1.2)
        axes.tick_params(labelbottom=k + per_row >= len(content.cells))
        if k // per_row == (len(content.cells) - 1) // per_row:
            axes.set_xlabel("time [s]")


def _draw_curves(axes: Axes, content: RunFigureContent, panel: Panel) -> list[Line2D]:
    lines = [
        axes.plot(*thin_pieces(content.t, c.values, content.breaks, PIXEL_COLUMNS), **c.style)[0] for c in panel.curves
    ]
    axes.update_datalim([(0.0, 0.0)], updatex=False)  # the axis includes 0
    axes.autoscale_view()
    format_axes(axes, panel.unit)
    if panel.rows:
        _name_bars(axes, panel, lines)
        return []
    return lines


def _name_bars(axes: Axes, panel: Panel, lines: Sequence[Line2D]) -> None:
    """Fill the bars, and name them beside the axis."""
    for k, line in enumerate(lines):
        t, y = (np.asarray(values, dtype=float) for values in line.get_data())
        axes.fill_between(t, -k, y, color=line.get_color(), alpha=0.35, linewidth=0.0)
    axes.set_yticks([-k for k in range(len(panel.rows))], panel.rows)
    axes.set_ylim(0.2 - len(panel.rows), 1.0)
    axes.set_ylabel("")


def _draw_panel(axes: Axes, content: RunFigureContent, panel: Panel, legend: PlotLegend, room: float) -> None:
    """room: for the legend, inches."""
    lines = _draw_curves(axes, content, panel)
    axes.set_title(panel.title, fontsize=TITLE_SIZE, color=SOFT, pad=72.0 * room + 5.0)
    axes.set_xlabel("time [s]")
    legend.write(axes, lines, room)


def _mark_empty(axes: Axes, reason: str) -> None:
    """Write the reason into axes without a curve."""
    axes.set_yticks([])
    axes.text(0.5, 0.5, reason, ha="center", color=PALE, transform=axes.transAxes)


def _leave_the_rise_out(axes: Axes) -> None:
    """Set the range of the axis to that after the curves rose from 0, where this magnifies them at least twofold."""
    lows, highs = np.array([range_of(*map(np.asarray, line.get_data())) for line in axes.lines]).T
    low, high = np.nanmin(lows, initial=np.inf), np.nanmax(highs, initial=-np.inf)
    bottom, top = axes.get_ylim()
    if 0.0 < 2.0 * (high - low) <= top - bottom:
        axes.set_ylim(low - MARGIN_Y * (high - low), high + MARGIN_Y * (high - low))


def _draw_limits(axes: Axes, bounds: Sequence[tuple[str, float]], limits: Mapping[str, float]) -> Artist | None:
    """Draw the limits near the curves: those that at most double the range of the axis. Returns one of the lines."""
    line, (low, high) = None, axes.get_ylim()
    for key, sign in bounds:
        value = sign * limits.get(key, math.inf)
        new = min(low, value), max(high, value)
        if new[1] - new[0] <= 2.0 * (high - low):
            line = axes.axhline(value, **LIMIT)
            margin, (bottom, top) = 0.04 * (new[1] - new[0]), axes.get_ylim()
            axes.set_ylim(min(bottom, value - margin), max(top, value + margin))
    return line


def format_axes(axes: Axes, unit: str) -> None:
    """Set label, margins and range of axes with curves."""
    axes.margins(x=0.0, y=MARGIN_Y)
    axes.yaxis.get_offset_text().set(fontsize=8, color=SOFT)
    axes.set_ylabel(unit_sign(unit))
    axes.locator_params(axis="y", nbins=6)
    low, high = axes.get_ylim()
    middle = 0.5 * (low + high)
    # rounding and noise are drawn flat
    half = max(0.5 * (high - low), 1e-5 * abs(middle), SMALLEST_RANGE.get(unit, 1e-12))
    axes.set_ylim(middle - half, middle + half)
