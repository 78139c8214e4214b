"""Pictures of graphs: panels below each other, each in inches, with a title and a note above it, and labels as boxes.

The size of a label is estimated from its characters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from cosim.output.plot import drawable, save

CHARACTER_WIDTH, LINE_HEIGHT = 0.067, 0.13  # of text of 7.5 pt

Point = tuple[float, float]
Box = tuple[float, float, float, float]  # centre x and y, width, height
HEADER_HEIGHT = 0.7  # for title and note, in
BACKING = {"facecolor": "white", "edgecolor": "none", "pad": 0.8, "alpha": 0.75}


def widest_label(names: Iterable[str]) -> float:
    return max((text_size(break_name(name))[0] for name in names), default=0.0)


def text_size(text: str) -> Point:
    """Width and height."""
    lines = text.split("\n")
    return CHARACTER_WIDTH * max(map(len, lines)), LINE_HEIGHT * len(lines)


def break_name(name: str) -> str:
    """A long name in two lines, broken after the `_`, `-`, `.` or space nearest to its middle."""
    name = drawable(name)
    breaks = [k for k in range(2, len(name) - 1) if name[k - 1] in "_-. "]
    if len(name) <= 12 or not breaks:
        return name
    k = min(breaks, key=lambda k: abs(k - len(name) / 2))
    return f"{name[:k]}\n{name[k:]}"


def overlap(one: Box, other: Box) -> bool:
    return all(abs(one[k] - other[k]) < (one[k + 2] + other[k + 2]) / 2 for k in (0, 1))


class GraphPanel(NamedTuple):
    """draw(axes): of matplotlib, in inches. low, high: the corners of what is drawn, margins included."""

    title: str
    note: str
    low: Point
    high: Point
    draw: Callable[[Any], None]


def save_panels(path: str | Path, panels: Sequence[GraphPanel]) -> None:
    """Draw into a png, svg or pdf file, by the suffix of `path`. Raises InputError as `save` does."""
    save(path, lambda: _figure(panels), "graph", {"svg.hashsalt": "graph", "hatch.linewidth": 0.7})


def _figure(panels: Sequence[GraphPanel]) -> Any:
    from matplotlib.figure import Figure

    texts = [(drawable(panel.title), drawable(panel.note)) for panel in panels]
    widths = [
        max(panel.high[0] - panel.low[0], 0.13 * len(title) + 0.4, 0.085 * len(note) + 0.4)
        for panel, (title, note) in zip(panels, texts, strict=True)
    ]
    heights = [panel.high[1] - panel.low[1] + HEADER_HEIGHT for panel in panels]
    width, height = max(widths), sum(heights)
    figure = Figure(figsize=(width, height))
    top = height
    for panel, (title, note), own in zip(panels, texts, heights, strict=True):
        axes = figure.add_axes((0.0, (top - own) / height, 1.0, (own - HEADER_HEIGHT) / height))
        axes.set_axis_off()
        axes.set_xlim(panel.low[0], panel.low[0] + width)
        axes.set_ylim(panel.low[1], panel.high[1])
        header: Any = ((0.14, title, {"size": 13.0, "weight": "bold"}), (0.42, note, {"size": 9.5}))
        for down, text, style in header:
            figure.text(0.16 / width, (top - down) / height, text, va="top", **style)
        panel.draw(axes)
        top -= own
    return figure


def corners(boxes: Iterable[Box]) -> tuple[Point, Point]:
    """The lower left and the upper right corner around boxes."""
    left, low, right, high = zip(*((x - w / 2, y - h / 2, x + w / 2, y + h / 2) for x, y, w, h in boxes), strict=True)
    return (min(left), min(low)), (max(right), max(high))
