"""What a user gives of a table of another program, where the file does not say it: units, columns, gains."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from cosim.core.errors import InputError, did_you_mean, plural
from cosim.core.tables.column_lists import listed_columns
from cosim.core.tables.gains import Gain, read_gains
from cosim.core.tables.quantities import TIME, WORDS, dimensions_of, is_quantity, names_a_quantity
from cosim.core.tables.table import FileTable
from cosim.core.units import UNITS, known_unit


class TableOptions(NamedTuple):
    """What a user gives, where a file does not have it. units: of the time `t`, a quantity, a joint or a column;
    columns: the column of `t`, of a joint or of `<joint>/<quantity>`, or of a quantity those of all joints in their
    order, as a list or as `listed_columns` reads it; topic: of an MCAP file with several; keys: how units, columns,
    topic and gains are given, for messages; gains: of a joint, a quantity or `<joint>/<quantity>`, a number with or
    without a unit such as `14.87 N*m/A`, or one for each joint, see `Gain`."""

    units: Mapping[Any, Any] = {}
    columns: Mapping[Any, Any] = {}
    topic: str | None = None
    keys: tuple[str, str, str, str] = ("units.", "columns.", "topic", "gains.")
    gains: Mapping[Any, Any] = {}


V = TypeVar("V")
COMMAND_KEYS = ("--unit ", "--column ", "--topic", "--gain ")  # of options of the command line
SAID_BY_THE_FILE = TableOptions()


def given_units(table: FileTable, joints: Sequence[str], options: TableOptions) -> dict[str, str]:
    found = dict[str, str]()
    for key, value in options.units.items():
        unit, name, place = known_unit(str(value)), str(key), f"{options.keys[0]}{key}"
        if unit is None:
            raise InputError(f"there is no unit '{value}'{did_you_mean(str(value), UNITS)}", place)
        if name not in (TIME, *joints, *table.names, *WORDS) and not names_a_quantity(name, joints):
            near = did_you_mean(name, [TIME, *joints, *WORDS, *table.names])
            raise InputError(f"there is no joint, quantity or column '{name}'{near}", place)
        found[name] = unit
    return found


def given_columns(table: FileTable, joints: Sequence[str], options: TableOptions) -> dict[str, str]:
    """Of `t`, of a joint, or of `<joint>/<quantity>`; what is given of one joint goes before a list."""
    lists, single = dict[str, str](), dict[str, str]()
    for key, value in options.columns.items():
        name, place = str(key), f"{options.keys[1]}{key}"
        of_one = name in (TIME, *joints)
        _check_key(name, joints, place, TIME)
        names = [str(value)] if of_one or names_a_quantity(name, joints) else listed_columns(value, table)
        for column in names:
            try:
                table.index(column)
            except InputError as error:
                raise InputError(f"{table.path} has {error.what}", place) from None
        if of_one or names_a_quantity(name, joints):
            single[name] = names[0]
        else:
            lists |= _for_each(joints, name, names, "column", place)
    return lists | single


def given_gains(joints: Sequence[str], options: TableOptions, about: str) -> dict[str, Gain]:
    """As `_columns`; a quantity may have one gain for all joints."""
    lists, single = dict[str, Gain](), dict[str, Gain]()
    for key, value in options.gains.items():
        name, place = str(key), f"{options.keys[3]}{key}"
        _check_key(name, joints, place)
        quantity = about if name in joints else name.rpartition("/")[2]
        try:
            gains = read_gains(value, dimensions_of(quantity, None))
        except ValueError as error:
            raise InputError(str(error), place) from None
        if name in joints or names_a_quantity(name, joints):
            if len(gains) != 1:
                raise InputError(f"{len(gains)} gains of one joint; give one", place)
            single[name] = gains[0]
        else:
            lists |= _for_each(joints, name, gains * len(joints) if len(gains) == 1 else gains, "gain", place)
    return lists | single


def _for_each(joints: Sequence[str], quantity: str, values: Sequence[V], what: str, place: str) -> dict[str, V]:
    """`<joint>/<quantity>` -> value, in the order of the joints. Raises InputError for another number of values."""
    if len(values) != len(joints):
        given = f"{len(values)} {plural(len(values), what)} for {len(joints)} joints"
        raise InputError(f"{given}; give one for each, in the order {', '.join(joints)}", place)
    return {f"{joint}/{quantity}": value for joint, value in zip(joints, values, strict=True)}


def _check_key(name: str, joints: Sequence[str], place: str, *others: str) -> None:
    """Raises InputError for what is no joint, quantity or both."""
    if name in (*others, *joints) or is_quantity(name) or names_a_quantity(name, joints):
        return
    joint, _, quantity = name.rpartition("/")
    if joint in joints:
        raise InputError(f"there is no quantity '{quantity}'{did_you_mean(quantity, WORDS)}", place)
    unknown = joint or quantity
    if not joint and (close := difflib.get_close_matches(name, WORDS, n=1)):
        raise InputError(f"there is no joint or quantity '{name}'; did you mean '{close[0]}'?", place)
    raise InputError(f"there is no joint '{unknown}'{did_you_mean(unknown, [*others, *joints])}", place)
