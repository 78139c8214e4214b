"""The cause of a stop as one word, from the sentence with the reason of a stop.

The words are the keys of the table of limits, and of OTHERS for what drivers, connections and controllers report.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from cosim.control.limits import LIMITS, GuardLimit
from cosim.core.units import JOINT_DIMENSIONS

UNKNOWN = "other"
# word -> the beginning of its sentences; the first group is the name of what failed
OTHERS: dict[str, tuple[str, ...]] = {
    "stale": (r"(?:joint|the load motor of) '([^']+)' has sent no feedback for ",),
    "not_finite": (
        r"joint '([^']+)' is not finite",
        r"joint '([^']+)' is commanded an effort that is not finite",
        r"joint '([^']+)': .* reports no number",
        r"the command of joint '([^']+)'.* is not finite",
    ),
    "jump": (r"joint '([^']+)' jumped by ",),
    "drive_fault": (r"the (?:drive|load motor) of joint '([^']+)' reports ",),
    "shaft": (r"the load motor of '([^']+)' turns at ",),
    "bus_off": (r"()bus off: ",),
    "connection": (r"()the connection is ", r"()a command could not be sent by its deadline"),
    "controller": (r"controller '([^']+)' failed: ",),
    "driver": (r"the driver of ([^:]+) failed: ",),
}
WORDS = (*(row.key for row in LIMITS), *OTHERS)


class StopCause(NamedTuple):
    """The cause of a stop as one word, with what failed. name: of the joint, controller or driver, "" where the
    sentence has none."""

    word: str
    name: str


def cause_of(sentence: str) -> StopCause:
    """The cause that a sentence of `Scheduler.fault` states; UNKNOWN where the table has no such cause."""
    found = ((word, pattern.search(sentence)) for word, pattern in _patterns())
    return next((StopCause(word, match[1]) for word, match in found if match), StopCause(UNKNOWN, ""))


@cache
def _patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """The sentences with the most words first: those with fewer may match them too."""
    others = [(word, re.compile(text)) for word, texts in OTHERS.items() for text in texts]
    messages = [(row, text) for row in LIMITS for text in (row.reason, row.controlled_stop) if text]
    messages.sort(key=lambda each: -len(_FIELD.sub("", _what(each[1]))))
    return (*others, *((row.key, _of_message(row, text)) for row, text in messages))


_FIELD = re.compile(r"\{(\w+)\}")


def _what(message: str) -> str:
    """The message without its fix."""
    return message.split("; ")[0]


def _of_message(row: GuardLimit, message: str) -> re.Pattern[str]:
    """The pattern of the sentences of a limit, with its unit, by which it differs from those with the same words."""
    units = "|".join(map(re.escape, JOINT_DIMENSIONS.get(row.unit, (row.unit,))))
    values = {"limit": rf"[^;]+? (?:{units})(?![\w*/])"}
    texts = _FIELD.split(_what(message))  # text, name, text, name, …
    parts = [values.get(text, "[^;]+?") if k % 2 else re.escape(text) for k, text in enumerate(texts)]
    return re.compile(r"joint '([^']+)' " + "".join(parts))
