"""Labels of pictures as boxes: their size is estimated from their characters, lengths in inches."""

from __future__ import annotations

from collections.abc import Iterable

from cosim.output.plot import drawable

CHARACTER_WIDTH, LINE_HEIGHT = 0.067, 0.13  # of text of 7.5 pt

Point = tuple[float, float]
Box = tuple[float, float, float, float]  # centre x and y, width, height


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
