"""What a table lacks for joints, in words: which columns may be theirs, and how they are named."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from cosim.core.errors import listed, plural
from cosim.core.tables.column_lists import in_short
from cosim.core.tables.quantities import WORDS
from cosim.core.tables.table import FileTable, name_and_unit
from cosim.core.tables.times import has_times

ALIKE = 0.75  # of a name that may be meant
MOST_SHOWN = 20  # columns
MOST_JOINTS = 6  # that are named
LONGEST_LIST = 120  # characters
_OF_JOINTS = ("joint", "joints", "joint_name", "name", "axis", "motor", "actuator")
_BETWEEN = "/._- "  # marks between a joint and a quantity


class Around(NamedTuple):
    """What is before and behind the names of joints in columns."""

    before: str
    behind: str

    def column(self, joint: str) -> str:
        return f"{self.before}{joint}{self.behind}"

    def words(self) -> str:
        parts = [f"'{part}' {where}" for part, where in ((self.before, "before"), (self.behind, "behind")) if part]
        return f"with {' and '.join(parts)} the name" if parts else "the name alone"


def around_names(names: Sequence[str], joints: Sequence[str], quantity: str) -> Around | None:
    """What all these joints have alike around their names in the columns of this quantity; None for nothing, or
    several."""
    first, known = joints[0], set(names)
    found = [Around(name[:k], name[k + len(first) :]) for name in names for k in _places(name, first)]
    found = [each for each in dict.fromkeys(found) if all(each.column(joint) in known for joint in joints)]
    of_it = [each for each in found if _word_behind(each.behind) in WORDS.get(quantity, ())]
    found = of_it or [each for each in found if not _word_behind(each.behind)] or found
    return found[0] if len(found) == 1 else None


def _word_behind(text: str) -> str:
    """Without marks, and without what is in brackets, a unit or not."""
    return re.sub(r"[\[(].*", "", text).strip(_BETWEEN).lower()


def _places(text: str, part: str) -> Iterator[int]:
    k = text.find(part)
    while k >= 0:
        yield k
        k = text.find(part, k + 1)


def near_column(names: Sequence[str], joint: str, quantity: str, others: Sequence[str]) -> str | None:
    """The column whose name is nearly the joint's, and no other joint's, of this quantity where there are several; None
    without one."""
    of_it = sorted(names, key=lambda name: _word_behind(name.rpartition("/")[2]) in WORDS.get(quantity, ()))
    stems = {name_and_unit(name.rpartition("/")[0] or name)[0]: name for name in of_it}
    near = difflib.get_close_matches(joint, sorted(stems.keys() - ({*others} - {joint})), n=1, cutoff=ALIKE)
    return stems[near[0]] if near else None


def long_table(table: FileTable, joints: Sequence[str], quantity: str) -> str | None:
    """That a table has a row for each joint, whose names are cells, and how it is turned; None for another one."""
    words = {name: name_and_unit(name)[0].strip().lower().replace(" ", "_") for name in table.names}
    column = next((k for k, name in enumerate(table.names) if words[name] in _OF_JOINTS), None)
    cells = None if column is None else table.strings(column)
    if column is None or not cells or not {*joints} & {*cells}:
        return None
    of_it = [name for name in table.names if words[name] in WORDS.get(quantity, ())]
    times = [name for name in table.names if has_times([name])]
    index, values = (names[0] if names else "…" for names in (times, of_it))
    pivot = f"pivot(index={index!r}, columns={table.names[column]!r}, values={values!r})"
    what = f"column '{table.names[column]}' has the names of joints, and each joint rows of its own"
    return f"{what}; write a column for each joint, in pandas by {pivot}"


def lacking_one(names: Sequence[str], others: Sequence[str], joint: str, wanted: str, quantity: str, way: str) -> str:
    """others: joints; wanted: the column of the joint; way: how another one is given."""
    if own := [name for name in names if name.rpartition("/")[0] == joint]:
        return f"no column '{wanted}', but {listed(own)}; name the right one by {way}"
    if (near := near_column(names, joint, quantity, others)) is not None:
        return f"no column '{wanted}'; did you mean '{near}'? name it by {way}"
    return f"no column '{wanted}'; its columns are {_some(names)}; name the right one by {way}"


def lacking_several(
    names: Sequence[str], others: Sequence[str], wanted: dict[str, str], quantity: str, way: str, to_all: str
) -> str:
    """others: joints; wanted: joint -> column; way: how one is given to the first joint; to_all: the same to all, in
    their order, as a list behind it, empty where other joints have columns."""
    joints = list(wanted)
    if (around := around_names(names, joints, quantity)) is not None:
        columns = [around.column(joint) for joint in joints]
        what = f"no columns of the {quantity} of {len(joints)} joints, but such as '{columns[0]}', {around.words()}"
        return f"{what}; name " + (f"them by {to_all}{_list(columns)}" if to_all else f"each as by {way}")
    shown = ", ".join(f"'{column}'" for column in list(wanted.values())[:MOST_JOINTS])
    more = f" and {len(joints) - MOST_JOINTS} more" if len(joints) > MOST_JOINTS else ""
    nearest = ((joint, near_column(names, joint, quantity, others)) for joint in joints)
    near = [f"'{column}' for '{joint}'" for joint, column in nearest if column is not None]
    meant = f"did you mean {listed(near[:MOST_JOINTS])}? " if near else f"its columns are {_some(names)}; "
    all_at_once = f", or all by {to_all}A,B,…" if to_all else ""
    return f"no {plural(len(joints), 'column')} {shown}{more}; {meant}name each as by {way}{all_at_once}"


def _list(columns: Sequence[str]) -> str:
    whole = in_short(columns)
    return whole if len(whole) <= LONGEST_LIST else f"{columns[0]},{columns[1]},… in the order of the joints"


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:MOST_SHOWN]) + (" …" if len(names) > MOST_SHOWN else "")
