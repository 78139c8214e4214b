"""Words on a picture: lines that fit, names of rows, and keys of curves above their axes."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cosim.output.plot.style import SOFT

CHARACTERS_PER_INCH = {13.0: 7.0, 9.5: 11.0, 8.5: 12.5}  # that fit into an inch, by size of the letters in points
LINE_HEIGHT = 1.5 / 72.0  # inches from line to line per point of size

TITLE_SIZE = 9.5  # size of the titles of columns, points
LEGEND_SIZE = 7.5  # size of the names of curves, points
# of a key, in sizes of its letters: the line of an entry and its gap to the name; the gap between entries
HANDLE, GAP = (1.5, 0.5), 1.2


@dataclass(frozen=True)
class TextBlock:
    """A text in as many lines as it needs to stay on the picture."""

    lines: list[str]
    size: float  # points

    @classmethod
    def of(cls, text: str, size: float, width: float) -> TextBlock:
        """width: of the picture, inches."""
        return cls(textwrap.wrap(text, int(CHARACTERS_PER_INCH[size] * (width - 0.24))), size)

    @property
    def height(self) -> float:
        """inches"""
        return LINE_HEIGHT * self.size * len(self.lines)

    def write(self, figure: Any, top: float, **style: Any) -> None:
        """top: inches from the upper edge."""
        width, height = figure.get_size_inches()
        x, y = 0.12 / width, 1.0 - top / height
        figure.text(x, y, "\n".join(self.lines), va="top", fontsize=self.size, parse_math=False, **style)


def text_width(text: str, size: float) -> float:
    """inches; drawn on pixels, letters are up to 3 % wider than their outlines"""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    points = text_to_path.get_text_width_height_descent(text, FontProperties(size=size), ismath=False)[0]
    return 1.03 * points / 72.0


def shorten_to_width(text: str, size: float, width: float) -> str:
    """The text, without its middle where it is wider than `width` inches."""
    shorter = (f"{text[: (n + 1) // 2]}…{text[len(text) - n // 2 :]}" for n in range(len(text) - 2, 0, -1))
    return next((t for t in (text, *shorter) if text_width(t, size) <= width), "…")


def draw_row_name(axes: Any, joint: str, row_height: float) -> None:
    fitting = 72.0 * row_height / (0.65 * len(joint))  # points; a letter is about 0.65 of its size wide
    axes.text(
        0.5, 0.5, joint, rotation=90, ha="center", va="center", fontweight="bold",
        fontsize=min(10.0, fitting), parse_math=False, transform=axes.transAxes,
    )  # fmt: skip


@dataclass(frozen=True)
class PlotLegend:
    """Names of the curves above axes, in as many lines as they need."""

    names: list[str]
    columns: int

    @classmethod
    def of(cls, names: Sequence[str], width: float) -> PlotLegend:
        """width: of the axes, inches."""
        beside, between = sum(HANDLE) * LEGEND_SIZE / 72.0, GAP * LEGEND_SIZE / 72.0
        # one long name does not put all of them below each other
        widest = width if len(names) < 3 else 0.5 * (width - between)
        shown = [shorten_to_width(name, LEGEND_SIZE, widest - beside) for name in names]
        widths = [beside + between + text_width(name, LEGEND_SIZE) for name in shown]
        if sum(widths) <= width + between:
            return cls(shown, len(shown))
        lines = -(-len(shown) // max(1, int((width + between) / max(widths))))
        return cls(shown, -(-len(shown) // lines))

    @property
    def height(self) -> float:
        """inches"""
        return LINE_HEIGHT * LEGEND_SIZE * -(-len(self.names) // self.columns)

    def write(self, axes: Any, handles: Sequence[Any], room: float) -> None:
        """room: between the axes and their title, inches."""
        from matplotlib.transforms import ScaledTranslation

        legend = axes.legend(
            handles, ["–"] * len(handles), ncols=self.columns, fontsize=LEGEND_SIZE, frameon=False, loc="upper center",
            bbox_to_anchor=(0.5, 1.0), handlelength=HANDLE[0], handletextpad=HANDLE[1], columnspacing=GAP,
            bbox_transform=axes.transAxes + ScaledTranslation(0.0, room, axes.figure.dpi_scale_trans),
            borderpad=0.0, borderaxespad=0.0, labelspacing=0.3,
        )  # fmt: skip
        for text, name in zip(legend.get_texts(), self.names, strict=True):  # as they are: no formulas in names
            text.set(text=name, parse_math=False, color=SOFT)
