"""The layout of the plot of several runs: a row of axes for each signal, a colour and dashes for each run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cosim.output.plot.curves import PIXEL_COLUMNS, Samples, angle_jumps, interruptions, thin_pieces
from cosim.output.plot.glyphs import drawable
from cosim.output.plot.run_figure import format_axes
from cosim.output.plot.signal_figure import COLORS, ROW, WIDTH
from cosim.output.plot.style import DPI, SOFT, fix_layout
from cosim.output.plot.text_layout import LEGEND_SIZE, PlotLegend, anonymous, show_names

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MARGIN = 0.35  # inches, of the legend at the sides
NAME_SIZE = 9.5  # points
# widths of dashes and gaps, of runs after the first: a curve that another one covers shows in its gaps
DASHES = (), (6.0, 2.0), (3.0, 2.0), (1.5, 1.5)


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

    legend = PlotLegend.of([drawable(run.name) for run in runs], WIDTH - 2 * MARGIN)
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
        axes.set_title(drawable(name), fontsize=NAME_SIZE, color=SOFT, loc="left")
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
    return {"color": COLORS[k % len(COLORS)], "linewidth": max(1.8 - 0.2 * k, 0.8), **dashes}
