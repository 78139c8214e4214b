"""Which column of a table is which quantity of which joint, by the names that programs give them.

For a joint `elbow` and its position, in this order: the column that the caller names; `elbow/position`, as recordings
of this program have it; `elbow`, of the quantity that the table is about; then `elbow.position`, `position.elbow`,
`position[elbow]`, `elbow_pos`, `q_elbow` and so on, in any case, with a unit (`elbow [deg]`, `elbow_deg`), and behind
a path (`/joint_states/elbow/position`). A column that is the name of another joint is that joint's.

Columns by number (`q1`, `actual_q_0`) are nobody's, because the order of joints differs between programs: they are to
be named, except where the table has columns of the names (`name[0]`, `field.name0`). In a log they may be taken in the
order of the joints, which is reported; see `cosim.core.tables.column_lists`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from cosim.core.errors import InputError, InputErrors, listed
from cosim.core.tables.column_lists import in_short, numbered_columns
from cosim.core.tables.gains import Gain
from cosim.core.tables.lacking_columns import lacking_one, lacking_several, long_table
from cosim.core.tables.options import TableOptions, given_columns, given_gains, given_units
from cosim.core.tables.quantities import TIME, WORDS, dimensions_of
from cosim.core.tables.table import FileTable, in_brackets, name_and_unit
from cosim.core.tables.times import columns_of_times
from cosim.core.units import UNITS, known_unit

_TO_QUOTE = re.compile(r"(?<!:)\s|[\"$&;|<>()*?`!\\]")
_BETWEEN = "/._- "  # marks between a joint and a quantity
_SUFFIX = re.compile(r"_(deg|rad|mm|m|cm|rpm|rads|degs|nm|a|ma|turns?|rev)$", re.IGNORECASE)
_SUFFIXES = {"rads": "rad/s", "degs": "deg/s", "nm": "N*m", "a": "A", "ma": "mA"}
_NUMBERED = re.compile(r"(?P<path>.*?)(?P<word>[a-z]+)\[?_?(?P<number>\d+)\]?")
_NAMES = ("name", "names", "joint_name", "joint_names")


class _Spellings(NamedTuple):
    """Spelling -> joint as it is, and in small letters, empty there where two joints have it."""

    exact: Mapping[str, str]
    small: Mapping[str, str]

    @classmethod
    def of(cls, exact: Mapping[str, str]) -> _Spellings:
        small = dict[str, str]()
        for spelling, joint in exact.items():
            low = spelling.lower()
            small[low] = joint if small.get(low, joint) == joint else ""
        return cls(exact, small)

    def joint(self, spelling: str) -> str | None:
        """None for no spelling."""
        return self.exact.get(spelling, self.small.get(spelling.lower()))


class _Owner(NamedTuple):
    """joint: whose column it is; depth: 1 behind a path, else 0; whole: brackets at the end are of the name; stripped:
    of a unit such as `_deg`."""

    joint: str
    depth: int
    whole: bool
    stripped: bool


@dataclass(frozen=True)
class NamedColumns:
    """The columns of joints in a table; units, named, gains: see `TableOptions`. about: the quantity that they mean
    where they give a joint alone; by_order: whether numbered columns are the joints' in their order."""

    table: FileTable
    joints: Sequence[str]
    units: Mapping[str, str]
    named: Mapping[str, str]
    keys: tuple[str, str, str, str]  # of units, columns, topic and gains, for messages
    about: str = "position"
    gains: Mapping[str, Gain] = field(default_factory=dict)
    by_order: bool = False
    _known: dict[tuple[str, bool], dict[int, _Owner]] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of(
        cls,
        table: FileTable,
        joints: Sequence[str],
        options: TableOptions,
        about: str = "position",
        by_order: bool = False,
    ) -> NamedColumns:
        """Raises InputError, at the key, for units, columns and gains that do not exist."""
        units = given_units(table, joints, options)
        named, gains = given_columns(table, joints, options), given_gains(joints, options, about)
        return cls(table, joints, units, named, options.keys, about, gains, by_order)

    def column(self, joint: str, quantity: str, bare: bool = False) -> int | None:
        """None without one. bare: whether the name of the joint alone is this quantity. Raises InputError for two
        columns that it could be."""
        for key in self._keys(joint, quantity):
            if key in self.named:
                return self.table.index(self.named[key])
        if self._of_current(joint, quantity):
            return self.column(joint, "current")
        found = self._by_name(joint, quantity, bare)
        if found is None:
            found = self._by_joint_alone(joint, quantity)
        if found is None and self.by_order and (ordered := self._by_order(quantity)):
            return ordered[list(self.joints).index(joint)]
        return found

    def _of_current(self, joint: str, quantity: str) -> bool:
        """Whether the gain of a quantity takes it from the current."""
        gain = self.gain(joint, quantity)
        return gain is not None and gain.per is not None and quantity != "current" and UNITS[gain.per][0] == "A"

    def _by_name(self, joint: str, quantity: str, bare: bool) -> int | None:
        table = self.table
        for name in self._names_of(joint):
            for key in (f"{name}/{quantity}", *((name,) if bare else ())):
                if key in table.names:
                    return table.index(key)
        owned = [(owner.depth, k) for k, owner in self._owners(quantity, bare).items() if owner.joint == joint]
        found = [k for depth, k in owned if depth == min(owned)[0]]
        if len(found) > 1:
            which, key = listed([table.names[k] for k in found]), next(self._keys(joint, quantity))
            what = f"the {quantity} of joint '{joint}' could be {which}; name one by {self.way(key)}"
            raise InputError(what, table.place(table.header))
        return found[0] if found else self._by_number(joint, quantity)

    def _by_joint_alone(self, joint: str, quantity: str) -> int | None:
        """The column of a log with the name of a joint alone, of what the table is about, and no other."""
        if not self.by_order or quantity != self.about or self._by_name(joint, quantity, False) is not None:
            return None
        found = self._by_name(joint, quantity, True)
        return None if found in self._times else found

    @cached_property
    def _times(self) -> tuple[int, ...]:
        try:
            return columns_of_times(self.table, self.named.get(TIME), self.keys[1])
        except InputError:  # which is raised again where the times are read
            return ()

    def _by_order(self, quantity: str) -> list[int] | None:
        """The numbered columns of a quantity in the order of the joints; None where any joint has one by its name."""
        if quantity not in WORDS or any(self._by_name(joint, quantity, False) is not None for joint in self.joints):
            return None
        if any(self._by_joint_alone(joint, quantity) is not None for joint in self.joints):
            return None
        about, at_motors = quantity == self.about, quantity == "current"
        return numbered_columns(self.table.names, WORDS[quantity], len(self.joints), at_motors, about)

    def said(self, wanted: Iterable[tuple[str, str, int]]) -> Iterator[str]:
        """What was guessed of these joints, quantities and columns."""
        wanted = list(wanted)
        yield from self._unknown_units(wanted)
        found = dict[str, list[tuple[str, int]]]()
        for joint, quantity, column in wanted:
            if not any(key in self.named for key in self._keys(joint, quantity)):
                found.setdefault(quantity, []).append((joint, column))
        for quantity, of in found.items():
            yield from self._said_of(quantity, [joint for joint, _ in of], [column for _, column in of])

    def of_no_joint(self, known: Collection[str], quantities: Sequence[str]) -> Iterator[str]:
        """That columns `<joint>/<quantity>` are read of no joint; known: the joints that there are, and other names of
        signals."""
        low, words = {name.lower() for name in known}, [each.removeprefix("measured_") for each in quantities]
        given = {self.table.index(name) for name in self.named.values()}
        found = list[str]()
        for k, name in enumerate(self.table.names):
            joint, mark, quantity = name_and_unit(name)[0].strip().lower().rpartition("/")
            ends = {joint[begin:] for begin in (0, *(match.end() for match in re.finditer("[/.]", joint)))}
            if mark and joint and quantity in words and not ends & low and k not in given:
                found.append(name)
        if found:
            one = f"column '{found[0]}' is named as of a joint that the rig does not have; it is left out"
            several = f"columns {listed(found)} are named as of joints that the rig does not have; they are left out"
            yield one if len(found) == 1 else several

    def _unknown_units(self, wanted: Iterable[tuple[str, str, int]]) -> Iterator[str]:
        """Of columns with a word in brackets that is no unit, and no part of the name of a joint."""
        for joint, quantity, column in wanted:
            name = self.table.names[column]
            if (text := in_brackets(name)) is None or f"[{text}]" in joint or f"({text})" in joint:
                continue
            if text not in (joint, *WORDS.get(quantity, ())) and self.unit(joint, quantity, column) is None:
                what = f"'{text}' behind the column '{name}' is no unit that is known, so it is taken as SI"
                yield f"{what}; give another one by {self._option(0, f'{joint}/{quantity}')}"
                return

    def _said_of(self, quantity: str, joints: Sequence[str], columns: Sequence[int]) -> Iterator[str]:
        """Of joints whose columns nobody names."""
        one, names = len(columns) == 1, in_short([self.table.names[k] for k in columns])
        current = any(self._of_current(joint, quantity) for joint in joints)
        if current:
            are = "is a current; times its gain it is" if one else "are currents; times their gains they are"
            yield f"{names} {are} the {quantity}"
        source = "current" if current else quantity
        pairs = zip(joints, columns, strict=True)
        alone = {joint: self.table.names[k] for joint, k in pairs if self._by_joint_alone(joint, source) == k}
        if alone:
            shown, (first, column) = in_short(list(alone.values())), next(iter(alone.items()))
            few = len(alone) < len(self.joints)
            key = f"{first}{self._sign}{column}" if few else f"{quantity}{self._sign}{shown}"
            are = "is" if len(alone) == 1 else "are"
            yield f"{shown} {are} taken as the {source}; to be certain, give {self._option(1, key)}"
        if self.by_order and (ordered := self._by_order(source)) and set(columns) <= set(ordered):
            said = f"{names} {'is' if one else 'are'} taken as the {source} of {listed(joints)}"
            said += "" if one else ", in this order"
            names = in_short([self.table.names[k] for k in ordered])
            yield f"{said}; to be certain, give {self._option(1, f'{quantity}{self._sign}{names}')}"

    @property
    def _sign(self) -> str:
        """Between a key and its value."""
        return "=" if self.keys[1].startswith("--") else ": "

    def all(self, joints: Sequence[str], quantity: str, bare: bool = False) -> list[int] | None:
        """The columns of these joints; None where one has none."""
        found = [self.column(joint, quantity, bare) for joint in joints]
        return None if None in found else [column for column in found if column is not None]

    def required(self, joints: Sequence[str], quantity: str, bare: bool = False) -> list[int]:
        """As `all`. Raises InputError for joints without a column, with what to write."""
        if (found := self.all(joints, quantity, bare)) is not None:
            return found
        raise self.error_of([joint for joint in joints if self.column(joint, quantity, bare) is None], quantity, bare)

    def error_of(self, joints: Sequence[str], quantity: str, bare: bool = False) -> InputError:
        """Of joints without a column, with what else is missing."""
        table = self.table
        error = InputError(self.lacking(joints, quantity, bare), table.place(table.header))
        try:
            columns_of_times(table, self.named.get(TIME), self.keys[1])
        except InputError as of_times:
            return InputErrors([error, of_times])
        return error

    def lacking(self, joints: Sequence[str], quantity: str, bare: bool = False) -> str:
        """That there are no such columns, in words."""
        names, wanted = self.table.names, {joint: joint if bare else f"{joint}/{quantity}" for joint in joints}
        first, plain = joints[0], quantity.removeprefix("measured_")
        if (of_long := long_table(self.table, joints, quantity)) is not None:
            return of_long
        way = self.way(first if plain == self.about else wanted[first])
        if len(joints) == 1:
            return lacking_one(names, self.joints, first, wanted[first], quantity, way)
        to_all = f"{self.keys[1]}{plain}{self._sign}" if len(joints) == len(self.joints) else ""
        return lacking_several(names, self.joints, wanted, quantity, way, to_all)

    def way(self, key: str) -> str:
        """How the column of a joint is given, for messages."""
        return self._option(1, f"{key}=COLUMN" if self._sign == "=" else key)

    def _option(self, which: int, text: str) -> str:
        """A key with what is given to it, as it is written: in quotes where it has blanks or signs of a shell."""
        return self.keys[which] + (f"'{text}'" if _TO_QUOTE.search(text) and "'" not in text else text)

    def factor(self, joint: str, quantity: str, column: int, dof_unit: str | None = None) -> float:
        """From the unit of a column to SI, 1 where nobody gives it. dof_unit: rad or m, None where unknown. Raises
        InputError for a unit of another quantity."""
        source = "current" if self._of_current(joint, quantity) else quantity
        unit, table = self.unit(joint, source, column), self.table
        allowed = dimensions_of(quantity, dof_unit)
        if (gain := self.gain(joint, quantity)) is not None:
            key = next(key for key in self._keys(joint, quantity) if key in self.gains)
            try:
                factor = gain.factor(unit, allowed)
            except ValueError as error:
                what = f"{error}, of joint '{joint}' and column '{table.names[column]}'"
                raise InputError(what, f"{self.keys[3]}{key}") from None
            if gain.unit is not None:
                return factor
        else:
            factor = 1.0
        if unit is None:
            return factor
        dimension, to_si = UNITS[unit]
        if allowed and dimension not in allowed:
            what = f"the {quantity} of joint '{joint}' is in {' or '.join(allowed)}, this column in {unit}"
            raise InputError(f"{what}; give another column or unit", table.place(table.header, table.names[column]))
        return factor * to_si if gain is not None else to_si

    def gain(self, joint: str, quantity: str) -> Gain | None:
        """The one that the caller gives."""
        return next((self.gains[key] for key in self._keys(joint, quantity) if key in self.gains), None)

    def unit(self, joint: str, quantity: str, column: int) -> str | None:
        """The unit that the caller gives, else that of the file; None without one."""
        name = self.table.names[column]
        for key in (name, *self._keys(joint, quantity), quantity, quantity.removeprefix("measured_")):
            if key in self.units:
                return self.units[key]
        owner = next((o for bare in (True, False) if (o := self._owners(quantity, bare).get(column))), None)
        if name in self.table.units and not (owner and owner.whole and name_and_unit(name)[1]):
            return self.table.units[name]
        match = _SUFFIX.search(name.lower())
        spelled = owner is not None and not owner.stripped  # what looks like a unit is of the name of the joint
        return known_unit(_SUFFIXES.get(match[1], match[1])) if match and not spelled else None

    def _owners(self, quantity: str, bare: bool) -> dict[int, _Owner]:
        """Column -> whose quantity it is; of several joints the one with the longest name."""
        if (quantity, bare) not in self._known:
            spelled = _Spellings.of(self._spellings(quantity, bare))
            owners = ((k, _owner(name, spelled)) for k, name in enumerate(self.table.names))
            self._known[quantity, bare] = {k: owner for k, owner in owners if owner is not None}
        return self._known[quantity, bare]

    def _spellings(self, quantity: str, bare: bool) -> dict[str, str]:
        """Spelling -> joint, empty of one that is of no quantity."""
        found = dict[str, str]()
        if len(self.joints) == 1:  # a quantity alone is that of the only joint
            found |= dict.fromkeys(WORDS.get(quantity, (quantity,)), self.joints[0])
        for joint in self.joints:
            for name in self._names_of(joint):
                found |= dict.fromkeys(_spellings(name, quantity), joint)
        found |= {name: joint if bare else "" for joint in self.joints for name in self._names_of(joint)}
        return found

    def _names_of(self, joint: str) -> tuple[str, ...]:
        """As it is, and without the blanks around it, which cells of a text lose, where no other joint has that."""
        plain = joint.strip()
        alike = [each for each in self.joints if each.strip() == plain]
        return (joint,) if plain == joint or len(alike) > 1 else (joint, plain)

    def _keys(self, joint: str, quantity: str) -> Iterator[str]:
        """By which a user gives the column or the unit of this quantity."""
        plain = quantity.removeprefix("measured_")
        yield f"{joint}/{quantity}"
        if plain != quantity:
            yield f"{joint}/{plain}"
        if plain == self.about:
            yield joint

    def _by_number(self, joint: str, quantity: str) -> int | None:
        """`position[2]` beside a column `name[2]` whose cells are the joint."""
        numbered = [_NUMBERED.fullmatch(name.lower()) for name in self.table.names]
        for column, match in enumerate(numbered):
            if not match or match["word"] not in _NAMES:
                continue
            if (cells := self.table.strings(column)) and set(cells) == {joint}:
                same, words = (match["path"], match["number"]), WORDS.get(quantity, (quantity,))
                alike = [k for k, of in enumerate(numbered) if of and (of["path"], of["number"]) == same]
                found = [k for k in alike if (of := numbered[k]) and of["word"] in words]
                return found[0] if len(found) == 1 else None
        return None


def _spellings(joint: str, quantity: str) -> Iterator[str]:
    for word in WORDS.get(quantity, (quantity,)):
        for mark in _BETWEEN:
            yield f"{joint}{mark}{word}"
            if not joint.isdecimal():  # `position_1` is the one with this number, in whatever order
                yield f"{word}{mark}{joint}"
        if not joint.isdecimal():
            yield f"{word}[{joint}]"
            yield f"{joint}[{word}]"


def _owner(name: str, spelled: _Spellings) -> _Owner | None:
    """Of a column, by its name, the name without its unit, and the ends behind its path; None without one."""
    for whole, text in ((True, name), (False, name_and_unit(name)[0].strip())):
        for depth, begin in enumerate([0, *(match.end() for match in re.finditer(r"[/.]", text))]):
            end = text[begin:]
            for stripped in (False, True):
                spelling = _SUFFIX.sub("", end) if stripped else end
                if (joint := spelled.joint(spelling)) is not None:
                    return _Owner(joint, min(depth, 1), whole, stripped and spelling != end)
    return None
