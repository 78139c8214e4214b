"""The plot of the timing of a real-time run: wake-up latencies, execution times, missed deadlines.

Distributions on the left; the same quantities over the rig's time on the right, with late ticks marked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cosim.core.units import format_seconds
from cosim.execution.timing.deadlines import DeadlineRecord, task_index
from cosim.execution.timing.percentiles import percentiles_of
from cosim.output.palette import BLUE, FAINT, GREEN, INK, OCHRE, PALE, ROSE, RUST, SOFT, VIOLET
from cosim.output.plot.curves import thin
from cosim.output.plot.style import DPI, drawable, fix_layout, save
from cosim.output.plot.text_layout import TITLE_SIZE, PlotLegend, TextBlock, shorten_to_width

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

WIDTH, ROW_HEIGHT, AXIS_LABEL_WIDTH = (
    9.6,
    2.5,
    0.75,
)  # inches: of the figure; of a row; of the numbers beside axes
MARGIN, TASK_NAME_WIDTH = 0.12, 0.95  # inches: around texts; of the names of tasks
LEFT_FRACTION = 0.42  # of the width
PIXEL_COLUMNS = 700  # points are thinned to the lowest and highest of each
BINS = 70
MAX_TASKS = 14
MIN_TIME = 1e-9  # s, the lower end of logarithmic axes
LINE_STYLE: dict[str, Any] = {"color": BLUE, "linewidth": 0.7}
LIMIT_STYLE: dict[str, Any] = {"color": FAINT, "linewidth": 1.0, "linestyle": (0, (4.0, 2.0))}
# of the causes of missed deadlines, the most frequent first; the last style is for all others
MARKER_STYLES = ((RUST, "o"), (VIOLET, "s"), (GREEN, "^"), (OCHRE, "D"), (ROSE, "v"), (INK, "x"))
QUANTILES = (("median", INK, "solid"), ("p99", OCHRE, (0, (4.0, 1.5))), ("max", RUST, (0, (1.0, 1.2))))


def plot_timing(path: str | Path, timing: DeadlineRecord, title: str, note: str = "") -> None:
    """Plot the timing of a run into a png, svg or pdf file, by the suffix of `path`.

    `title` is above a line about the whole run, `note` below the axes. Dense runs are thinned to the minimum and
    maximum of each stretch, so no late tick is lost. A third row on the right shows the clock slip, or the
    drift of the trigger; it is left out where there is neither.

    Raises InputError for another suffix or a path that cannot be written.
    """
    tasks = tuple(replace(task, name=drawable(task.name)) for task in timing.tasks)
    save(path, lambda: _draw(replace(timing, tasks=tasks), drawable(title), drawable(note)))


def _draw(timing: DeadlineRecord, title: str, note: str) -> Figure:
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    few = f"the {MAX_TASKS} of {len(timing.tasks)} tasks that took longest" if len(timing.tasks) > MAX_TASKS else ""
    texts = title, _description(timing), "  ·  ".join(filter(None, [note, few]))
    head, description, footer = (
        TextBlock.of(text, size, WIDTH) for text, size in zip(texts, (13.0, 9.5, 8.5), strict=True)
    )
    marks = _deadline_miss_markers(timing)
    right = [_draw_latency, _draw_end_to_end, *([_draw_clock_slip] if timing.slip_ns or timing.triggered else [])]
    top = MARGIN + head.height + description.height + 0.1
    height = top + ROW_HEIGHT * len(right) + MARGIN + footer.height
    area = (0.0, (MARGIN + footer.height) / height, 1.0, (height - top - MARGIN - footer.height) / height)
    layout = ConstrainedLayoutEngine(rect=area, w_pad=0.08, h_pad=0.08, wspace=0.0, hspace=0.0)
    figure = Figure(figsize=(WIDTH, height), dpi=DPI, layout=layout)
    grid = figure.add_gridspec(len(right), 2, width_ratios=[LEFT_FRACTION, 1.0 - LEFT_FRACTION])
    _draw_histogram(figure.add_subplot(grid[0, 0]), timing)
    _draw_execution_times(figure.add_subplot(grid[1:, 0]), timing)
    first = None
    for k, panel in enumerate(right):
        first = axes = figure.add_subplot(grid[k, 1], sharex=first)
        panel(axes, timing, marks)
        axes.margins(x=0.01)
        axes.tick_params(labelbottom=k == len(right) - 1)
    assert first is not None
    first.set_xlabel("time [s]")
    head.write(figure, MARGIN, weight="bold")
    description.write(figure, MARGIN + head.height, color=SOFT)
    footer.write(figure, height - 0.06 - footer.height, color=FAINT)
    fix_layout(figure)
    return figure


def _description(timing: DeadlineRecord) -> str:
    """One line about the run."""
    n, counted, factors = len(timing.numbers), timing.counted.any(), timing.real_time_factors
    pacing = "external trigger" if timing.triggered else f"{timing.rate:g} × real time" if timing.rate != 1.0 else ""
    missed = len(timing.missed.row)
    late = f"{missed:,} deadline{'s' * (missed != 1)} missed" if counted else ""
    worst = f"real-time factor {factors.min():.4f} at worst" if len(factors) else ""
    period = timing.period_ns / 1e9
    ticks = f"{format_seconds(max(n - 1, 0) * period)} in ticks of {format_seconds(period)}, {timing.engine} engine"
    return "  ·  ".join(filter(None, [ticks, pacing, late, worst]))


# --- distributions ---


def _draw_histogram(axes: Axes, timing: DeadlineRecord) -> None:
    """The histogram of wake-up latencies, or of the intervals between triggers."""
    ns = timing.latency_ns
    draw_legend = _set_title(axes, "trigger interval" if timing.triggered else "wake-up latency", LEFT_FRACTION)
    found = percentiles_of(ns)
    if found is None:
        _mark_empty(axes)
        return
    seconds = np.maximum(ns / 1e9, MIN_TIME)
    low, high = float(seconds.min()), float(seconds.max())
    if timing.triggered:
        margin = 0.05 * max(high - low, 1e-3 * high)
        _linear(axes.xaxis)
        edges = np.linspace(low - margin, high + margin, BINS + 1)
    else:
        edges = np.geomspace(*_logarithmic(axes, "x", low, high), BINS + 1)
    axes.stairs(np.histogram(seconds, edges)[0], edges, fill=True, color=BLUE, alpha=0.55)
    axes.set_xlim(edges[0], edges[-1])
    axes.set_yscale("log")
    axes.set_ylim(bottom=0.7)
    axes.set_ylabel("triggers" if timing.triggered else "ticks")
    lines = [
        axes.axvline(max(value, MIN_TIME), color=color, linestyle=style, linewidth=1.3)
        for value, (_, color, style) in zip(found.values(), QUANTILES, strict=True)
    ]
    draw_legend(lines, [f"{name} {format_seconds(v)}" for v, (name, *_) in zip(found.values(), QUANTILES, strict=True)])


def _draw_execution_times(axes: Axes, timing: DeadlineRecord) -> None:
    """Execution times: a dot at the median, a bar to p99, a line to the maximum."""
    draw_legend = _set_title(axes, "execution time", LEFT_FRACTION, TASK_NAME_WIDTH)
    each = {task.name: times for task, times in zip(timing.tasks, timing.executions, strict=True) if times}
    longest = sorted(each, key=lambda name: -each[name]["max_s"])[:MAX_TASKS]
    found = {name: times for name, times in each.items() if name in longest} | {"tick": percentiles_of(timing.busy_ns)}
    rows = {y: times for y, times in enumerate(found.values()) if times}
    if not rows:
        _mark_empty(axes)
        return
    y = np.array(list(rows))
    median, p99, longest = np.maximum([list(times.values()) for times in rows.values()], MIN_TIME).T
    bar = axes.hlines(y, median, p99, color=BLUE, linewidth=5.0, alpha=0.55, capstyle="butt")
    axes.hlines(y, p99, longest, color=RUST, linewidth=1.0)
    (dot,) = axes.plot(median, y, "o", color=INK, markersize=4.0)
    (end,) = axes.plot(longest, y, "|", color=RUST, markersize=8.0, markeredgewidth=1.5)
    period = axes.axvline(timing.period_ns / 1e9, **LIMIT_STYLE)
    _logarithmic(axes, "x", float(median.min()), max(float(longest.max()), timing.period_ns / 1e9))
    names = [shorten_to_width(name, 8.5, TASK_NAME_WIDTH) for name in found]
    axes.set_yticks(range(len(names)), names)
    for label in axes.get_yticklabels():  # a character is about as high as its size
        label.set(fontsize=min(8.5, 72.0 * 0.7 * ROW_HEIGHT / len(names)))
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.grid(axis="y", visible=False)
    draw_legend(
        [dot, bar, end, period], ["median", "to p99", "max", f"period {format_seconds(timing.period_ns / 1e9)}"]
    )


# --- over time ---

MissMarkers = Sequence[tuple[str, np.ndarray, str, str]]  # (name, rows of late ticks, colour, marker)


def _deadline_miss_markers(timing: DeadlineRecord) -> MissMarkers:
    """The late ticks by cause, the most frequent first, with their markers."""
    missed, counts = timing.missed, np.bincount(timing.missed.cause, minlength=len(timing.causes))
    often = [i for i in np.argsort(-counts, kind="stable").tolist() if counts[i]]
    single = often if len(often) <= len(MARKER_STYLES) else often[: len(MARKER_STYLES) - 1]
    groups = [(timing.causes[i], [i]) for i in single]
    if others := often[len(single) :]:
        groups.append(("other causes", others))
    rows = [missed.row[np.isin(missed.cause, of)] for _, of in groups]
    return [(f"{name} ({len(r):,})", r, *mark) for (name, _), r, mark in zip(groups, rows, MARKER_STYLES, strict=False)]


def _draw_latency(axes: Axes, timing: DeadlineRecord, marks: MissMarkers) -> None:
    """Latencies or trigger intervals over time; late ticks and their causes."""
    draw_legend = _set_title(axes, "trigger interval" if timing.triggered else "wake-up latency", 1.0 - LEFT_FRACTION)
    seconds = np.full(len(timing.numbers), np.nan)
    seconds[timing.latency_rows] = timing.latency_ns / 1e9
    handles = _draw_time_series(axes, timing, seconds, marks)
    if handles:
        draw_legend(handles, [name for name, *_ in marks])


def _draw_end_to_end(axes: Axes, timing: DeadlineRecord, marks: MissMarkers) -> None:
    """From the due time of a tick to its commands written."""
    written = task_index(timing.tasks, "write")
    task = timing.tasks[written]
    start = "the trigger" if timing.triggered else "due time"
    draw_legend = _set_title(axes, f"end to end: from {start} to commands written", 1.0 - LEFT_FRACTION)
    seconds = np.full(len(timing.numbers), np.nan)
    seconds[task.due(timing.numbers)] = timing.end_to_end_ns / 1e9
    limit = task.deadline_ns / 1e9
    marks = [(name, rows[seconds[rows] > limit], color, marker) for name, rows, color, marker in marks]
    if _draw_time_series(axes, timing, seconds, marks, limit) is not None:
        draw_legend([axes.axhline(limit, **LIMIT_STYLE)], [f"deadline of write, {format_seconds(limit)}"])


def _draw_clock_slip(axes: Axes, timing: DeadlineRecord, marks: MissMarkers) -> None:
    """How far the ticks are behind the clock, by clock slip or with the trigger."""
    _set_title(
        axes, "triggers behind the clock" if timing.triggered else "clock slip after late ticks", 1.0 - LEFT_FRACTION
    )
    if len(timing.numbers) < 2:
        _mark_empty(axes)
        return
    x, y = thin(timing.time_of(timing.numbers), timing.slips_ns / 1e9, PIXEL_COLUMNS)
    axes.plot(x, y, drawstyle="steps-post", **{**LINE_STYLE, "linewidth": 1.4})
    _linear(axes.yaxis)


def _draw_time_series(
    axes: Axes, timing: DeadlineRecord, seconds: np.ndarray, marks: MissMarkers, limit: float = 0.0
) -> list[Artist] | None:
    """Draw the curve and the late ticks on it, with an axis that includes `limit`; returns their handles
    for a legend, None when there is no curve."""
    known = np.isfinite(seconds)
    if not known.any():
        _mark_empty(axes)
        return None
    t, seconds = timing.time_of(timing.numbers), np.maximum(seconds, MIN_TIME)
    axes.plot(*thin(t[known], seconds[known], PIXEL_COLUMNS), **LINE_STYLE)
    if len(t) == 1:
        axes.plot(t, seconds, ".", color=BLUE)
    _logarithmic(axes, "y", float(seconds[known].min()), max(float(seconds[known].max()), limit))
    return [
        axes.plot(
            *thin(t[rows], seconds[rows], PIXEL_COLUMNS // 4), marker, color=color, markersize=4.5, markeredgewidth=0.6,
            markeredgecolor=color if marker == "x" else "white",
        )[0]
        for _, rows, color, marker in marks
    ]  # fmt: skip


# --- axes ---


def _set_title(axes: Axes, title: str, fraction: float, beside: float = AXIS_LABEL_WIDTH) -> Any:
    """Set the title; returns a function (handles, names) that draws a legend between the title and the axes.

    fraction: of the figure's width; beside: inches of the labels beside the axes.
    """
    axes.set_title(title, fontsize=TITLE_SIZE, color=SOFT, pad=5.0)

    def write(handles: Sequence[Artist], names: Sequence[str]) -> None:
        legend = PlotLegend.of(names, fraction * WIDTH - beside - 0.2)
        height = legend.height + 0.06
        axes.set_title(title, fontsize=TITLE_SIZE, color=SOFT, pad=72.0 * height + 4.0)
        legend.write(axes, handles, height)

    return write


def _logarithmic(axes: Axes, which: str, low: float, high: float) -> tuple[float, float]:
    """Make the axis `which` logarithmic, for times [s] from `low` to `high`, a decade at least; returns its ends."""
    from matplotlib.ticker import EngFormatter, LogLocator, NullFormatter

    low, high = 0.8 * low, 1.25 * high
    wider = max(1.0, np.sqrt(10.0 * low / high))
    low, high = low / wider, high * wider
    getattr(axes, f"set_{which}scale")("log")
    getattr(axes, f"set_{which}lim")(low, high)
    axis = getattr(axes, f"{which}axis")
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < 50.0 * low else (1.0,)))
    axis.set_major_formatter(EngFormatter("s"))
    axis.set_minor_formatter(NullFormatter())
    return low, high


def _linear(axis: Axis) -> None:
    """Label an axis with times [s]."""
    from matplotlib.ticker import EngFormatter

    axis.set_major_formatter(EngFormatter("s"))


def _mark_empty(axes: Axes) -> None:
    axes.set_yticks([])
    axes.grid(visible=False)
    axes.tick_params(labelbottom=False)
    axes.text(0.5, 0.5, "too few ticks", ha="center", color=PALE, transform=axes.transAxes)
