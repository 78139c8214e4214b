"""Plug-ins found by folder listing, with parameters drawn from what their `Params` declare.

Contract tests run over these: a new file in the folder of a kind is tested without a change of any test.
"""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
from collections.abc import Iterator
from types import ModuleType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np

from cosim.mechanics.bondgraph import TF, BondGraph, Law, Se
from cosim.mechanics.bondgraph.components import dc_machine, diode_bridge
from cosim.mechanics.bondgraph.graph import DcSource, ElectricMachine
from tests.bondgraph.graphs import motor


def modules(package: str) -> list[ModuleType]:
    """The plug-ins of a package: every module whose name does not begin with an underscore."""
    found = importlib.import_module(package)
    names = [item.name for item in pkgutil.iter_modules(found.__path__) if not item.name.startswith("_")]
    assert names, f"no plug-ins in {package}"
    return [importlib.import_module(f"{package}.{name}") for name in names]


def name_of(module: ModuleType) -> str:
    return module.__name__.rpartition(".")[2]


def parameter_sets(module: ModuleType, n: int, text: str = "", random_sets: int = 2) -> Iterator[tuple[str, Any]]:
    """(label, parameters) of a plug-in for n joints: defaults, each option in turn, random values of all fields.

    text: the value of required text fields. Combinations that `Params` refuses with a ValueError are left out; at
    least one must remain.
    """
    rng = np.random.default_rng(0)
    hints = get_type_hints(module.Params, include_extras=False)
    fields = [f for f in dataclasses.fields(module.Params) if f.init]
    required = {f.name: f for f in fields if f.default is dataclasses.MISSING}
    drawn: list[tuple[str, dict[str, Any]]] = [("defaults", {})]
    for f in fields:
        drawn += [(f"{f.name}={value}", {f.name: value}) for value in _options(hints[f.name])]
        if f.name not in required and not _options(hints[f.name]):
            drawn.append((f"{f.name} drawn", {f.name: _drawn(f, hints[f.name], n, text, rng)}))
    for k in range(random_sets):
        drawn.append((f"random {k}", {f.name: _drawn(f, hints[f.name], n, text, rng) for f in fields}))
    count = 0
    for label, values in drawn:
        given = {name: _drawn(f, hints[name], n, text, rng) for name, f in required.items()} | values
        for f in fields:  # one number means all joints
            if f.name not in given and _is_per_joint(hints[f.name]) and isinstance(f.default, (int, float)):
                given[f.name] = (float(f.default),) * n
        try:
            params = module.Params(**given)
        except ValueError:
            continue
        count += 1
        yield label, params
    assert count, f"no valid parameters found for {module.__name__}"


def cases(package: str, n: int, text: str = "") -> list[Any]:
    """(module, parameters) of every plug-in of a package, as cases of pytest."""
    import pytest

    return [
        pytest.param(module, params, id=f"{name_of(module)}: {label}")
        for module in modules(package)
        for label, params in parameter_sets(module, n, text)
    ]


def _options(hint: Any) -> tuple[Any, ...]:
    if hint is bool:
        return (False, True)
    return get_args(hint) if get_origin(hint) is Literal else ()


def _is_per_joint(hint: Any) -> bool:
    return any(get_args(part) == (float, ...) for part in (hint, *get_args(hint)) if get_origin(part) is tuple)


def _fixed_size(hint: Any) -> int:
    """The number of numbers of a vector, 0 of anything else."""
    found = (get_args(part) for part in (hint, *get_args(hint)) if get_origin(part) is tuple)
    return next((len(parts) for parts in found if set(parts) == {float}), 0)


def _is_list_of_points(hint: Any) -> bool:
    tuples = (part for part in (hint, *get_args(hint)) if get_origin(part) is tuple)
    return any(get_origin(part) is tuple for found in tuples for part in get_args(found)[:1])


def _drawn(field: dataclasses.Field[Any], hint: Any, n: int, text: str, rng: np.random.Generator) -> Any:
    """A valid value of a field: within its bounds, near a finite default."""
    if options := _options(hint):
        return options[int(rng.integers(len(options)))]
    if size := _fixed_size(hint):
        return tuple(_number(field, rng) for _ in range(size))
    if _is_list_of_points(hint):
        return tuple(tuple(_number(field, rng) for _ in range(n)) for _ in range(2))
    if _is_per_joint(hint):
        numbers = [_number(field, rng) for _ in range(n)]
        return tuple(sorted(numbers) if field.metadata["unit"] == "s" else numbers)  # times increase
    if hint is BondGraph:
        return motor_at_joint()
    if hint is ElectricMachine:
        params = dc_machine.Params(0.5, 1e-3, inertia=1e-3, torque_constant=0.1)
        return ElectricMachine("dc_machine", dc_machine, params)
    if hint is DcSource:
        return DcSource("diode_bridge", diode_bridge, diode_bridge.Params(300.0, 1.0))
    if dict in (hint, *get_args(hint)):
        return {}
    if any(map(dataclasses.is_dataclass, (hint, *get_args(hint)))):  # one or several sections
        return field.default
    if float in (hint, *get_args(hint)):
        return _number(field, rng)
    if int in (hint, *get_args(hint)):
        return int(np.ceil(_number(field, rng)))
    assert str in (hint, *get_args(hint)), f"parameter '{field.name}' of type {hint}: no rule to draw a value"
    return text


def motor_at_joint() -> BondGraph:
    """The graph of an actuator: a DC motor that a voltage of 2 V per N·m drives, geared to the joint."""
    graph = motor()
    graph.elements["supply"] = Se("electrical", Law(lambda request: 2.0 * request, ("request",)))
    del graph.inputs["voltage"]
    graph.add("gear", TF("rotational", "rotational", 0.1))
    graph.chain("rotor", "gear", "joint")
    return graph


def _number(field: dataclasses.Field[Any], rng: np.random.Generator) -> float:
    bounds = field.metadata
    lower = bounds["min"] if bounds["above"] is None else bounds["above"]
    upper, default = bounds["max"], field.default
    if isinstance(default, (int, float)) and np.isfinite(default) and default != 0:
        value = default * rng.uniform(0.5, 2.0)
    elif lower is None:
        value = rng.uniform(-1.0, 1.0)
    else:
        value = lower + rng.uniform(0.2, 2.0)
    return float(value if upper is None else min(value, upper))
