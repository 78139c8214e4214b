"""Tables of text for reports. A table is as wide as its content: a narrow terminal breaks its lines."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Iterator, Sequence

from cosim.core.errors import escaped
from cosim.output.plain_text import BOLD, NOT_BOLD

SPACE = "  "  # between columns


class TextTable:
    """Rows of text under a heading and a rule; texts are on the left, numbers on the right."""

    def __init__(self, texts: Sequence[str], numbers: Sequence[str]) -> None:
        """The headings of the columns."""
        self._texts = len(texts)
        self._rows = [(*texts, *numbers)]

    def add_row(self, *cells: str) -> None:
        self._rows.append(tuple(map(escaped, cells)))  # a row is one line

    def lines(self) -> Iterator[str]:
        widths = [max(map(_width, column)) for column in zip(*self._rows, strict=True)]
        heading, *rows = (SPACE.join(self._cells(row, widths)).rstrip() for row in self._rows)
        yield bold(heading)
        yield "─" * (sum(widths) + len(SPACE) * (len(widths) - 1))
        yield from rows

    def _cells(self, row: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
        for k, (cell, width) in enumerate(zip(row, widths, strict=True)):
            space = " " * (width - _width(cell))
            yield cell + space if k < self._texts else space + cell


def bold(text: str) -> str:
    """The text in bold on a terminal."""
    return f"{BOLD}{text}{NOT_BOLD}" if sys.stdout.isatty() else text


def _width(text: str) -> int:
    """Columns of a terminal that a text takes."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return len(text) + wide - sum(map(bool, map(unicodedata.combining, text)))
