"""Events on a plot: a vertical line in all axes at each, and names above the first row where they fit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cosim.output.palette import FAINT, OCHRE, RUST
from cosim.output.plot.text_layout import text_width

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PlotEvents = Sequence[tuple[float, str]]  # (time in s, name)

NAME_SIZE = 7.0  # points
NAME_HEIGHT = NAME_SIZE + 3.0  # of the space for names above the axes, points
NAME_SPACING = 0.08  # inches between names
MIN_LINE_SPACING = 1 / 150  # fraction of the axes' width; closer lines are drawn as one
LINE_STYLE: dict[str, Any] = {"colors": FAINT, "linewidths": 0.8, "linestyles": (0, (1.0, 2.0)), "zorder": 1.5}
STOP_STYLE: dict[str, Any] = {"color": RUST, "linewidth": 1.6, "zorder": 5}
LATE_STYLE: dict[str, Any] = {"color": OCHRE, "marker": "|", "markersize": 6.0, "linestyle": "none", "clip_on": False}
LATE_SPACING = 1 / 800  # fraction of the axes' width between two marks


def events_within(events: PlotEvents, t: np.ndarray) -> list[tuple[float, str]]:
    """The events within the times t (k,), sorted by time."""
    return sorted((e for e in events if len(t) and t[0] <= e[0] <= t[-1]), key=lambda e: e[0])


def draw_event_lines(axes: Axes, events: PlotEvents) -> Any:
    """Draw lines over the whole height; returns their handle for a legend."""
    times = np.array([time for time, _ in events])
    width = np.ptp(axes.get_xlim())
    _, first = np.unique(np.floor((times - times[0]) / (width * MIN_LINE_SPACING)), return_index=True)
    return axes.vlines(times[first], 0.0, 1.0, transform=axes.get_xaxis_transform(), **LINE_STYLE)


@dataclass(frozen=True)
class PlotMarks:
    """Marks in all axes: events, the time [s] of a stop, the times [s] of late ticks."""

    events: PlotEvents = ()
    stop: float | None = None
    late: Sequence[float] = ()

    def draw(self, every: Sequence[Axes]) -> dict[str, Any]:
        """Draw them in all axes; returns their handles for a legend."""
        stops = [] if self.stop is None else [self.stop]
        kinds: list[tuple[str, Callable[[Axes, Any], Any], Sequence[Any]]] = [
            ("event", draw_event_lines, self.events),
            ("stop", _draw_stop, stops),
            ("missed deadline", _draw_late_ticks, self.late),
        ]
        return {name: [draw(axes, what) for axes in every][-1] for name, draw, what in kinds if what}


def _draw_stop(axes: Axes, times: Sequence[float]) -> Any:
    return axes.axvline(times[0], **STOP_STYLE)


def _draw_late_ticks(axes: Axes, times: Sequence[float]) -> Any:
    """A mark at the lower edge for each time, one per pixel."""
    width = np.ptp(axes.get_xlim()) * LATE_SPACING
    _, first = np.unique(np.floor(np.array(times) / width), return_index=True)
    chosen = np.array(times)[first]
    (line,) = axes.plot(chosen, np.zeros(len(chosen)), transform=axes.get_xaxis_transform(), **LATE_STYLE)
    return line


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
                fontsize=NAME_SIZE, color=FAINT, annotation_clip=False, in_layout=False,
            )  # fmt: skip


def _exponent_span(axes: Axes, width: float) -> tuple[float, float]:
    """The start and the end, in inches, of the power of ten above the axes."""
    text, box = axes.yaxis.get_offset_text(), axes.get_window_extent()
    if not text.get_text():
        return 0.0, 0.0
    return 0.0, (text.get_window_extent().x1 - box.x0) / box.width * width + NAME_SPACING
