"""Events on a plot: a vertical line in all axes at each, and names above the first row where they fit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cosim.output.plot.style import FAINT
from cosim.output.plot.text_layout import text_width

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PlotEvents = Sequence[tuple[float, str]]  # (time in s, name)

NAME_SIZE = 7.0  # points
NAME_HEIGHT = NAME_SIZE + 3.0  # of the space for names above the axes, points
NAME_SPACING = 0.08  # inches between names
MIN_LINE_SPACING = 1 / 150  # fraction of the axes' width; closer lines are drawn as one
LINE_STYLE: dict[str, Any] = {"colors": FAINT, "linewidths": 0.8, "linestyles": (0, (1.0, 2.0)), "zorder": 1.5}


def events_within(events: PlotEvents, t: np.ndarray) -> list[tuple[float, str]]:
    """The events within the times t (k,), sorted by time."""
    return sorted((e for e in events if len(t) and t[0] <= e[0] <= t[-1]), key=lambda e: e[0])


def draw_event_lines(axes: Axes, events: PlotEvents) -> Any:
    """Draw lines over the whole height; returns their handle for a legend."""
    times = np.array([time for time, _ in events])
    width = np.ptp(axes.get_xlim())
    _, first = np.unique(np.floor((times - times[0]) / (width * MIN_LINE_SPACING)), return_index=True)
    return axes.vlines(times[first], 0.0, 1.0, transform=axes.get_xaxis_transform(), **LINE_STYLE)


def draw_event_names(axes: Axes, events: PlotEvents, width: float) -> None:
    """Write names above axes of a width in inches. The first occurrence of a name has priority over repetitions."""
    low, high = axes.get_xlim()
    names: dict[float, list[str]] = {}
    for time, name in events:
        names.setdefault(time, []).append(name)
    texts = [(time, ", ".join(dict.fromkeys(several))) for time, several in names.items()]
    occurrences: Counter[str] = Counter()
    ranked = []
    for time, text in texts:
        ranked.append((occurrences[text], time, text))
        occurrences[text] += 1
    taken = [_exponent_span(axes, width)]
    for _, time, text in sorted(ranked):
        wide = text_width(text, NAME_SIZE)
        left = min(max((time - low) / (high - low) * width - 0.5 * wide, 0.0), width - wide)
        right = left + wide + NAME_SPACING
        if wide <= width and all(right <= a or b <= left for a, b in taken):
            taken.append((left, right))
            axes.annotate(
                text, (left / width, 1.0), (0.0, 2.0), xycoords="axes fraction", textcoords="offset points",
                fontsize=NAME_SIZE, color=FAINT, parse_math=False, annotation_clip=False, in_layout=False,
            )  # fmt: skip


def _exponent_span(axes: Axes, width: float) -> tuple[float, float]:
    """The start and the end, in inches, of the power of ten above the axes."""
    text, box = axes.yaxis.get_offset_text(), axes.get_window_extent()
    if not text.get_text():
        return 0.0, 0.0
    return 0.0, (text.get_window_extent().x1 - box.x0) / box.width * width + NAME_SPACING
