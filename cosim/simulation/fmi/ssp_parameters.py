"""Parameters of SSP: values (`.ssv`, or inline) that are bound to systems and components, with mappings (`.ssm`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cosim.core.errors import InputError, did_you_mean, shortened
from cosim.mechanics.multibody.description.xmltree import XmlElement
from cosim.simulation.fmi.ssp_files import SspFolder, attribute, child, children, kind_of, number
from cosim.simulation.fmi.unit_conversion import conversion_of
from cosim.simulation.fmi.variables import REAL, InUnit, InUnitOfFmu

BASE = ("kg", "m", "s", "A", "K", "mol", "cd", "rad", "factor", "offset")
BOOLEANS = {"true": True, "1": True, "false": False, "0": False}
Values = dict[str, Any]


def units_of(root: XmlElement) -> dict[str, dict[str, float] | None]:
    """The definitions of units in a file: exponents of base units, factor and offset by name."""
    definitions: dict[str, dict[str, float] | None] = {}
    for unit in children(root, "Units", "Unit"):
        base = child(unit, "BaseUnit")
        defaults = {name: float(name == "factor") for name in BASE}
        definitions[attribute(unit, "name")] = base and {k: number(base, k, x) for k, x in defaults.items()}
    return definitions


def bound_values(folder: SspFolder, owner: XmlElement) -> Values:
    """The parameters that the bindings of a system or component give, by name; later bindings replace earlier ones."""
    values: Values = {}
    for binding in children(owner, "ParameterBindings", "ParameterBinding"):
        values |= _binding(folder, binding)
    return values


def _binding(folder: SspFolder, binding: XmlElement) -> Values:
    inline = child(binding, "ParameterValues", "ParameterSet")
    root = inline or folder.read(folder.locate(binding), "ParameterSet")
    units, prefix = units_of(root), binding.attributes.get("prefix", "")
    given = {
        prefix + attribute(parameter, "name"): _typed(parameter)
        for parameter in children(root, "Parameters", "Parameter")
    }
    mapping = child(binding, "ParameterMapping")
    if mapping is None:
        return {name: _value(value, units) for name, value in given.items()}
    entries = child(mapping, "ParameterMapping") or folder.read(folder.locate(mapping), "ParameterMapping")
    return dict(_mapped(entries, given, units))


def _typed(parameter: XmlElement) -> XmlElement:
    """The element with the type and the value."""
    if not parameter.children:
        raise InputError("<Parameter> has no value; add an element such as <Real value=…/>", parameter.place)
    return parameter.children[0]


def _mapped(entries: XmlElement, given: dict[str, XmlElement], units: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """(target, value) of the entries of a mapping."""
    for entry in children(entries, "MappingEntry"):
        source, target = attribute(entry, "source"), attribute(entry, "target")
        if not source:  # of a template: nothing is mapped yet
            continue
        if source not in given:
            raise InputError(f"there is no parameter '{shortened(source)}'{did_you_mean(source, given)}", entry.place)
        factor, offset = transformation(entry)
        yield target, _value(given[source], units, factor, offset)


def transformation(element: XmlElement) -> tuple[float, float]:
    """(factor, offset) of an element with a transformation. Raises InputError for one that is not linear."""
    for each in element.children:
        if kind_of(each) == "LinearTransformation":
            return number(each, "factor", 1.0), number(each, "offset", 0.0)
        if kind_of(each).endswith("Transformation"):
            raise InputError(f"<{kind_of(each)}> is not read; only LinearTransformation is", each.place)
    return 1.0, 0.0


def _value(typed: XmlElement, units: dict[str, Any], factor: float = 1.0, offset: float = 0.0) -> Any:
    """A value for `FmuPart`, in its unit, else in the FMU's."""
    kind, text = kind_of(typed), attribute(typed, "value")
    if kind in ("String", "Enumeration"):
        return text
    if kind == "Boolean":
        if text not in BOOLEANS:
            raise InputError(f"value: expected true or false, got '{shortened(text)}'", typed.place)
        return BOOLEANS[text]
    if kind not in REAL and not kind.removeprefix("U").startswith("Int"):
        raise InputError(f"<{kind}> is no type of a parameter that is read", typed.place)
    try:
        numbers = [factor * (float(x) if kind in REAL else int(x)) + offset for x in text.split()]
    except ValueError:
        raise InputError(f"value: expected a number, got '{shortened(text)}'", typed.place) from None
    value: Any = numbers[0] if len(numbers) == 1 else numbers
    unit = typed.attributes.get("unit")
    return InUnit(value, conversion_of(unit, units.get(unit))) if unit else InUnitOfFmu(value)
