"""The layout of the plot of chosen signals: a row of axes for each unit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from cosim.output.plot.curves import PIXEL_COLUMNS, Samples, angle_jumps, thin_pieces
from cosim.output.plot.event_markers import PlotMarks
from cosim.output.plot.run_figure import format_axes
from cosim.output.plot.style import BLUE, DPI, FAINT, GREEN, INK, OCHRE, ROSE, RUST, SOFT, VIOLET, fix_layout
from cosim.output.plot.text_layout import TextBlock, anonymous, show_names
from cosim.output.sample_encoding import TIMING

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.figure import Figure

WIDTH, ROW = 10.0, 2.6  # inches
MOST_SIGNALS = 24  # of a run without joints
COLORS = (BLUE, RUST, GREEN, VIOLET, OCHRE, ROSE, INK, FAINT)


def of_parts(signals: Iterable[str]) -> list[str]:
    """The signals that are drawn of a run without joints: the first ones."""
    return [name for name in signals if not name.startswith(f"{TIMING}/")][:MOST_SIGNALS]


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
            color, width = COLORS[k % len(COLORS)], max(1.8 - 0.2 * k, 0.8)
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
            ncols=4,
            frameon=False,
            fontsize=8.0,
        )
        show_names(legend, own)
    grid[-1].set_xlabel("time [s]")
    title.write(figure, 0.12, weight="bold")
    description.write(figure, 0.12 + title.height, color=SOFT)
    footer.write(figure, height - 0.06 - footer.height, color=FAINT)
    fix_layout(figure)
    figure.align_ylabels()
    return figure
