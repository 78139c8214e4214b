"""One loader for every section of a file: plain data in, a checked dataclass of parameters out.

The dataclasses (`cosim.types.params`) are the only schema: the annotation of a field gives its type, its
`param` gives unit and bounds. Rig sections, controllers, trajectories and actuators are all read
here.
"""

from __future__ import annotations

import dataclasses
import operator
import sys
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from cosim.errors import InputError, SourceLocation, did_you_mean, plural, where_raised
from cosim.types import PerJoint
from cosim.units import JOINT_DIMENSIONS, UNITS, parse_quantity

T = TypeVar("T")
KeyPath = tuple[str | int, ...]
PlaceOf = Callable[[tuple], SourceLocation]

_BOUNDS = (("above", operator.gt, "above"), ("min", operator.ge, "at least"), ("max", operator.le, "at most"))
_ELEMENTS = {float: "numbers", int: "whole numbers", str: "names", bool: "true or false", tuple: "points"}
# kinds of joints whose one coordinate is a length; kinds with coordinates of both sorts, or of a sort not known
_SLIDING: set[str | None] = {"prismatic"}
_EITHER: set[str | None] = {"cylindrical", "planar", "free", "general", None}


@dataclass(frozen=True)
class Reading:
    """A file while it is read: where its keys stand, the mistakes found so far, its folder, and which joints the
    section at hand is for.

    joints: name -> kind (a key of `multibody.joints.KINDS`; None when unknown), which settles whether a
    `joint position` is an angle or a length and lets a `PerJoint` be given as a mapping {joint: value}.
    n: how many joints a `PerJoint` field is for; None when that is not known, then its length is not checked.
    """

    place: PlaceOf
    errors: list[InputError]
    folder: Path = Path()
    joints: Mapping[str, str | None] | None = None
    n: int | None = None

    def of(self, joints: Mapping[str, str | None] | None, n: int | None = None) -> Reading:
        """The same for a section about these joints; n: default their number."""
        return replace(self, joints=joints, n=len(joints) if n is None and joints is not None else n)

    def fail(self, path: KeyPath, what: str) -> None:
        self.errors.append(InputError(what, self.place(path)))

    def inherited_at(self, path: KeyPath, of: KeyPath, keys: Container[str]) -> Reading:
        """The same where these keys of the section at `path` are inherited from the section at `of`."""

        def place(where: tuple) -> SourceLocation:
            n = len(path)
            return self.place((*of, *where[n:]) if where[:n] == path and where[n:] and where[n] in keys else where)

        return replace(self, place=place)

    def mapping(self, data: Any, path: KeyPath) -> dict[str, Any]:
        """`data` if it is a mapping; an empty one, after noting the mistake, if it is not."""
        if isinstance(data, dict):
            return data
        if data is not None:
            self.fail(path, f"expected a mapping, got {show(data)}")
        return {}

    def unit(self, unit: str, joint: str | None) -> str:
        """The unit of a value of `joint` (None: of all of them), angular or linear as its joint is."""
        if unit not in JOINT_DIMENSIONS or not self.joints:
            return unit
        kinds = {self.joints.get(joint)} if joint is not None else set(self.joints.values())
        angular, linear = JOINT_DIMENSIONS[unit]
        if kinds <= _SLIDING:
            return linear
        return unit if kinds & (_SLIDING | _EITHER) else angular


def read(cls: type[T], data: Any, path: KeyPath, reading: Reading, besides: Iterable[str] = ()) -> T | None:
    """An instance of the dataclass `cls` from the mapping `data` that stands at `path`; None after mistakes.

    Numbers become SI values. Every mistake is noted in `reading` as one InputError at the place of its path.
    besides: keys of `data` that are read elsewhere. A ValueError of `__post_init__` is a mistake of the section
    as a whole.
    """
    before = len(reading.errors)
    values = read_fields(cls, data, path, reading, besides)
    if len(reading.errors) > before:
        return None
    try:
        return cls(**values)
    except ValueError as error:
        return reading.fail(path, str(error))
    except Exception as error:  # the class may be the user's own: anything can happen in it
        return reading.fail(path, f"cannot be set up: {type(error).__name__}: {error} ({where_raised(error)})")


