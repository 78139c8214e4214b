"""Names in place of the numbers of a bond graph: values of elements, parameters of components, constants of laws.

A component is built again with symbols as parameters. A parameter of 0, and one that a component or a law must compare
with a number to decide what it is made of, stays a number.
"""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from cosim.core import ops
from cosim.core.compile.trace import symbols
from cosim.core.types import Numeric
from cosim.mechanics.bondgraph import Element, Law
from cosim.mechanics.bondgraph.graph import CheckedGraph, ComponentOrigin

# of the name of a parameter, by the kind of its element
PREFIXES = {"I": "I", "C": "k", "R": "R", "TF": "m", "GY": "K", "Se": "e", "Sf": "f"}
_LETTER = re.compile(r"([^\W\d_](?:_[^\W_]+)?)(?:,| of )")  # at the begin of a doc: `R of the armature`
# of keys whose doc begins with none
LETTERS_OF_KEYS = {
    **{"resistance": "R", "inductance": "L", "capacitance": "C", "torque_constant": "K", "inertia": "J", "mass": "M"},
    **{"ratio": "n", "stiffness": "k", "damping": "d", "viscous": "b", "volume": "V", "area": "A", "area_a": "A_a"},
    **{"area_b": "A_b", "bulk_modulus": "E", "density": "ρ", "discharge": "μ", "pressure": "p", "stroke": "l"},
}


class Parameter(NamedTuple):
    """A number in SI of an element, a component or a law. owner: the element or component that has it, none of a
    constant of laws; key: its key in a file; letter: its symbol, none where it has no usual one."""

    owner: str
    key: str
    letter: str
    value: float
    unit: str

    @property
    def name(self) -> str:
        """`R_motor`, `cylinder.dead_volume`, `stall`"""
        return f"{self.letter}_{self.owner}" if self.letter and self.owner else self.path

    @property
    def path(self) -> str:
        """`motor.resistance`"""
        return f"{self.owner}.{self.key}" if self.owner else self.key


# sizes of the signals at which laws are compared
SIZES_TRIED = (1e-3, 1.0, 1e3, 1e6)


@cache
def _named_symbol_class() -> type:
    import casadi

    # a module of casadi makes it a symbol for `cosim.core.ops`
    return type("NamedSymbol", (casadi.SX,), {"__bool__": lambda self: True, "__module__": casadi.SX.__module__})


def _named_symbol(name: str) -> Numeric:
    """A symbol that counts as true, as the number in its place does, which is not 0."""
    return _named_symbol_class()(symbols(name, ())[0])


@dataclass
class NamedNumbers:
    """Symbols of casadi, by the parameters that they stand for."""

    symbols: dict[Parameter, Numeric]

    def symbol(self, parameter: Parameter) -> Numeric:
        """Raises KeyError for a name that another number has."""
        if any(other.name == parameter.name and other != parameter for other in self.symbols):
            raise KeyError(parameter.name)
        if parameter not in self.symbols:
            self.symbols[parameter] = _named_symbol(parameter.name)
        return self.symbols[parameter]


def with_names(
    graph: CheckedGraph, origins: Mapping[str, ComponentOrigin]
) -> tuple[dict[str, Element], dict[str, tuple[Law, str]], dict[Parameter, Numeric]]:
    """(the elements and the signals of the graph with symbols in place of numbers, the symbols)."""
    numbers = NamedNumbers({})
    elements, signals = dict(graph.elements), dict(graph.signals)
    for name, origin in origins.items():
        found, recorded = _component(name, origin, graph, numbers)
        elements |= found
        signals |= recorded
    for name, element in elements.items():
        elements[name] = _named(name, element, numbers)
    signals = {name: (_law(law, numbers), unit) for name, (law, unit) in signals.items()}
    return elements, signals, numbers.symbols


def _named(name: str, element: Element, numbers: NamedNumbers) -> Element:
    """With its value, or the constants of its laws, as symbols."""
    if element.energy is not None:
        element = replace(element, energy=_law(element.energy, numbers))
    if isinstance(element.value, Law):
        return replace(element, value=_law(element.value, numbers))
    if not element.row.value or ops.is_symbolic(element.value):
        return element
    letter, key = PREFIXES[element.kind], element.row.value
    parameter = Parameter(name, key, letter, float(element.value), element.unit or "")
    return replace(element, value=numbers.symbol(parameter))


def _law(law: Law, numbers: NamedNumbers) -> Law:
    if not law.constants or law.remade is None:
        return law
    values = dict[str, Numeric]()
    for name, value in law.constants.items():
        try:
            values[name] = numbers.symbol(Parameter("", name, "", value, ""))
        except KeyError:
            continue
    return law.remade(values)


# --- components --------------------------------------------------------------------------------------


