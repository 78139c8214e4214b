"""Which column of a table is which quantity of which joint, by the names that programs give them.

For a joint `elbow` and its position, in this order: the column that the caller names; `elbow/position`, as recordings
of this program have it; `elbow`, of the quantity that the table is about; then `elbow.position`, `position.elbow`,
`position[elbow]`, `elbow_pos`, `q_elbow` and so on, in any case, with a unit (`elbow [deg]`, `elbow_deg`), and behind
a path (`/joint_states/elbow/position`). A column that is the name of another joint is that joint's.

Columns by number (`q1`, `actual_q_0`) are nobody's, because the order of joints differs between programs: they are to
be named, except where the table has columns of the names (`name[0]`, `field.name0`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from cosim.core.errors import InputError, InputErrors, did_you_mean, listed
from cosim.core.tables.table import Table, name_and_unit
from cosim.core.units import known_unit

# quantity -> its words, the one of this program first
WORDS: dict[str, tuple[str, ...]] = {
    "position": ("position", "positions", "pos", "q", "angle", "pose", "jpos"),
    "velocity": ("velocity", "velocities", "vel", "qd", "dq", "qdot", "speed", "jvel"),
    "acceleration": ("acceleration", "accelerations", "acc", "accel", "qdd", "ddq"),
    "effort": ("effort", "efforts", "torque", "tau", "force", "eff", "moment"),
    "measured_effort": ("measured_effort",),
    "measured_position": ("measured_position",),
    "current": ("current", "currents", "cur", "i"),
}
_JOINTS = "/._- "  # marks between a joint and a quantity
_SUFFIX = re.compile(r"_(deg|rad|mm|m|cm|rpm|rads|degs|nm|a|ma|turns?|rev)$")
_SUFFIXES = {"rads": "rad/s", "degs": "deg/s", "nm": "N*m", "a": "A", "ma": "mA", "turns": "turn"}
_NUMBERED = re.compile(r"(?P<path>.*?)(?P<word>[A-Za-z]+)\[?_?(?P<number>\d+)\]?")
_NAMES = ("name", "names", "joint_name", "joint_names")


def column_of(
    table: Table,
    joint: str,
    quantity: str,
    joints: Sequence[str],
    named: Mapping[str, str] | None = None,
    bare: bool = False,
) -> int | None:
    """The column of a quantity of a joint, None without one. joints: all of them; named: column by `<joint>/<quantity>`
    or joint; bare: whether the name of the joint alone is this quantity. Raises InputError for two that it could be."""
    for key in (f"{joint}/{quantity}", *((joint,) if bare else ())):
        if named and key in named:
            return table.index(named[key])
    for name in (f"{joint}/{quantity}", *((joint,) if bare else ())):
        if name in table.names:
            return table.index(name)
    others = {other.lower() for other in joints if other != joint}
    wanted = set(_spellings(joint.lower(), quantity)) | ({joint.lower()} if bare else set())
    wanted -= others
    for level in (_whole, _without_path):
        found = [k for k, name in enumerate(table.names) if level(name) & wanted and name.lower() not in others]
        if len(found) > 1:
            which = listed([table.names[k] for k in found])
            what = f"the {quantity} of joint '{joint}' could be {which}; name one in 'columns', or rename the others"
            raise InputError(what, table.place(table.header))
        if found:
            return found[0]
    return _by_number(table, joint, quantity)


def columns_of(
    table: Table, joints: Sequence[str], quantity: str, named: Mapping[str, str] | None = None, bare: bool = False
) -> list[int]:
    """As `column_of`, of all joints. Raises InputErrors for joints without one, with what to write."""
    found = [column_of(table, joint, quantity, joints, named, bare) for joint in joints]
    lacking = [joint for joint, column in zip(joints, found, strict=True) if column is None]
    if lacking:
        raise InputErrors(
            InputError(missing(table, joint, quantity, bare), table.place(table.header)) for joint in lacking
        )
    return [column for column in found if column is not None]


def missing(table: Table, joint: str, quantity: str, bare: bool) -> str:
    wanted = joint if bare else f"{joint}/{quantity}"
    near = did_you_mean(wanted, table.names)
    if "did you mean" in near:
        return f"no column '{wanted}'{near}"
    shown = ", ".join(table.names[:20]) + (" …" if len(table.names) > 20 else "")
    return f"no column '{wanted}'; its columns are {shown}; name the one of each joint in 'columns'"


def unit_of_column(table: Table, column: int, units: Mapping[str, str] | None, joint: str, quantity: str) -> str | None:
    """The unit that the caller gives the column, the joint or the quantity, else the one of the file; None without."""
    name = table.names[column]
    for key in (name, f"{joint}/{quantity}", joint, quantity):
        if units and key in units:
            return units[key]
    if name in table.units:
        return table.units[name]
    match = _SUFFIX.search(name.lower())
    if match and name != joint:
        word = _SUFFIXES.get(match[1], match[1])
        return known_unit(word)
    return None


def _spellings(joint: str, quantity: str) -> Iterator[str]:
    for word in WORDS.get(quantity, (quantity,)):
        for mark in _JOINTS:
            yield f"{joint}{mark}{word}"
            yield f"{word}{mark}{joint}"
        yield f"{word}[{joint}]"
        yield f"{joint}[{word}]"


def _whole(name: str) -> set[str]:
    """The name in small letters, without its unit."""
    plain = name_and_unit(name)[0].lower().strip()
    return {plain, _SUFFIX.sub("", plain)}


def _without_path(name: str) -> set[str]:
    """The ends of a name behind each of its marks."""
    found = set[str]()
    for plain in _whole(name):
        found |= {plain[match.end() :] for match in re.finditer(r"[/.]", plain)}
    return found


def _by_number(table: Table, joint: str, quantity: str) -> int | None:
    """`position[2]` beside a column `name[2]` whose cells are the joint."""
    for column, name in enumerate(table.names):
        match = _NUMBERED.fullmatch(name.lower())
        if match and match["word"] in _NAMES and (cells := table.strings(column)) and set(cells) == {joint}:
            alike = [
                k
                for k, other in enumerate(table.names)
                if (of := _NUMBERED.fullmatch(other.lower()))
                and (of["path"], of["number"]) == (match["path"], match["number"])
                and of["word"] in WORDS.get(quantity, (quantity,))
            ]
            return alike[0] if len(alike) == 1 else None
    return None
