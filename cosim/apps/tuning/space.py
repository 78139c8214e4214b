"""The parameters that a session varies: their elements within bounds, and places in the unit cube."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from cosim.core.errors import InputError, InputErrors, SectionError, did_you_mean
from cosim.core.types import Array
from cosim.core.units import JOINT_DIMENSIONS, UNITS, parse_quantity
from cosim.rig.parameters import joints_of, tunables_of, unit_of, unknown_parameter
from cosim.rig.plant_parameters import plant_parameters_of
from cosim.rig.reading.schema import LARGEST_NUMBER
from cosim.rig.rig import Rig

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
        return self.low > 0.0 and self.high / self.low >= DECADE

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


class _Parameter(NamedTuple):
    """A parameter that can be varied. low, high: as declared, None without a bound; joints: of its elements."""

    values: list[float]
    unit: str
    low: float | None
    high: float | None
    joints: tuple[str, ...]


def read_space(rig: Rig, requests: Mapping[str, Any]) -> SearchSpace:
    """requests: `NAME`, or `NAME/JOINT` for one of its elements, of those without joints `NAME/0` and so on -> text
    `LOW..HIGH`, or None for the bounds that its controller declares; of no requests, all parameters with declared
    bounds.

    Raises InputErrors for names that do not exist, and for ranges that are missing or wrong.
    """
    known, errors = _known(rig), list[InputError]()
    if not requests:
        requests = {name: None for name, found in known.items() if found.low is not None and found.high is not None}
        if not requests:
            fix = f"name some, such as --parameter {next(iter(known), 'arm.kp')}=x0.2..x5"
            raise InputError(f"no controller declares both bounds of a parameter; {fix}", "tune")
    dimensions: dict[str, Dimension] = {}
    for request, range_ in requests.items():
        try:
            for dimension in _dimensions(rig, known, request, range_):
                dimensions[dimension.name] = dimension
        except InputError as error:
            errors.append(error)
    if errors:
        raise InputErrors(errors)
    rest = {d.parameter: np.array(known[d.parameter].values) for d in dimensions.values()}
    return SearchSpace(tuple(dimensions.values()), rest)


def _known(rig: Rig) -> dict[str, _Parameter]:
    """Parameters of the controllers, and numbers of the mechanism and the drives."""
    found: dict[str, _Parameter] = {}
    for name, item in tunables_of(rig).items():
        declared = item.loop.tunables.leaves[item.field].declared
        low = declared.get("min") if declared.get("min") is not None else declared.get("above")
        values = rig.tick_model.parameters[item.where].tolist()
        found[name] = _Parameter(values, unit_of(rig, name), low, declared.get("max"), joints_of(rig, name))
    for name, number in plant_parameters_of(rig).items():
        found[name] = _Parameter(number.values.tolist(), "1", None, None, ())
    return found


def _dimensions(rig: Rig, known: Mapping[str, _Parameter], request: str, range_: Any) -> list[Dimension]:
    name, _, joint = request.partition("/")
    place = ("parameters", request)
    if name not in known:
        raise SectionError(unknown_parameter(rig, name, list(known)), place)
    found = known[name]
    labels = found.joints or tuple(map(str, range(len(found.values))))
    if joint and joint not in labels:
        raise SectionError(f"it has no element for '{joint}'{did_you_mean(joint, labels)}", place)
    indices = [labels.index(joint)] if joint else range(len(found.values))
    low_text, high_text = _ends(range_, place)
    dimensions = []
    for k in indices:
        value = found.values[k]
        if not math.isfinite(value):
            raise SectionError("has no finite value in the rig; give it one, to begin with", place)
        low = _bound(low_text, value, found.unit, place) if low_text else found.low
        high = _bound(high_text, value, found.unit, place) if high_text else found.high
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
        label = name if len(found.values) == 1 else f"{name}/{labels[k]}"
        dimensions.append(Dimension(label, name, k, low, high, value, found.unit))
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


def _check_declared(found: _Parameter, low: float, high: float, place: Place) -> None:
    """Raises InputError for a range beyond the declared bounds."""
    if found.low is not None and low < found.low:
        raise SectionError(f"must be at least {found.low:.6g}, but its range begins at {low:.6g}; raise it", place)
    if found.high is not None and high > found.high:
        raise SectionError(f"must be at most {found.high:.6g}, but its range ends at {high:.6g}; lower it", place)
