"""A bond graph from a section of a file.

graph:
  constants: {stall: 12 N*m}
  tables: {curve: {x: [0, 1, 3], y: [0, 0.4, 0.5], interpolation: pchip}}
  inputs: {valve: m}
  junctions: {armature: 1, shaft: 1}
  elements:
    supply: {type: Se, domain: electrical, law: request / 0.05}
    winding: {type: I, domain: electrical, inertia: 0.9 mH}
    motor: {type: GY, domain: electrical, to: rotational, constant: 0.05 N*m/A}
  components: {gear: {type: gear_stage, ratio: 10}}
  bonds: [supply -> armature -> winding, armature -> motor -> shaft]
  ports: {shaft: shaft}
  signals: {heating: {law: resistance.effort * resistance.flow, unit: W}}
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from cosim.core.errors import did_you_mean
from cosim.core.plugin_loading import COMPONENT, known_names
from cosim.core.types import Numeric
from cosim.core.units import UNITS
from cosim.mechanics.bondgraph import expressions
from cosim.mechanics.bondgraph.domains import DOMAINS
from cosim.mechanics.bondgraph.elements import IC, KINDS, OUTPUTS, Element, Law, R
from cosim.mechanics.bondgraph.graph import BondGraph, Component, DcSource, ElectricMachine, GraphError, Stage
from cosim.mechanics.bondgraph.power_account import LOSSES
from cosim.rig.reading import schema
from cosim.rig.reading.plugins import call_checked, read_plugin
from cosim.rig.reading.schema import KeyPath, Reading
from cosim.rig.reading.tables import quantity, read_tables
from cosim.rig.reading.yaml_values import YamlValue

SECTIONS = ("constants", "tables", "inputs", "junctions", "elements", "components", "bonds", "ports", "signals")
_FURTHER = {"I": ("initial", "energy"), "C": ("initial", "energy"), "R": ("part",)}  # keys of a kind beside its value
JUNCTIONS = {0: "0", 1: "1", "0": "0", "1": "1"}


def read_graph(data: YamlValue, path: KeyPath, reading: Reading) -> BondGraph:
    """The graph of the section `data` at `path`; errors are recorded in `reading`. Its laws, those of its components
    and those of graphs inside of it may name its constants and tables."""
    sections = reading.mapping(data, path)
    schema.check_keys(sections, SECTIONS, path, reading)

    def section(name: str) -> Mapping[str, Any]:
        return reading.mapping(sections.get(name), (*path, name))

    graph = BondGraph(inputs=_inputs(section("inputs"), (*path, "inputs"), reading))
    constants = {
        name: quantity(value, (*path, "constants", name), reading) or 0.0
        for name, value in section("constants").items()
    }
    tables = read_tables(section("tables"), (*path, "tables"), reading)
    signals = {*graph.inputs, *section("signals")}
    reading = replace(reading, names=reading.names.without(signals).extended(constants, tables))
    for name, kind in section("junctions").items():
        if kind not in JUNCTIONS:
            what = f"a junction is 0 (common effort) or 1 (common flow), got {schema.show(kind)}"
            reading.fail((*path, "junctions", name), what)
            continue
        graph.junction(name, JUNCTIONS[kind])
    for name, value in section("elements").items():
        element = _element(value, (*path, "elements", name), reading)
        if element is not None:
            _added(graph, name, element, path, reading)
    for name, value in section("components").items():
        component = _component(value, (*path, "components", name), reading)
        if component is not None:
            graph.include(name, component)
    _read_bonds(graph, sections.get("bonds"), (*path, "bonds"), reading)
    graph.ports |= {name: str(target) for name, target in section("ports").items()}
    for name, value in section("signals").items():
        signal = _signal(value, (*path, "signals", name), reading)
        if signal is not None:
            graph.signals[name] = signal
    return graph


def _added(graph: BondGraph, name: str, element: Element, path: KeyPath, reading: Reading) -> None:
    try:
        graph.add(name, element)
    except GraphError as error:
        reading.fail((*path, *error.keys), error.what)


def _signal(value: YamlValue, path: KeyPath, reading: Reading) -> tuple[Law, str] | None:
    """(law, unit) of a recorded signal; None after an error."""
    data = reading.mapping(value, path)
    schema.check_keys(data, ("law", "unit"), path, reading)
    unit = str(data.get("unit", "1"))
    if unit not in UNITS:
        return reading.fail((*path, "unit"), f"there is no unit '{unit}'{did_you_mean(unit, UNITS)}")
    law = _law(data.get("law"), (*path, "law"), reading)
    return None if law is None else (law, unit)


def _inputs(data: Mapping[str, Any], path: KeyPath, reading: Reading) -> dict[str, str]:
    for name, unit in data.items():
        if unit not in UNITS:
            reading.fail((*path, name), f"there is no unit '{unit}'{did_you_mean(str(unit), UNITS)}")
    return {name: str(unit) for name, unit in data.items()}


def _read_bonds(graph: BondGraph, data: YamlValue, path: KeyPath, reading: Reading) -> None:
    if not isinstance(data, list) or not data:
        reading.fail(path, "give a list of bonds, such as [supply -> armature -> winding]")
        return
    for number, text in enumerate(data):
        names = [name.strip() for name in text.split("->")] if isinstance(text, str) else []
        if len(names) < 2 or not all(names):
            reading.fail((*path, number), f"expected a bond, such as supply -> armature, got {schema.show(text)}")
            continue
        graph.chain(*names)


def _component(value: YamlValue, path: KeyPath, reading: Reading) -> BondGraph | None:
    """A component out of the library by its `type`, or a graph of its own under `graph`."""
    data = reading.mapping(value, path)
    if "graph" in data:
        schema.check_keys(data, ("graph",), path, reading)
        return read_graph(data["graph"], (*path, "graph"), reading)
    component = read_component(data, path, reading)
    return None if component is None else call_checked(component.build, path, reading)


def read_component(
    value: YamlValue, path: KeyPath, reading: Reading, of: type[Component] = Component
) -> Component | None:
    """The component of the library that the section names by its `type`; None after an error."""
    data = reading.mapping(value, path)
    if of.default and "type" not in data:
        data = {"type": of.default, **data}
    name = data.get("type")
    if of.types and not (isinstance(name, str) and name in known_names(COMPONENT)):
        wrong = f"unknown {of.word} '{name}'" if isinstance(name, str) else f"expected text, got {schema.show(name)}"
        at, what = ((*path, "type"), wrong) if "type" in data else (path, "missing key 'type'")
        return reading.fail(at, f"{what}; use {of.choices()}")
    plugin = read_plugin(COMPONENT, data, path, reading, None)
    return None if plugin is None else of(plugin.type, plugin.module, plugin.params)


def _element(value: YamlValue, path: KeyPath, reading: Reading) -> Element | None:
    """None after an error."""
    data, before = reading.mapping(value, path), len(reading.errors)
    kind = data.get("type")
    if kind == "IC":
        return _field(data, path, reading)
    if not isinstance(kind, str) or kind not in KINDS or KINDS[kind].ports is None:
        known = ", ".join(name for name, row in KINDS.items() if row.ports is not None or name == "IC")
        reading.fail((*path, "type"), f"expected one of {known}; got {schema.show(kind)}")
        return None
    row = KINDS[kind]
    keys = ["type", "domain", *(["to"] if row.ports == 2 else []), row.value, "law"]
    schema.check_keys(data, [*keys, *_FURTHER.get(kind, ())], path, reading)
    if data.get("part", "other") not in LOSSES:
        reading.fail((*path, "part"), f"expected one of {', '.join(LOSSES)}; got {schema.show(data['part'])}")
    domains = [_domain(data.get("domain"), (*path, "domain"), reading)]
    if row.ports == 2:
        domains.append(_domain(data.get("to", data.get("domain")), (*path, "to"), reading))
    if (row.value in data) == ("law" in data):
        reading.fail(path, f"a {row.doc} has either '{row.value}' or 'law'")
    element = Element(kind, tuple(domains))
    unit = "" if len(reading.errors) > before else element.unit
    if unit is None:
        return element  # of domains that do not go together: see `BondGraph.checked`
    if len(reading.errors) > before:
        return None
    if "law" in data:
        law = _law(data["law"], (*path, "law"), reading)
        element = R(element.domains[0], law) if kind == "R" else replace(element, value=law)
    else:
        element = replace(element, value=schema.number(data[row.value], unit, (*path, row.value), reading))
    if "part" in data:
        element = replace(element, part=data["part"])
    if "initial" in data:
        initial = schema.number(data["initial"], element.initial_unit, (*path, "initial"), reading)
        element = replace(element, initial=initial)
    if "energy" in data:
        element = replace(element, energy=_law(data["energy"], (*path, "energy"), reading))
    return element if len(reading.errors) == before else None


def _field(data: Mapping[str, YamlValue], path: KeyPath, reading: Reading) -> Element | None:
    """A storage with several ports; None after an error."""
    before = len(reading.errors)
    schema.check_keys(data, ("type", "ports", "energy"), path, reading)
    sections = reading.mapping(data.get("ports"), (*path, "ports"))
    if len(sections) < 2:
        reading.fail((*path, "ports"), "a storage field has two ports or more; give each with its 'domain'")
    ports, initial = [], []
    for name, section in sections.items():
        at = (*path, "ports", name)
        port = reading.mapping(section, at)
        schema.check_keys(port, ("domain", "stores", "initial"), at, reading)
        domain, stores = _domain(port.get("domain"), (*at, "domain"), reading), port.get("stores", "displacement")
        if stores not in OUTPUTS:
            reading.fail((*at, "stores"), f"expected one of {', '.join(OUTPUTS)}; got {schema.show(stores)}")
        elif len(reading.errors) == before:
            unit = getattr(DOMAINS[domain], stores)
            ports.append((domain, stores))
            initial.append(schema.number(port.get("initial", 0.0), unit, (*at, "initial"), reading))
    energy = _energy(data.get("energy"), tuple(sections), (*path, "energy"), reading)
    if len(reading.errors) > before or energy is None:
        return None
    return IC(ports, energy, initial, tuple(sections))


def _energy(value: YamlValue, ports: tuple[str, ...], path: KeyPath, reading: Reading) -> Callable[..., Numeric] | None:
    """The energy of a field as a function of the states of its ports; None after an error."""
    law = _law(value, path, reading)
    if law is None:
        return None
    for name in law.uses:
        if name not in ports:
            return reading.fail(path, f"uses '{name}', which is no port of the field{did_you_mean(name, ports)}")
    for name in ports:
        if name not in law.uses:
            return reading.fail(path, f"does not depend on '{name}'; take this port out, or use it")
    places = [ports.index(name) for name in law.uses]
    return lambda *states: law.fn(*(states[k] for k in places))


def _domain(value: YamlValue, path: KeyPath, reading: Reading) -> str:
    if value not in DOMAINS:
        hint = did_you_mean(value, DOMAINS) if isinstance(value, str) else ""
        reading.fail(path, f"there is no domain {schema.show(value)}{hint or '; use ' + ', '.join(DOMAINS)}")
    return str(value)


def _law(value: YamlValue, path: KeyPath, reading: Reading) -> Law | None:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return reading.fail(path, f"expected an expression, got {schema.show(value)}")
    try:
        return expressions.law(str(value), reading.names)
    except ValueError as error:
        return reading.fail(path, str(error))


schema.READERS |= {
    Law: lambda reading, hint, value, meta, path: _law(value, path, reading),
    BondGraph: lambda reading, hint, value, meta, path: read_graph(value, path, reading),
    **dict.fromkeys(
        (Component, ElectricMachine, Stage, DcSource),
        lambda reading, hint, value, meta, path: read_component(value, path, reading, hint),
    ),
}
