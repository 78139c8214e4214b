"""The variables of an FMU: types, units, bounds, start values, and which of them are signals."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from cosim.core.errors import InputError, SourceLocation, did_you_mean, shortened
from cosim.core.types import Array, Signal, Signals
from cosim.core.units import UNITS, parse_quantity, show_quantity
from cosim.simulation.coupling.part import StartValue
from cosim.simulation.fmi.unit_conversion import Conversion, conversion_of, shift_between

# type of a variable -> (its name in the functions of FMI, how one value is stored), in both versions and in one
TYPES: dict[str, tuple[str, Any]] = {
    "Real": ("Real", ctypes.c_double),
    "Integer": ("Integer", ctypes.c_int),
    "Float64": ("Float64", ctypes.c_double),
    "Float32": ("Float32", ctypes.c_float),
    **{f"Int{n}": (f"Int{n}", getattr(ctypes, f"c_int{n}")) for n in (8, 16, 32, 64)},
    **{f"UInt{n}": (f"UInt{n}", getattr(ctypes, f"c_uint{n}")) for n in (8, 16, 32, 64)},
}
BY_VERSION: dict[str, dict[str, tuple[str, Any]]] = {
    "2.0": {"Boolean": ("Boolean", ctypes.c_int), "Enumeration": ("Integer", ctypes.c_int)},
    "3.0": {"Boolean": ("Boolean", ctypes.c_bool), "Enumeration": ("Int64", ctypes.c_int64)},
}
REAL = ("Real", "Float64", "Float32")
PARAMETERS = ("parameter", "structuralParameter")
MOST_ELEMENTS = 1_000_000  # of an array


@dataclass(frozen=True)
class FmuVariable:
    """A scalar or an array of an FMU. `storage`: the name of its type in the functions of FMI, and its ctypes type;
    None for texts, binary data and clocks."""

    declared: Any  # fmpy's description
    storage: tuple[str, Any] | None
    conversion: Conversion
    shape: tuple[int, ...]

    @property
    def name(self) -> str:
        return self.declared.name

    @property
    def reference(self) -> int:
        return self.declared.valueReference

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def is_real(self) -> bool:
        return self.declared.type in REAL

    @property
    def discrete(self) -> bool:
        return self.declared.variability == "discrete"

    @property
    def has_unit(self) -> bool:
        return bool(self.is_real and self.unit_name)

    @property
    def unit_name(self) -> str:
        """As the FMU names it; empty without one."""
        kind = self.declared.declaredType
        return self.declared.unit or (kind.unit if kind else None) or ""

    @property
    def settable(self) -> bool:
        """Whether it has a start value that may be set before the initialisation."""
        return self.declared.variability != "constant" and self.declared.initial in ("exact", "approx")

    @property
    def signal(self) -> Signal:
        return Signal(self.shape, self.conversion.unit)

    @cached_property
    def bounds(self) -> tuple[float, float]:
        """(min, max) in the unit of the FMU."""
        kind = self.declared.declaredType
        given = [getattr(self.declared, k) or (getattr(kind, k) if kind else None) for k in ("min", "max")]
        low, high = (-math.inf, math.inf)
        if self.storage is not None and not self.is_real and self.declared.type != "Boolean":
            info = np.iinfo(np.dtype(self.storage[1]))
            low, high = info.min, info.max
        return float(given[0] or low), float(given[1] or high)


@dataclass(frozen=True)
class InUnitOfFmu:
    """A number, or nested lists of numbers, in the unit of the variable that it is given to."""

    value: Any


@dataclass(frozen=True)
class InUnit:
    """A number, or a list of numbers, in a unit of the same kind as the variable's."""

    value: Any
    unit: Conversion


