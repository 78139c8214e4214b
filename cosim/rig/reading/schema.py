"""The loader for every section of a file: from plain data to a checked dataclass of parameters.

The dataclasses (`cosim.core.types.params`) are the only schema: the annotation of a field gives its type, its `param`
the unit and bounds. Sections of a rig and parameters of plug-ins are all read here.
"""

from __future__ import annotations

import dataclasses
import operator
import sys
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from cosim.core.errors import InputError, SourceLocation, did_you_mean, listed, plural, shortened, where_raised
from cosim.core.paths import locate
from cosim.core.types import PerJoint, hints_of
from cosim.core.units import JOINT_DIMENSIONS, UNITS, parse_quantity
from cosim.mechanics.bondgraph.expressions import NO_NAMES, Names
from cosim.mechanics.multibody.joints import unit_of
from cosim.rig.reading.yaml_source import YamlValue

T = TypeVar("T")
KeyPath = tuple[str | int, ...]
PlaceOf = Callable[[tuple], SourceLocation]
Reader = Callable[["Reading", Any, Any, Mapping[str, Any], KeyPath], Any]

_BOUNDS = (("above", operator.gt, "above"), ("min", operator.ge, "at least"), ("max", operator.le, "at most"))
_ELEMENTS = {float: "numbers", int: "whole numbers", str: "names", bool: "true or false", tuple: "points"}
# the largest size of a number by its unit; larger ones are typing errors, as are positive ones below SMALLEST_NUMBER
_LARGEST_BY_UNIT: dict[str, float] = {"s": 1e9, "Hz": 1e9}
LARGEST_NUMBER = 1e12
_LARGEST_INTEGER = 2**63 - 1
SMALLEST_NUMBER = 1e-15
BOOLEANS: dict[Any, bool] = {True: True, False: False, "yes": True, "no": False}

SECTIONS: dict[str, str] = {}  # key -> its section of a rig, of the sections that `is_section` names


@dataclass(frozen=True)
class Reading:
    """The state of reading a file: location of its keys, errors so far, its folder, and the joints of the section.

    joints: name -> kind (a key of `multibody.joints.JOINTS`; None if unknown). The kind determines whether a
    `joint position` is an angle or a length; with names, a `PerJoint` may be a mapping {joint: value}.
    n: number of joints of a `PerJoint` field; None if unknown, then the length is not checked. names: what laws may
    name beside signals.
    """

    place: PlaceOf
    errors: list[InputError]
    folder: Path = Path()
    joints: Mapping[str, str | None] | None = None
    n: int | None = None
    names: Names = NO_NAMES

    def of(self, joints: Mapping[str, str | None] | None, n: int | None = None) -> Reading:
        """A copy for a section of these joints; n: their number by default."""
        return replace(self, joints=joints, n=len(joints) if n is None and joints is not None else n)

    def fail(self, path: KeyPath, what: str) -> None:
        self.errors.append(InputError(what, self.place(path)))

    def inherited_at(self, path: KeyPath, of: KeyPath, keys: Container[str]) -> Reading:
        """A copy in which these keys of the section at `path` have their locations in the section at `of`."""

        def place(where: tuple) -> SourceLocation:
            n = len(path)
            return self.place((*of, *where[n:]) if where[:n] == path and where[n:] and where[n] in keys else where)

        return replace(self, place=place)

    def file(self, text: str, path: KeyPath) -> Path | None:
        """The file that the rig names at `path`; None after an error."""
        try:
            return locate(text, self.folder)
        except InputError as error:
            return self.fail(path, error.what)

    def mapping(self, data: YamlValue, path: KeyPath) -> dict[str, Any]:
        """`data` if it is a mapping; otherwise records the error and returns an empty mapping."""
        if isinstance(data, dict):
            return data
        if data is not None:
            self.fail(path, f"expected a mapping, got {show(data)}")
        return {}

    def unit(self, unit: str, joint: str | None) -> str:
        """The unit of a value of `joint` (None: of all joints), angular for rotational and linear for linear joints."""
        if unit not in JOINT_DIMENSIONS or not self.joints:
            return unit
        kinds = {self.joints.get(joint)} if joint is not None else set(self.joints.values())
        units = {unit_of(kind) for kind in kinds}
        angular, linear = JOINT_DIMENSIONS[unit]
        return linear if units == {"m"} else angular if units == {"rad"} else unit


def read(cls: type[T], data: YamlValue, path: KeyPath, reading: Reading, besides: Iterable[str] = ()) -> T | None:
    """An instance of the dataclass `cls` from the mapping `data` at `path`; None after an error.

    Numbers become SI values. Each error is recorded in `reading` as an InputError with its location; a ValueError of
    `__post_init__` has the location of the section. besides: keys of `data` that are read elsewhere.
    """
    before = len(reading.errors)
    values = read_fields(cls, data, path, reading, besides)
    if len(reading.errors) > before:
        return None
    try:
        return cls(**values)
    except ValueError as error:
        return reading.fail(path, str(error))
    except Exception as error:  # user code may raise anything
        return reading.fail(path, f"cannot be set up: {type(error).__name__}: {error} ({where_raised(error)})")