def _component(
    name: str, origin: ComponentOrigin, graph: CheckedGraph, numbers: NamedNumbers
) -> tuple[dict[str, Element], dict[str, tuple[Law, str]]]:
    """The elements and signals of a component, with symbols for as many of its parameters as can be."""
    parts = {"": origin.params, **origin.inner}
    given = {
        (part, field.name): parameter
        for part, params in parts.items()
        for field in fields(params)
        for owner in [f"{name}.{part}" if part else name]
        for parameter in [_parameter(owner, field.name, getattr(params, field.name), field.metadata)]
        if parameter is not None
    }

    def built(keys: Iterable[tuple[str, str]]) -> tuple[dict[str, Element], dict[str, tuple[Law, str]]] | None:
        trial, chosen = NamedNumbers(dict(numbers.symbols)), list(keys)

        def values_of(part: str) -> dict[str, Numeric]:
            return {key: trial.symbol(given[of, key]) for of, key in chosen if of == part}

        try:
            changed = {part: _with_values(params, values_of(part), trial) for part, params in parts.items()}
            made = origin.build(changed.pop(""), **changed)
            elements = {
                f"{name}.{inner}": _of_same_form(graph.elements[f"{name}.{inner}"], element, trial)
                for inner, element in made.elements.items()
            }
            signals = {f"{name}.{inner}": signal for inner, signal in made.signals.items()}
            inside = {inner for inner in graph.elements if inner.startswith(f"{name}.")}
            if set(elements) != inside or not set(signals) <= set(graph.signals):
                return None
            for signal, (law, _) in signals.items():
                _check_same(graph.signals[signal][0], law, trial)
        except Exception:  # whatever a component does with a symbol that it must decide on
            return None
        numbers.symbols = trial.symbols
        return elements, signals

    found = built(given)
    if found is None:
        found = built([key for key in given if _alone(built, numbers, key)])
    return found or ({}, {})


def _alone(built: Callable[[Iterable[tuple[str, str]]], Any], numbers: NamedNumbers, key: tuple[str, str]) -> bool:
    """Whether one parameter alone can be a symbol."""
    before = dict(numbers.symbols)
    possible = built([key]) is not None
    numbers.symbols = before
    return possible


def _parameter(owner: str, key: str, value: Any, declared: Mapping[str, Any]) -> Parameter | None:
    """Of a field of a component; None for one that is no finite number other than 0."""
    if not isinstance(value, float) or value == 0.0 or not math.isfinite(value):
        return None
    letter = _LETTER.match(declared.get("doc", ""))
    unit = declared.get("unit", "1")
    symbol = letter[1] if letter else LETTERS_OF_KEYS.get(key, "")
    return Parameter(owner, key, symbol, value, "" if unit == "1" else unit)


def _with_values(params: Any, values: Mapping[str, Numeric], numbers: NamedNumbers) -> Any:
    """A copy without its checks, with these values, and symbols for the constants of its laws."""
    changed = copy.copy(params)
    for field in fields(params):
        value = getattr(params, field.name)
        if isinstance(value, Law):
            object.__setattr__(changed, field.name, _law(value, numbers))
    for key, value in values.items():
        object.__setattr__(changed, key, value)
    return changed


def _of_same_form(element: Element, changed: Element, numbers: NamedNumbers) -> Element:
    """The element with the value and the laws of another one. Raises ValueError for one of another form, or with other
    values."""
    form = (element.kind, element.domains, element.stores, element.gives)
    if form != (changed.kind, changed.domains, changed.stores, changed.gives):
        raise ValueError("another element")
    laws = [
        (element.value, changed.value, None),
        (element.energy, changed.energy, len(element.stores) if element.kind == "IC" else None),
        (element.inverse, changed.inverse, None),
    ]
    for before, after, count in laws:
        if before is not None:
            _check_same(before, after, numbers, count)
    return replace(element, value=changed.value, energy=changed.energy, inverse=changed.inverse)


def _check_same(before: Any, after: Any, numbers: NamedNumbers, count: int | None = None) -> None:
    """Raises ValueError for a value or law that is not the same with the numbers in place of their symbols. count: of
    the values of a law that names none."""
    if not (isinstance(before, Law) and isinstance(after, Law)):
        if isinstance(before, Law) or isinstance(after, Law) or not _equal(before, after, numbers):
            raise ValueError("another value")
        return
    if before.uses != after.uses:
        raise ValueError("another law")
    random = np.random.default_rng(0)
    for size in SIZES_TRIED:
        x = size * random.uniform(-1.0, 1.0, len(before.uses) if count is None else count)
        with np.errstate(all="ignore"):
            if not _equal(before.fn(*x), after.fn(*x), numbers):
                raise ValueError("another law")


def _equal(before: Numeric, after: Numeric, numbers: NamedNumbers) -> bool:
    """To rounding, which differences of large numbers enlarge, wherever the value is finite."""
    import casadi

    if not np.isfinite(before):
        return True

    known, values = list(numbers.symbols.values()), [parameter.value for parameter in numbers.symbols]
    found = casadi.Function("f", known, [casadi.SX(after)])(*values)
    return bool(np.isclose(float(found), float(before), rtol=1e-4, atol=1e-12))