class FmuVariables:
    """The variables of an FMU by name. Errors have the FMU, and the variable of its instance, as their place.

    inputs, outputs: those that are signals; sizes: values of structural parameters by name, which give arrays their
    shapes.
    """

    def __init__(self, description: Any, version: str, place: SourceLocation, sizes: Mapping[str, object] = {}) -> None:
        self.place, self._description = place, description
        self._types = TYPES | BY_VERSION[version]
        self._units = {u.name: _definition(u.baseUnit) for u in description.unitDefinitions}
        self._sizes = sizes
        self.by_name = {v.name: self._variable(v) for v in description.modelVariables}

    def error(self, what: str, name: str = "") -> InputError:
        key = ".".join(filter(None, (self.place.key, name)))
        return InputError(what, SourceLocation(self.place.file, None, key))

    def with_causality(self, *causality: str) -> list[FmuVariable]:
        return [v for v in self.by_name.values() if v.declared.causality in causality]

    @property
    def inputs(self) -> list[FmuVariable]:
        return [v for v in self.with_causality("input") if v.storage is not None]

    def outputs(self, wanted: Sequence[str] | None) -> list[FmuVariable]:
        """The variables of causality output, or the wanted ones."""
        if wanted is None:
            return [v for v in self.with_causality("output") if v.storage is not None]
        known = [v.name for v in self.with_causality("output", "local")]
        for name in wanted:
            if name not in self.by_name:
                raise self.error(f"there is no output '{shortened(name)}'{did_you_mean(name, known)}")
            variable = self.by_name[name]
            if variable.storage is None:
                raise self.error(f"has the type {variable.declared.type}; only numbers are signals", name)
            if variable.declared.causality == "input":
                raise self.error(f"is an input, no output{did_you_mean('', known)}", name)
        return [self.by_name[name] for name in dict.fromkeys(wanted)]

    def feedthrough(self, inputs: Sequence[FmuVariable], outputs: Sequence[FmuVariable]) -> frozenset[tuple[str, str]]:
        """(input, output) for the outputs that depend on an input at the same time, by the structure of the model.

        Dependencies that are not declared are all inputs.
        """
        declared = {
            self._key(u.variable): set(map(self._key, u.dependencies))
            for u in self._description.outputs
            if u.dependencies is not None
        }
        return frozenset(
            (u.name, y.name)
            for y in outputs
            for u in inputs
            if (needed := declared.get(self._key(y.declared))) is None or self._key(u.declared) in needed
        )

    def _key(self, declared: Any) -> tuple[str, int]:
        """What identifies a variable and its aliases: in FMI 2, types have value references of their own."""
        return self._types.get(declared.type, ("", None))[0], declared.valueReference

    def values(self, given: Mapping[str, object]) -> list[tuple[FmuVariable, Array | list[bytes]]]:
        """Checked start values, in the units of the FMU; texts as bytes.

        given: numbers in SI, or texts with a unit; booleans; names or numbers of an enumeration;
        `InUnitOfFmu` of numbers.
        """
        known = [v.name for v in self.by_name.values() if v.settable]
        checked = []
        for name, value in given.items():
            if name not in self.by_name:
                raise self.error(f"there is no such parameter{did_you_mean(name, known)}", shortened(name))
            variable = self.by_name[name]
            if not variable.settable:
                article = "an" if variable.declared.causality[0] in "io" else "a"
                kind = f"{article} {variable.declared.causality} of variability {variable.declared.variability}"
                raise self.error(f"cannot be set: it is {kind}{did_you_mean('', known)}", name)
            checked.append((variable, self._values(variable, value)))
        return checked

    def start_values(self, values: Iterable[tuple[FmuVariable, Array | list[bytes]]]) -> dict[str, StartValue]:
        """By name, of what `values` returns."""
        found = dict[str, StartValue]()
        for variable, numbers in values:
            about, to_si = variable.declared.description or "", variable.conversion.to_si
            if not isinstance(numbers, np.ndarray):
                found[variable.name] = StartValue(numbers[0].decode(), "1", -math.inf, math.inf, about)
                continue
            boolean = variable.declared.type == "Boolean"
            value = (numbers.astype(bool) if boolean else to_si(numbers)).reshape(variable.shape).tolist()
            least, greatest = map(to_si, variable.bounds)
            found[variable.name] = StartValue(value, variable.conversion.unit, least, greatest, about)
        return found

    def _values(self, variable: FmuVariable, given: object) -> Array | list[bytes]:
        if isinstance(given, InUnit):
            given = self._of_its_kind(variable, given)
        value = given.value if (native := isinstance(given, InUnitOfFmu)) else given
        if variable.storage is None:
            if variable.declared.type != "String" or not isinstance(value, str):
                wanted = "a text" if variable.declared.type == "String" else f"no value: {variable.declared.type}"
                raise self.error(f"expected {wanted}, got {_shown(value)}", variable.name)
            return [value.encode()]
        items = list(_flat(value))
        if _shape(value) not in (variable.shape, ()) or len(items) not in (variable.size, 1):
            wanted = f"an array {variable.shape}" if variable.shape else "one number"
            raise self.error(f"expected {wanted}, got {_shown(value)}", variable.name)
        numbers = [self._number(variable, item, native) for item in items]
        return np.array(numbers * (variable.size if _shape(value) == () else 1), np.dtype(variable.storage[1]))

    def _of_its_kind(self, variable: FmuVariable, given: InUnit) -> object:
        """The numbers in SI; in the unit of the FMU where only the FMU defines it."""
        shift = shift_between(given.unit.unit, variable.conversion.unit) if variable.has_unit else 0.0
        if shift is None and given.unit.unit == variable.unit_name:
            return InUnitOfFmu(given.value)
        if shift is None:
            what = f"is given in {given.unit.unit}, and is in {variable.conversion.unit}"
            raise self.error(f"{what}; give a value in a unit of this kind", variable.name)
        items = [given.unit.to_si(x) + shift for x in _flat(given.value)]
        return items if isinstance(given.value, list) else items[0]

    def _number(self, variable: FmuVariable, value: object, native: bool) -> float | int:
        """A number in the unit of the FMU."""
        kind = variable.declared.type
        if kind == "Boolean":
            if not isinstance(value, (bool, np.bool_)):
                raise self.error(f"expected true or false, got {_shown(value)}", variable.name)
            return int(value)
        if kind == "Enumeration" and isinstance(value, str):
            items = {i.name: int(i.value or n) for n, i in enumerate(_items(variable), 1)}
            if value not in items:
                raise self.error(f"there is no item '{shortened(value)}'{did_you_mean(value, items)}", variable.name)
            return items[value]
        number = self._parsed(variable, value, native)
        low, high = variable.bounds
        if not low <= number <= high:
            side, bound = ("below the minimum", low) if number < low else ("above the maximum", high)
            raise self.error(
                f"{self._quantity(variable, number)} is {side} {self._quantity(variable, bound)}; "
                f"use a value {'>=' if number < low else '<='} {self._quantity(variable, bound)}",
                variable.name,
            )
        return number

    def _parsed(self, variable: FmuVariable, value: object, native: bool) -> float | int:
        unit = variable.conversion.unit
        if isinstance(value, str) and variable.is_real and unit in UNITS:
            try:
                value = parse_quantity(value, unit, "it")
            except ValueError as error:
                raise self.error(str(error), variable.name) from None
        if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
            raise self.error(f"expected a number, got {_shown(value)}", variable.name)
        if not math.isfinite(value):
            raise self.error(f"expected a finite number, got {value}", variable.name)
        if variable.is_real:
            return float(value if native else variable.conversion.from_si(float(value)))
        if float(value) != int(value):
            raise self.error(f"expected a whole number, got {value}", variable.name)
        return int(value)

    def _quantity(self, variable: FmuVariable, number: float) -> str:
        """A number of the FMU in SI."""
        unit = variable.conversion.unit
        value = variable.conversion.to_si(number)
        return show_quantity(value, unit, 6) if unit in UNITS else f"{value:.6g} {unit}"

    def _variable(self, declared: Any) -> FmuVariable:
        storage = self._types.get(declared.type)
        conversion = Conversion()
        kind = declared.declaredType
        name = declared.unit or (kind.unit if kind else None)
        if declared.type in REAL and name:
            relative = bool(declared.relativeQuantity or (kind and kind.relativeQuantity))
            conversion = conversion_of(name, self._units.get(name), relative)
        shape = tuple(self._length(declared, d) for d in declared.dimensions)
        if math.prod(shape) > MOST_ELEMENTS:
            raise self.error(f"has {math.prod(shape)} elements; {MOST_ELEMENTS} are the most", declared.name)
        return FmuVariable(declared, storage, conversion, shape)

    def _length(self, declared: Any, dimension: Any) -> int:
        """Of an array along a dimension: fixed, or the value of a structural parameter."""
        if dimension.variable is None:
            return int(dimension.start)
        given = self._sizes.get(dimension.variable.name, dimension.variable.start)
        try:
            return int(given)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            raise self.error(f"expected a whole number, got {_shown(given)}", dimension.variable.name) from None


def signals(variables: Iterable[FmuVariable]) -> Signals:
    return {v.name: v.signal for v in variables}


def _definition(base: Any) -> dict[str, float] | None:
    names = ("kg", "m", "s", "A", "K", "mol", "cd", "rad", "factor", "offset")
    return None if base is None else {name: getattr(base, name) for name in names}


def _items(variable: FmuVariable) -> list[Any]:
    kind = variable.declared.declaredType
    return kind.items if kind else []


def _flat(value: object) -> Iterable[object]:
    """The numbers of nested lists, the last index the fastest."""
    if isinstance(value, (list, tuple, np.ndarray)):
        for item in value:
            yield from _flat(item)
    else:
        yield value


def _shape(value: object) -> tuple[int, ...]:
    if isinstance(value, (list, tuple, np.ndarray)):
        return (len(value), *(_shape(value[0]) if len(value) else ()))
    return ()


def _shown(value: object) -> str:
    return f"'{shortened(value)}'" if isinstance(value, str) else shortened(str(value))
