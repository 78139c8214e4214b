"""Lines of text between a host and a board: their fields, and the patterns that a rig gives for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from cosim.drivers.transport.text_pattern import NUMBER, WHOLE_NUMBER, WORD, TextPattern
from cosim.errors import did_you_mean

MAX_LINE = 256  # bytes
_NUMBERS = ("position", "velocity", "effort", "temperature", "watchdog", "effort_limit", "max_effort", "max_velocity")
FIELDS = {
    **dict.fromkeys(_NUMBERS, NUMBER),
    **dict.fromkeys(("id", "fault"), WHOLE_NUMBER),
    **dict.fromkeys(("mode", "model"), WORD),
}


class Pattern(TextPattern):
    def __init__(self, text: str) -> None:
        """Raises ValueError for a wrong pattern."""
        super().__init__(text, FIELDS)


def pattern_of(known: Iterable[str], needed: Iterable[str] = ()) -> Callable[[str], str]:
    """A check of a pattern in a rig: which fields it may have, and which it must have. An empty one has none."""
    known, needed = tuple(known), tuple(needed)

    def check(text: str) -> str:
        pattern = Pattern(text)
        for name in pattern.fields:
            if name not in known:
                raise ValueError(f"unknown field '{name}'{did_you_mean(name, known)}")
        for name in needed:
            if name not in pattern.fields and pattern:
                raise ValueError(f"lacks the field '{{{name}}}'; add it")
        return text

    return check
