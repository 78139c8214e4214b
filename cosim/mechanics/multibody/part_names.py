"""Names of the parts of a link that no file names: cut links, the modes, nodes and pieces of elastic links."""

from __future__ import annotations

from collections.abc import Iterable

PART = "@"  # between the names of a link and its part


def part_of(link: str, part: object) -> str:
    return f"{link}{PART}{part}"


def whole_of(name: str) -> str:
    """The link that a part belongs to: the name that messages give."""
    return name.partition(PART)[0]


def given_names(names: Iterable[str]) -> list[str]:
    """Those that a user can name."""
    return [name for name in names if PART not in name]


def shown_name(name: str) -> str:
    """Of a link or a part, where each needs a name of its own: `boom`, `boom (3)`."""
    whole, _, part = name.partition(PART)
    return f"{whole} ({part})" if part else whole
