"""The parameters that a session varies: their elements within bounds, and places in the unit cube."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from cosim.core.errors import InputError, InputErrors, SectionError
from cosim.core.types import Array
from cosim.core.units import JOINT_DIMENSIONS, UNITS, parse_quantity
from cosim.rig.parameter_table import table_of
from cosim.rig.reading.schema import LARGEST_NUMBER, SMALLEST_NUMBER
from cosim.rig.rig import Rig
from cosim.rig.rig_parameter import RigParameter

DECADE = 10.0  # high / low from which on a range is searched on a logarithmic scale
RANGE = re.compile(r"(.*?)\.\.(.*)")
FACTOR = re.compile(r"x\s*([0-9.eE+-]+)")
Place = tuple[str, str]  # keys from the section `tuning` on
EXAMPLE = "10..2000, or x0.2..x5 for multiples of its value"


class Dimension(NamedTuple):
    """One number that is varied: an element of a parameter. low, high, start: in SI; start: the value of the rig."""

    name: str  # such as arm.kp/elbow, or arm.kp where it is one number
    parameter: str
    element: int
    low: float
    high: float
    start: float
    unit: str

    @property
    def logarithmic(self) -> bool:
        """A range above 0 begins at the smallest number, and has no decades."""
        return self.low > SMALLEST_NUMBER and self.high / self.low >= DECADE

    def value(self, position: float) -> float:
        """Of a position from 0 to 1."""
        if self.logarithmic:
            value = self.low * (self.high / self.low) ** position
        else:
            value = self.low + (self.high - self.low) * position
        return min(max(value, self.low), self.high)

    def position(self, value: float) -> float:
        """Of a value; at the end for one beyond."""
        value = min(max(value, self.low), self.high)
        if self.logarithmic:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


@dataclass(frozen=True)
class SearchSpace:
    """dimensions; rest: parameter -> all its elements (n,), as the rig has them."""

    dimensions: tuple[Dimension, ...]
    rest: Mapping[str, Array]

    def __len__(self) -> int:
        return len(self.dimensions)

    @property
    def start(self) -> Array:
        """(d,) the values of the rig."""
        return np.array([dimension.start for dimension in self.dimensions])

    @property
    def start_inside(self) -> bool:
        return all(d.low <= d.start <= d.high for d in self.dimensions)

    def values(self, positions: Array) -> Array:
        """(k, d) values of positions in the unit cube."""
        return np.array([[d.value(float(x)) for d, x in zip(self.dimensions, row, strict=True)] for row in positions])

    def positions(self, values: Array) -> Array:
        """(k, d) positions of values, at the ends for those beyond."""
        return np.array([[d.position(float(x)) for d, x in zip(self.dimensions, row, strict=True)] for row in values])

    def arrays(self, values: Array) -> dict[str, Array]:
        """parameter -> (k, n), as rollouts take them, of values (k, d)."""
        found = {name: np.repeat(rest[None], len(values), axis=0) for name, rest in self.rest.items()}
        for column, dimension in zip(values.T, self.dimensions, strict=True):
            found[dimension.parameter][:, dimension.element] = column
        return found

    def parameters(self, values: Array) -> dict[str, float | list[float]]:
        """parameter -> its value as `Rig.set` takes it, of values (d,)."""
        rows = {name: array[0].tolist() for name, array in self.arrays(values[None]).items()}
        return {name: row[0] if len(row) == 1 else row for name, row in rows.items()}


def read_space(rig: Rig, requests: Mapping[str, Any]) -> SearchSpace:
    """requests: `NAME`, or `NAME/JOINT` for one of its elements, of those without joints `NAME/0` and so on -> text
    `LOW..HIGH`, or None for the bounds that its controller declares; of no requests, all parameters with declared
    bounds.

    Raises InputErrors for names that do not exist, and for ranges that are missing or wrong.
    """
    table, errors = table_of(rig), list[InputError]()
    if not requests:
        requests = {name: None for name, found in table.live.items() if np.isfinite(found.bounds).all()}
        if not requests:
            fix = f"name some, such as --parameter {next(iter([*table.live, *table.per_run]), 'arm.kp')}=x0.2..x5"
            raise InputError(f"no controller declares both bounds of a parameter; {fix}", "tune")
    dimensions: dict[str, Dimension] = {}
    for request, range_ in requests.items():
        try:
            for dimension in _dimensions(rig, request, range_):
                dimensions[dimension.name] = dimension
        except InputError as error:
            errors.append(error)
    if errors:
        raise InputErrors(errors)
    rest = {d.parameter: table.numbers(d.parameter).copy() for d in dimensions.values()}
    return SearchSpace(tuple(dimensions.values()), rest)


def _dimensions(rig: Rig, request: str, range_: Any) -> list[Dimension]:
    place, table = ("parameters", request), table_of(rig)
    try:
        found, element = table.find(request)
    except ValueError as error:
        raise SectionError(str(error), place) from None
    elements = list(found.elements(table.numbers(found.name)))
    low_text, high_text = _ends(range_, place)
    dimensions = []
    for k in range(found.size) if element is None else [element]:
        value, unit = elements[k].value, elements[k].unit
        if not math.isfinite(value):
            raise SectionError("has no finite value in the rig; give it one, to begin with", place)
        least, greatest = (bound if math.isfinite(bound) else None for bound in found.bounds)
        low = _bound(low_text, value, unit, place) if low_text else least
        high = _bound(high_text, value, unit, place) if high_text else greatest
        if low is None or high is None:
            lack = "no bounds" if low is high else "no lower bound" if low is None else "no upper bound"
            raise SectionError(f"has {lack} of its own; give its range, such as {request}={EXAMPLE}", place)
        if high < low:
            raise SectionError(f"has the bounds reversed: {low:.6g}..{high:.6g}; give the lower one first", place)
        if high == low:
            raise SectionError(
                f"has equal bounds: {low:.6g}..{high:.6g}; give two different ones, or take it out", place
            )
        _check_declared(found, low, high, place)
        label = found.name if found.size == 1 else elements[k].name
        dimensions.append(Dimension(label, found.name, k, low, high, value, unit))
    return dimensions


def _ends(range_: Any, place: Place) -> tuple[str, str]:
    """The texts of both ends of a range, "" for one that is not given."""
    if range_ is None:
        return "", ""
    match = RANGE.fullmatch(str(range_).strip())
    if match is None:
        raise SectionError(f"'{range_}' is no range; give one such as {EXAMPLE}", place)
    return match[1].strip(), match[2].strip()


def _bound(text: str, value: float, unit: str, place: Place) -> float:
    """In SI. text: a number, with a unit or not, or a multiple of the value, such as x0.5."""
    factor = FACTOR.fullmatch(text)
    try:
        if factor is not None:
            bound = float(factor[1]) * value
        else:
            bound = parse_quantity(text, unit if unit in UNITS or unit in JOINT_DIMENSIONS else "1")
    except ValueError as error:
        raise SectionError(f"{error}; give a range such as {EXAMPLE}", place) from None
    if not math.isfinite(bound):
        raise SectionError(f"'{text}' is no finite bound; give a range such as {EXAMPLE}", place)
    if abs(bound) > LARGEST_NUMBER:
        raise SectionError(f"'{text}' is beyond ±{LARGEST_NUMBER:g}; give a range such as {EXAMPLE}", place)
    return bound


def _check_declared(found: RigParameter, low: float, high: float, place: Place) -> None:
    """Raises InputError for a range beyond the declared bounds."""
    least, greatest = found.bounds
    if low < least:
        raise SectionError(f"must be at least {least:.6g}, but its range begins at {low:.6g}; raise it", place)
    if high > greatest:
        raise SectionError(f"must be at most {greatest:.6g}, but its range ends at {high:.6g}; lower it", place)
