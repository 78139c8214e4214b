"""Texts of a plot: wrapped blocks, names of rows, and legends above axes."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cosim.output.palette import SOFT

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend

CHARACTERS_PER_INCH = {13.0: 7.0, 9.5: 11.0, 8.5: 12.5}  # by font size in points
LINE_HEIGHT = 1.5 / 72.0  # inches per point of font size

TITLE_SIZE = 9.5  # of the titles of columns, points
SMALLEST_NAME = 3.5  # of the name of a row, points
BOLD = 1.15  # widths of plain characters
LEGEND_SIZE = 7.5  # of the names of curves, points
# of a legend, in font sizes: length of the line and its distance to the name; distance between entries
HANDLE, ENTRY_SPACING = (1.5, 0.5), 1.2


@dataclass(frozen=True)
class TextBlock:
    """A text in as many lines as the width of the figure requires."""

    lines: list[str]
    size: float  # points

    @classmethod
    def of(cls, text: str, size: float, width: float) -> TextBlock:
        """width: of the figure, inches."""
        return cls(textwrap.wrap(text, int(CHARACTERS_PER_INCH[size] * (width - 0.24))), size)

    @property
    def height(self) -> float:
        """inches"""
        return LINE_HEIGHT * self.size * len(self.lines)

    def write(self, figure: Figure, top: float, **style: Any) -> None:
        """top: inches from the upper edge of the figure."""
        width, height = figure.get_size_inches()
        x, y = 0.12 / width, 1.0 - top / height
        figure.text(x, y, "\n".join(self.lines), va="top", fontsize=self.size, **style)


def text_width(text: str, size: float) -> float:
    """inches; rendered on pixels, characters are up to 3 % wider than their outlines"""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    points = text_to_path.get_text_width_height_descent(text, FontProperties(size=size), ismath=False)[0]
    return 1.03 * points / 72.0


def shorten_to_width(text: str, size: float, width: float) -> str:
    """The text, with its middle elided if it is wider than `width` inches."""
    shorter = (f"{text[: (n + 1) // 2]}…{text[len(text) - n // 2 :]}" for n in range(len(text) - 2, 0, -1))
    return next((t for t in (text, *shorter) if text_width(t, size) <= width), "…")


def draw_row_name(axes: Axes, joint: str, row_height: float) -> None:
    """As large as it fits; what is too long for the smallest size is shortened in its middle."""
    fitting = 72.0 * row_height / (0.65 * len(joint))  # points; a character is about 0.65 of its size wide
    if fitting < SMALLEST_NAME:
        joint, fitting = shorten_to_width(joint, SMALLEST_NAME, row_height / BOLD), SMALLEST_NAME
    axes.text(
        0.5, 0.5, joint, rotation=90, ha="center", va="center", fontweight="bold",
        fontsize=min(10.0, fitting), transform=axes.transAxes,
    )  # fmt: skip


def anonymous(handles: Collection[object]) -> list[str]:
    """Names of a legend until `show_names`: matplotlib leaves out those that begin with _."""
    return ["–"] * len(handles)


def show_names(legend: Legend, names: Iterable[str]) -> None:
    for text, name in zip(legend.get_texts(), names, strict=True):
        text.set_text(name)


@dataclass(frozen=True)
class PlotLegend:
    """The legend above axes, in as many lines as its names require."""

    names: list[str]
    columns: int

    @classmethod
    def of(cls, names: Sequence[str], width: float) -> PlotLegend:
        """width: of the axes, inches."""
        beside, between = sum(HANDLE) * LEGEND_SIZE / 72.0, ENTRY_SPACING * LEGEND_SIZE / 72.0
        # one long name must not put every entry on its own line
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

    def write(self, axes: Axes, handles: Sequence[Artist], room: float) -> None:
        """room: between the axes and their title, inches."""
        from matplotlib.transforms import ScaledTranslation

        legend = axes.legend(
            handles, anonymous(handles), ncols=self.columns, fontsize=LEGEND_SIZE, frameon=False, loc="upper center",
            bbox_to_anchor=(0.5, 1.0), handlelength=HANDLE[0], handletextpad=HANDLE[1], columnspacing=ENTRY_SPACING,
            bbox_transform=axes.transAxes + ScaledTranslation(0.0, room, axes.figure.dpi_scale_trans),
            borderpad=0.0, borderaxespad=0.0, labelspacing=0.3,
        )  # fmt: skip
        show_names(legend, self.names)
        for text in legend.get_texts():
            text.set_color(SOFT)