def read_fields(cls: type, data: Any, path: KeyPath, reading: Reading, besides: Iterable[str] = ()) -> dict[str, Any]:
    """Like `read`, but only the values of those fields that are right, defaults included.

    For checks between fields that should not wait until every field is right.
    """
    data = {} if data is None else data
    if not isinstance(data, dict):
        keys = f" with the keys {', '.join(_keys(cls))};" if isinstance(data, list) and _keys(cls) else ","
        reading.fail(path, f"expected a mapping{keys} got {show(data)}")
        return {}
    hints = get_type_hints(cls, include_extras=True)
    fields = {field.name: field for field in dataclasses.fields(cls) if field.init}
    for key in data:
        if key not in fields and key not in besides:
            _unknown_key(reading, key, path, [*fields, *besides])
    values = {}
    for name, field in fields.items():
        before = len(reading.errors)
        if name in data:
            value = _value(reading, hints[name], data[name], field.metadata, (*path, name))
        else:
            value = _default(reading, hints[name], field, path)
        if len(reading.errors) == before:
            values[name] = value
    return values


def show(value: Any) -> str:
    """A value of a file as an error message quotes it, on one line."""
    words = {NoneType: "nothing", dict: "a mapping", list: "a list", bool: str(value).lower()}
    return words.get(type(value)) or repr(value)


def _keys(cls: type) -> list[str]:
    return [field.name for field in dataclasses.fields(cls) if field.init]


def _unknown_key(reading: Reading, key: str, path: KeyPath, known: Iterable[str]) -> None:
    """Reported in the line of the key, under the name of its section."""
    place = reading.place((*path, key))
    if place.line is not None:
        place = dataclasses.replace(place, key=place.key[: -len(key)].removesuffix("."))
    reading.errors.append(InputError(f"unknown key '{key}'{did_you_mean(key, known)}", place))


def _default(reading: Reading, hint: Any, field: dataclasses.Field, path: KeyPath) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    if field.default is dataclasses.MISSING:
        return reading.fail(path, f"missing key '{field.name}'")
    if hint is float and isinstance(field.default, int):
        return float(field.default)
    if isinstance(field.default, (int, float)) and PerJoint in (hint, *get_args(hint)):
        return (float(field.default),) * (1 if reading.n is None else reading.n)
    return field.default


# --- one reader per kind of annotation: (reading, hint, value, metadata of the field, path) -> value --------


def _value(reading: Reading, hint: Any, value: Any, meta: Mapping[str, Any], path: KeyPath) -> Any:
    reader = _READERS.get(hint) or _READERS.get(get_origin(hint), _record)
    return reader(reading, hint, value, meta, path)


def _number(
    reading: Reading, hint: Any, value: Any, meta: Mapping[str, Any], path: KeyPath, joint: str | None = None
) -> float | None:
    unit = reading.unit(meta.get("unit", "1"), joint)
    if isinstance(value, str) and (unit in UNITS or unit in JOINT_DIMENSIONS):
        try:
            value = parse_quantity(" ".join(value.split()), unit)
        except ValueError as error:
            return reading.fail(path, str(error))
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return reading.fail(path, f"expected a number, got {show(value)}")
    if not abs(value) <= sys.float_info.max:
        return reading.fail(path, f"must be a finite number, is {value}")
    suffix = "" if unit == "1" or unit in JOINT_DIMENSIONS else f" {unit}"
    for key, holds, words in _BOUNDS:
        bound = meta.get(key)
        if bound is not None and not holds(value, bound):
            what = f"must be {words} {bound:.12g}{suffix}, is {value:.12g}{suffix}"
            return reading.fail(path, what)
    return float(value)


def _whole(reading: Reading, hint: Any, value: Any, meta: Mapping[str, Any], path: KeyPath) -> int | None:
    number = _number(reading, hint, value, meta, path)
    if number is None:
        return None
    if not number.is_integer():
        return reading.fail(path, f"expected a whole number, got {show(value)}")
    return value if isinstance(value, int) else int(number)


def _flag(reading: Reading, hint: Any, value: Any, meta: Mapping[str, Any], path: KeyPath) -> bool | None:
    if isinstance(value, bool):
        return value
    return reading.fail(path, f"expected true or false, got {show(value)}")


def _text(reading: Reading, hint: Any, value: Any, meta: Mapping[str, Any], path: KeyPath) -> str | None:
    if isinstance(value, str):
        return value
    mend = "; put it in quotes" if isinstance(value, (bool, int, float)) else ""
    return reading.fail(path, f"expected text, got {show(value)}{mend}")


