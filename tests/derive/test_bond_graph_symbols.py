"""Parameters of components keep their names in equations: of every component of the library."""

import importlib
import math
import pkgutil
from dataclasses import MISSING, fields, replace
from types import ModuleType
from typing import Any

import casadi
import numpy as np
import pytest

from cosim.apps.derive.bond_graph_symbols import with_names
from cosim.mechanics.bondgraph import BondGraph, Law, components
from cosim.mechanics.bondgraph.components import battery
from cosim.mechanics.bondgraph.graph import CheckedGraph, DcSource, built
from tests.actuators.test_cable_of_a_drive import CABLE, FORMS, rig_with

NAMES = [m.name for m in pkgutil.iter_modules(components.__path__) if not m.name.startswith("_")]
# those that decide of what elements a component is made, or that a law compares with a number
NUMBERS = {
    "accumulator": {"exponent"},
    "cylinder": {"extension", "stroke"},
    "gas_cylinder": {"extension", "stroke"},
    "induction_machine": {"saturation_flux", "saturation_exponent"},
}
GIVEN: dict[str, dict[str, Any]] = {
    "dc_machine": {"torque_constant": 0.1},
    "pmsm": {"pole_pairs": 4},
    "induction_machine": {"pole_pairs": 2, "stator_leakage": 0.1, "rotor_leakage": 0.1},
    "gas_orifice": {"conductance": 1e-8},
    "battery": {"charges": (0.0, 1.0), "voltages": (3.0, 5.0)},
    "dc_link": {"source": DcSource("battery", battery, battery.Params(50.0, (0.0, 1.0), (3.0, 5.0), 0.5))},
}


def is_number(field: Any) -> bool:
    return "float" in str(field.type) and "tuple" not in str(field.type)


def params_of(name: str, module: ModuleType) -> Any:
    """With a number for each parameter that the component takes together with the others."""
    values: dict[str, Any] = {}
    for field in fields(module.Params):
        if field.default is MISSING:
            values[field.name] = Law(lambda: 0.1) if "Law" in str(field.type) else 0.5
    found = module.Params(**values | GIVEN.get(name, {}))
    for field in fields(module.Params):
        if is_number(field) and getattr(found, field.name) in (0.0, None, math.inf):
            try:
                more = replace(found, **{field.name: 0.3})
                module.build(more)
            except Exception:  # not together with the others
                continue
            found = more
    return found


@pytest.mark.parametrize("name", NAMES)
def test_every_parameter_of_a_component_has_a_name(name: str) -> None:
    """And with the numbers in place of the symbols the values of its elements are the same."""
    module = importlib.import_module(f"cosim.mechanics.bondgraph.components.{name}")
    params = params_of(name, module)
    outer = BondGraph()
    outer.include("part", built(module.build, params))
    unchecked = CheckedGraph.__new__(CheckedGraph)  # it may lack bonds
    for key, value in (("elements", outer.elements), ("signals", outer.signals), ("bonds", ())):
        object.__setattr__(unchecked, key, value)
    elements, _, numbers = with_names(unchecked, outer.origins)
    values = {f.name: getattr(params, f.name) for f in fields(params) if is_number(f)}
    wanted = {key for key, value in values.items() if value and math.isfinite(value)}
    named = {parameter.key for parameter in numbers if parameter.owner == "part"}
    assert wanted - named <= NUMBERS.get(name, set())
    assert {p.name for p in numbers}.__len__() == len(numbers)  # a name means one number
    for inner, element in elements.items():
        before = outer.elements[inner].value
        if not isinstance(element.value, Law) and not isinstance(before, Law) and element.row.value:
            f = casadi.Function("f", [casadi.SX(s) for s in numbers.values()], [casadi.SX(element.value)])
            assert float(f(*(p.value for p in numbers))) == pytest.approx(float(before), rel=1e-12)
        if isinstance(element.value, Law):
            assert isinstance(before, Law)
            x = np.random.default_rng(1).uniform(0.1, 1.0, len(before.uses))
            f = casadi.Function("f", [casadi.SX(s) for s in numbers.values()], [casadi.SX(element.value.fn(*x))])
            with np.errstate(all="ignore"):
                expected = float(before.fn(*x))
            assert float(f(*(p.value for p in numbers))) == pytest.approx(expected, rel=1e-9, abs=1e-12, nan_ok=True)


def values_at(elements: Any, x: np.ndarray) -> dict[str, Any]:
    """Of all elements, of laws with these signals (n,)."""
    found = {}
    for name, element in elements.items():
        if isinstance(element.value, Law):
            found[name] = element.value.fn(*x[: len(element.value.uses)])
        elif element.row.value:
            found[name] = element.value
    return found


@pytest.mark.parametrize(("kind", "form"), FORMS)
def test_a_drive_with_a_cable_has_names_for_both(kind: str, form: str) -> None:
    """With other numbers in the place of those of the cable, its inductance in the turning axes too, the elements are
    those of a drive that has them."""
    drive = rig_with(kind, form, {}).plant.actuators["hinge"]
    elements, _, numbers = with_names(drive.assembly.graph, drive.origins)
    values = {parameter: parameter.value for parameter in numbers}
    of_cable = {parameter.key: parameter for parameter in numbers if parameter.owner == "motor.cable"}
    assert of_cable.keys() == {"length", "resistance", "inductance", "temperature_rise", "coefficient"}
    assert any(parameter.owner == "motor" and "resistance" in parameter.key for parameter in numbers)
    values |= {of_cable["inductance"]: 3e-6, of_cable["length"]: 20.0}
    other = rig_with(kind, form, {}, cable=CABLE | {"inductance": 3e-6, "length": 20}).plant.actuators["hinge"]
    x = np.random.default_rng(1).uniform(0.1, 1.0, 20)
    found, expected = values_at(elements, x), values_at(other.assembly.graph.elements, x)
    of_numbers = casadi.Function("f", list(map(casadi.SX, numbers.values())), [casadi.vertcat(*found.values())])
    computed = np.array(of_numbers(*(values[parameter] for parameter in numbers))).ravel()
    assert computed == pytest.approx(np.array(list(map(float, expected.values()))), rel=1e-9, abs=1e-12)