def read_fields(
    cls: type, data: YamlValue, path: KeyPath, reading: Reading, besides: Iterable[str] = ()
) -> dict[str, Any]:
    """As `read`, but returns the valid fields by name, defaults included, for checks between fields."""
    data = {} if data is None else data
    if not isinstance(data, dict):
        keys = f" with the keys {', '.join(_keys(cls))};" if isinstance(data, list) and _keys(cls) else ","
        reading.fail(path, f"expected a mapping{keys} got {show(data)}")
        return {}
    hints = hints_of(cls)
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


def check_keys(data: Mapping[str, YamlValue], known: Iterable[str], path: KeyPath, reading: Reading) -> None:
    """Record an error for each key of the section at `path` that is not known."""
    for key in data:
        if key not in known:
            _unknown_key(reading, key, path, known)


def number(
    value: YamlValue, unit: str, path: KeyPath, reading: Reading, bounds: Mapping[str, Any] | None = None
) -> float | None:
    """A number of this unit, in SI; None after an error. bounds: as of `param`."""
    return _number(reading, float, value, {"unit": unit, **(bounds or {})}, path)


def show(value: YamlValue) -> str:
    """A value of a file as an error message quotes it."""
    words = {NoneType: "nothing", dict: "a mapping", list: "a list"}
    if type(value) in words:
        return words[type(value)]
    return str(value).lower() if isinstance(value, bool) else shortened(repr(value))


def as_boolean(value: YamlValue) -> bool | None:
    """The truth value that a file writes as true, false, yes or no; None for anything else."""
    return BOOLEANS.get(value) if isinstance(value, bool | str) else None


def is_section(name: str, cls: type) -> None:
    """The fields of a class are the keys of a section: a message names it where one of them is found outside of all
    sections, or deeper in its own."""
    SECTIONS.update(dict.fromkeys(_keys(cls), name))


def _keys(cls: type) -> list[str]:
    return [field.name for field in dataclasses.fields(cls) if field.init]


def _unknown_key(reading: Reading, key: str, path: KeyPath, known: Iterable[str]) -> None:
    """Record the error at the line of the key, with the name of its section."""
    place = reading.place((*path, key))
    if place.line is not None:
        place = dataclasses.replace(place, key=place.key[: -len(key)].removesuffix("."))
    section = SECTIONS.get(key)
    elsewhere = section is not None and path[:1] in ((), (section,))
    fix = f"; it is a key of the section '{section}'" if elsewhere else did_you_mean(key, known)
    reading.errors.append(InputError(f"unknown key '{shortened(key)}'{fix}", place))


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


def _value(reading: Reading, hint: Any, value: YamlValue, meta: Mapping[str, Any], path: KeyPath) -> Any:
    reader = READERS.get(hint) or READERS.get(get_origin(hint), _dataclass)
    return reader(reading, hint, value, meta, path)


def _number(
    reading: Reading, hint: Any, value: YamlValue, meta: Mapping[str, Any], path: KeyPath, joint: str | None = None
) -> float | None:
    unit = reading.unit(meta.get("unit", "1"), joint)
    if isinstance(value, str) and (unit in UNITS or unit in JOINT_DIMENSIONS):
        try:
            value = parse_quantity(value, unit, _misfit(reading, meta.get("unit", "1"), unit, value, joint))
        except ValueError as error:
            return reading.fail(path, str(error))
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        known = unit in UNITS or unit in JOINT_DIMENSIONS
        declared = "" if known else f"; its Params declare the unit '{unit}', which is not known, so give a bare number"
        return reading.fail(path, f"expected a number, got {show(value)}{declared}")
    if not abs(value) <= sys.float_info.max:
        return reading.fail(path, f"must be a finite number, is {show(value)}")
    suffix = "" if unit == "1" or unit in JOINT_DIMENSIONS else f" {unit}"
    for key, holds, words in _BOUNDS:
        bound = meta.get(key)
        if bound is not None and not holds(value, bound):
            what = f"must be {words} {bound:.12g}{suffix}, is {value:.12g}{suffix}"
            return reading.fail(path, what)
    largest = _LARGEST_INTEGER if hint is int else _LARGEST_BY_UNIT.get(unit, LARGEST_NUMBER)
    if abs(value) > largest:
        return reading.fail(path, f"must be at most {largest:.12g}{suffix} in size, is {value:.12g}{suffix}")
    if meta.get("above") == 0 and value < SMALLEST_NUMBER:
        return reading.fail(path, f"is {value:.3g}{suffix}, too close to 0; give at least {SMALLEST_NUMBER:g}{suffix}")
    return float(value)