def _choice(reading: Reading, hint: Any, value: Any, meta: Mapping[str, Any], path: KeyPath) -> Any:
    options = get_args(hint)
    for option in options:
        if type(option) is type(value) and option == value:
            return option
    return reading.fail(path, f"expected one of {', '.join(map(str, options))}; got {show(value)}")


def _optional(reading: Reading, hint: Any, value: Any, meta: Mapping[str, Any], path: KeyPath) -> Any:
    if value is None:
        return None
    inner = [arg for arg in get_args(hint) if arg is not NoneType]
    if len(inner) != 1:
        return _record(reading, hint, value, meta, path)
    return _value(reading, inner[0], value, meta, path)


def _mapping(reading: Reading, hint: Any, value: Any, meta: Mapping[str, Any], path: KeyPath) -> dict | None:
    if isinstance(value, dict):
        return value
    return {} if value is None else reading.fail(path, f"expected a mapping, got {show(value)}")


def _sequence(reading: Reading, hint: Any, value: Any, meta: Mapping[str, Any], path: KeyPath) -> Any:
    """`list` as it stands; `list[X]` and `tuple[X, ...]` of any length; `tuple[X, Y]` of that length."""
    args = get_args(hint)
    fixed = get_origin(hint) is tuple and ... not in args
    words = _ELEMENTS.get(_plain(args[0]), "values") if args else "values"
    expected = f"{len(args)} {words}" if fixed else f"a list of {words}"
    if not isinstance(value, list):
        return reading.fail(path, f"expected {expected}, got {show(value)}")
    if fixed and len(value) != len(args):
        return reading.fail(path, f"expected {expected}, got {len(value)}")
    if not args:
        return value
    hints = args if fixed else args[:1] * len(value)
    items = (_value(reading, hints[i], item, meta, (*path, i)) for i, item in enumerate(value))
    return list(items) if get_origin(hint) is list else tuple(items)


def _plain(hint: Any) -> Any:
    """The type of the values of an annotation."""
    while get_origin(hint) is not None:
        hint = get_args(hint)[0] if get_origin(hint) is Annotated else get_origin(hint)
    return hint


def _checked(reading: Reading, hint: Any, value: Any, meta: Mapping[str, Any], path: KeyPath) -> Any:
    """`Annotated[X, check]`: what `check` makes of an X; its ValueError is the mistake."""
    inner, check = get_args(hint)
    before = len(reading.errors)
    value = _value(reading, inner, value, meta, path)
    if len(reading.errors) > before:
        return None
    try:
        return check(value)
    except ValueError as error:
        return reading.fail(path, str(error))


def _per_joint(reading: Reading, hint: Any, value: Any, meta: Mapping[str, Any], path: KeyPath) -> Any:
    """One number for all joints, a list with one per joint, or a mapping {joint: number}."""
    n, names = reading.n, tuple(reading.joints or ())
    if isinstance(value, dict) and names:
        for key in value:
            if key not in names:
                _unknown_key(reading, key, path, names)
        missing = [f"'{name}'" for name in names if name not in value]
        if missing:
            return reading.fail(path, f"missing the number of {', '.join(missing)}")
        items = [((*path, name), value[name]) for name in names]
    elif isinstance(value, list):
        if n is not None and len(value) != n:
            return reading.fail(path, f"expected {n} {plural(n, 'number')} (one per joint), got {len(value)}")
        items = [((*path, i), item) for i, item in enumerate(value)]
    else:
        items = [(path, value)] * (1 if n is None else n)
    numbers: list[Any] = []
    for i, (at, item) in enumerate(items):
        numbers.append(_number(reading, hint, item, meta, at, names[i] if i < len(names) else None))
        if numbers[-1] is None and at == path:
            break  # the one number for all is one mistake
    return tuple(numbers)


def _record(reading: Reading, hint: Any, value: Any, meta: Mapping[str, Any], path: KeyPath) -> Any:
    if not (isinstance(hint, type) and dataclasses.is_dataclass(hint)):
        return reading.fail(path, f"is declared as {hint}, which cannot be read from a file")
    return read(hint, value, path, reading)


_READERS: dict[Any, Callable[[Reading, Any, Any, Mapping[str, Any], KeyPath], Any]] = {
    float: _number,
    int: _whole,
    bool: _flag,
    str: _text,
    dict: _mapping,
    list: _sequence,
    tuple: _sequence,
    PerJoint: _per_joint,
    Annotated: _checked,
    Literal: _choice,
    Union: _optional,
    UnionType: _optional,
}
