"""Lines of text between a host and a board: their fields, and the patterns that a rig gives for them."""

from __future__ import annotations

from functools import partial

from cosim.plugins.drivers.transport.text_pattern import NUMBER, WHOLE_NUMBER, WORD, TextPattern, pattern_check

MAX_LINE = 256  # bytes
_NUMBERS = ("position", "velocity", "effort", "temperature", "watchdog", "effort_limit", "max_effort", "max_velocity")
FIELDS = {
    **dict.fromkeys(_NUMBERS, NUMBER),
    **dict.fromkeys(("id", "fault"), WHOLE_NUMBER),
    **dict.fromkeys(("mode", "model"), WORD),
}
Pattern = partial(TextPattern, kinds=FIELDS)
pattern_of = partial(pattern_check, FIELDS)
