"""Columns of all joints together: those that a user lists in the order of the joints, and those that are numbered so.

A list is `q1..q6`, `q1,q2,q3`, `#2..#7`, or the name of an array (k, n), whose columns are `<name>[0]`, ….

Numbered columns are those of a quantity where they count all joints of the rig from 0 or 1 on, and no others do: `q1`,
`actual_qd_0`, `joint1/position`, `pos_joint_1`, `tau[0]`; `J1` where it is a position. Numbered commands and
quantities at motors are not. The order of the joints is a guess, which is to be said.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from cosim.core.tables.table import FileTable, name_and_unit

_NUMBERED = re.compile(r"(?P<head>.*?)(?P<number>\d+)(?P<tail>\D*)")
_UNIT = re.compile(r"_(deg|rad|mm|m|rpm|rads|degs|nm|a|ma)$", re.IGNORECASE)
_JOINTS = frozenset({"j", "joint", "jnt", "axis"})
_COMMANDED = frozenset(
    {"cmd", "command", "commanded", "target", "desired", "des", "ref", "reference", "goal", "setpoint", "err", "error"}
)
_AT_MOTORS = frozenset({"motor", "rotor", "actuator"})


def listed_columns(given: Any, table: FileTable) -> list[str]:
    """The names in a list of a user; not whether they are columns."""
    if isinstance(given, (list, tuple)):
        return [name for each in given for name in listed_columns(str(each), table)]
    text = str(given).strip()
    if text in table.names or any(name_and_unit(name)[0] == text for name in table.names):
        return [text]
    if array := _columns_of_array(text, table.names):
        return array
    if "," in text:
        return [name for each in text.split(",") for name in listed_columns(each, table)]
    return _counted(text) or [text]


def _columns_of_array(name: str, names: Sequence[str]) -> list[str]:
    of_array = re.compile(re.escape(name) + r"\[\d+\]")
    return [each for each in names if of_array.fullmatch(each)]


def _counted(text: str) -> list[str]:
    """Of `q1..q6` or `q1..6`; empty for others."""
    first, dots, last = text.partition("..")
    begin, end = _NUMBERED.fullmatch(first), _NUMBERED.fullmatch(last)
    if not dots or begin is None or end is None:
        return []
    if (end["head"], end["tail"]) not in ((begin["head"], begin["tail"]), ("", "")):
        return []
    a, b = int(begin["number"]), int(end["number"])
    numbers = range(a, b + 1) if a <= b else range(a, b - 1, -1)
    if len(numbers) > 1000:
        return []
    width = len(begin["number"]) if begin["number"].startswith("0") else 0
    return [f"{begin['head']}{number:0{width}d}{begin['tail']}" for number in numbers]


def numbered_columns(
    names: Sequence[str], words: Sequence[str], count: int, at_motors: bool, bare: bool
) -> list[int] | None:
    """The only columns, in their order, that count `count` joints from 0 or 1 on, and mean a quantity with these words;
    at_motors: whether it is one of the motors; bare: whether a number of a joint alone is the quantity. None where
    there are no such columns, or several."""
    families = dict[tuple[str, str], dict[int, list[int]]]()
    for column, name in enumerate(names):
        match = _NUMBERED.fullmatch(_UNIT.sub("", name_and_unit(name)[0].strip()).lower())
        if match and _means(match, words, at_motors, bare):
            family = families.setdefault((match["head"], match["tail"]), {})
            family.setdefault(int(match["number"]), []).append(column)
    if len(families) != 1:
        return None
    (family,) = families.values()
    numbers = sorted(family)
    if any(len(columns) > 1 for columns in family.values()) or numbers not in (
        list(range(count)),
        list(range(1, count + 1)),
    ):
        return None
    return [family[number][0] for number in numbers]


def _means(match: re.Match[str], words: Sequence[str], at_motors: bool, bare: bool) -> bool:
    head, tail = (re.findall(r"[^\W_]+", match[part]) for part in ("head", "tail"))
    if _COMMANDED & {*head, *tail} or (not at_motors and _AT_MOTORS & {*head, *tail}):
        return False
    ends = "_".join(head[-2:]) if "_".join(head[-2:]) in words else (head or [""])[-1]
    if not tail and ends in words:
        return True
    if not head or head[-1] not in _JOINTS:
        return False
    if tail:
        return "_".join(tail) in words
    return bare or (len(head) > 1 and head[-2] in words)


def in_short(names: Sequence[str]) -> str:
    """`q1..q6` of names that `listed_columns` reads so, else all of them."""
    text = f"{names[0]}..{names[-1]}"
    return text if len(names) > 2 and _counted(text) == list(names) else ",".join(names)