def _misfit(reading: Reading, declared: str, unit: str, value: str, joint: str | None) -> str:
    """What a value with a wrong unit does not fit: a joint of the other kind is named. unit: of the joint's kind."""
    try:
        parse_quantity(value, declared)
    except ValueError:
        return "here"
    names = [joint] if joint is not None else list(reading.joints or ())
    kind = "linear" if unit == JOINT_DIMENSIONS.get(declared, ("", ""))[1] else "rotational"
    return f"{kind} joint '{names[0]}'" if len(names) == 1 and names[0] else f"{kind} joints"


def _integer(reading: Reading, hint: Any, value: YamlValue, meta: Mapping[str, Any], path: KeyPath) -> int | None:
    number = _number(reading, hint, value, meta, path)
    if number is None:
        return None
    if not number.is_integer():
        return reading.fail(path, f"expected a whole number, got {show(value)}")
    return value if isinstance(value, int) else int(number)


def _boolean(reading: Reading, hint: Any, value: YamlValue, meta: Mapping[str, Any], path: KeyPath) -> bool | None:
    truth = as_boolean(value)
    return reading.fail(path, f"expected true, false, yes or no, got {show(value)}") if truth is None else truth


def _text(reading: Reading, hint: Any, value: YamlValue, meta: Mapping[str, Any], path: KeyPath) -> str | None:
    if isinstance(value, str):
        return value
    fix = "; put it in quotes" if isinstance(value, (bool, int, float)) else ""
    return reading.fail(path, f"expected text, got {show(value)}{fix}")


def _choice(reading: Reading, hint: Any, value: YamlValue, meta: Mapping[str, Any], path: KeyPath) -> Any:
    options = get_args(hint)
    for option in options:
        if type(option) is type(value) and option == value:
            return option
    return reading.fail(path, f"expected one of {', '.join(map(str, options))}; got {show(value)}")


def _optional(reading: Reading, hint: Any, value: YamlValue, meta: Mapping[str, Any], path: KeyPath) -> Any:
    if value is None:
        return None
    inner = [arg for arg in get_args(hint) if arg is not NoneType]
    if len(inner) != 1:
        return _dataclass(reading, hint, value, meta, path)
    return _value(reading, inner[0], value, meta, path)


def _mapping(reading: Reading, hint: Any, value: YamlValue, meta: Mapping[str, Any], path: KeyPath) -> dict | None:
    if isinstance(value, dict):
        return value
    return {} if value is None else reading.fail(path, f"expected a mapping, got {show(value)}")


def _sequence(reading: Reading, hint: Any, value: YamlValue, meta: Mapping[str, Any], path: KeyPath) -> Any:
    """`list` unchanged; `list[X]` and `tuple[X, ...]` of any length; `tuple[X, Y]` of length 2."""
    args = get_args(hint)
    fixed = get_origin(hint) is tuple and ... not in args
    words = _ELEMENTS.get(_bare_type(args[0]), "values") if args else "values"
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


def _bare_type(hint: Any) -> Any:
    """The type of the values of an annotation."""
    while get_origin(hint) is not None:
        hint = get_args(hint)[0] if get_origin(hint) is Annotated else get_origin(hint)
    return hint


def _annotated(reading: Reading, hint: Any, value: YamlValue, meta: Mapping[str, Any], path: KeyPath) -> Any:
    """`Annotated[X, check]`: the result of `check`, called with an X; it raises ValueError for a wrong value."""
    inner, check = get_args(hint)
    before = len(reading.errors)
    value = _value(reading, inner, value, meta, path)
    if len(reading.errors) > before:
        return None
    try:
        return check(value)
    except ValueError as error:
        return reading.fail(path, str(error))


def _per_joint(reading: Reading, hint: Any, value: YamlValue, meta: Mapping[str, Any], path: KeyPath) -> Any:
    """One number for all joints, a list with one per joint, or a mapping {joint: number}."""
    n, names = reading.n, tuple(reading.joints or ())
    if isinstance(value, dict) and reading.joints is None and n is None:
        return None  # the mechanism could not be read, which is an error of its own
    if isinstance(value, dict) and names:
        for key in value:
            if key not in names:
                _unknown_key(reading, key, path, names)
        missing = [f"'{name}'" for name in names if name not in value]
        if missing:
            return reading.fail(path, f"missing the number of {listed(missing)}")
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
            break  # one number for all joints is one error
    return tuple(numbers)


def _dataclass(reading: Reading, hint: Any, value: YamlValue, meta: Mapping[str, Any], path: KeyPath) -> Any:
    if not (isinstance(hint, type) and dataclasses.is_dataclass(hint)):
        return reading.fail(path, f"is declared as {hint}, which cannot be read from a file")
    return read(hint, value, path, reading)


# one reader per annotation; a module that reads another kind of value adds its own
READERS: dict[Any, Reader] = {
    float: _number,
    int: _integer,
    bool: _boolean,
    str: _text,
    dict: _mapping,
    list: _sequence,
    tuple: _sequence,
    PerJoint: _per_joint,
    Annotated: _annotated,
    Literal: _choice,
    Union: _optional,
    UnionType: _optional,
}
