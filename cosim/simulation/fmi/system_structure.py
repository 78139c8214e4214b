"""Systems of SSP (System Structure and Parameterization 1.0, 2.0) as parts and wires: nested systems are flattened,
parameters bound, units and linear transformations of connections computed."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from cosim.core.errors import InputError, SectionError, SourceLocation, did_you_mean, shortened
from cosim.mechanics.multibody.description.xmltree import XmlElement
from cosim.simulation.fmi.archive import Interface
from cosim.simulation.fmi.description import FmuDescription
from cosim.simulation.fmi.fmu_system import FmuSystem, SystemPart, SystemWire, part_name
from cosim.simulation.fmi.ssp_files import (
    VERSIONS,
    SspFolder,
    attribute,
    bound_values,
    child,
    children,
    kind_of,
    open_folder,
    transformation,
    units_of,
)
from cosim.simulation.fmi.unit_conversion import Conversion, conversion_of, in_a_row, in_si
from cosim.simulation.fmi.variables import FmuVariable, FmuVariables, InUnitOfFmu

IMPLEMENTATIONS: dict[str, Interface] = {"CoSimulation": "co-simulation", "ModelExchange": "model exchange"}
FMU_TYPE = "application/x-fmu-sharedlibrary"
OUTPUTS = ("output", "calculatedParameter")
ElementPath = tuple[str, ...]  # names of systems and a component, from the outside in


def read_system(
    path: str | Path,
    params: Mapping[str, Any] | None = None,
    initial: Mapping[str, float] | None = None,
    locals: Iterable[str] = (),
) -> FmuSystem:
    """The system of an `.ssp` archive or an `.ssd` file.

    params: parameters of components and of the system by their paths, instead of those in the file; initial: inputs
    that get their value one step late, and begin with this one [SI]; locals: variables that are read beside the
    outputs. Raises InputError with file and line for mistakes in files, SectionError for those in the arguments.
    """
    folder, structure, remove = open_folder(Path(path))
    try:
        root = folder.read(structure, "SystemStructureDescription")
        version = root.attributes.get("version", "")
        if not version.startswith(VERSIONS):
            raise InputError(f"has SSP version '{shortened(version)}'; export it for SSP 1.0 or 2.0", root.place)
        system = child(root, "System")
        if system is None:
            raise InputError("<SystemStructureDescription> has no <System>; add one", root.place)
        return _Flattening(folder, root, system, params or {}).result(initial or {}, locals, remove)
    except BaseException:
        if remove is not None:
            remove()
        raise


@dataclass
class _Component:
    """A component or a system: its element and its connectors (kinds by name; none where they are not declared)."""

    element: XmlElement
    connectors: dict[str, str]

    @property
    def is_component(self) -> bool:
        return kind_of(self.element) == "Component"


@dataclass(frozen=True)
class _Edge:
    """What a connector gets: from which one, through which transformation."""

    start: tuple[ElementPath, str]
    element: XmlElement


class _Flattening:
    """The components of all levels, and for each connector the one that feeds it."""

    def __init__(self, folder: SspFolder, root: XmlElement, system: XmlElement, params: Mapping[str, Any]) -> None:
        self._folder, self._system = folder, system
        self._nodes: dict[ElementPath, _Component] = {}
        self._edges: dict[tuple[ElementPath, str], _Edge] = {}
        self._parameters: dict[ElementPath, dict[str, Any]] = {}
        self._described = cache(lambda path: FmuDescription(path, folder.name(path)))
        self._variables = cache(self._read_variables)
        self._units = _units_of_connectors(root, system)
        self._add(system, ())
        self._given: dict[tuple[ElementPath, str], str] = {}  # what the caller has given, and by which path
        for name, value in params.items():
            at, parameter = self._owner(name, "params")
            self._parameters.setdefault(at, {})[parameter] = value
            self._given[at, parameter] = name

    def result(self, initial: Mapping[str, float], locals: Iterable[str], remove: weakref.finalize | None) -> FmuSystem:
        components = {at: node for at, node in self._nodes.items() if node.is_component}
        if not components:
            raise InputError("<System> has no components; add one with an FMU", self._system.place)
        names = dict[str, ElementPath]()
        for at, node in components.items():
            if names.setdefault(part_name(at), at) != at:
                what = f"as a part, the component would have the name '{part_name(at)}' of another one; rename it"
                raise InputError(what, node.element.place)
        wires, inputs, outputs = self._wires(components)
        read = {at: list[str]() for at in components}
        for wire in (*wires, *outputs.values()):
            read[names[wire.source[0]]].append(wire.source[1])
        for path in locals:
            at, name = self._owner(path, "locals")
            if at not in read:
                raise SectionError(f"'{shortened(path)}' is no variable of a component", ("locals",))
            read[at].append(self._checked_local(at, name).name)
        parts = [self._part(at, node.element, read[at]) for at, node in components.items()]
        declared = [name for name, kind in self._nodes[()].connectors.items() if "arameter" not in kind]
        unconnected = tuple(name for name in declared if name not in inputs and name not in outputs)
        name = self._system.attributes.get("name", "")
        late = tuple(self._delayed(wires, initial, names))
        return FmuSystem(name, tuple(parts), late, inputs, outputs, unconnected, self._folder, remove)

    def _wires(
        self, components: Mapping[ElementPath, _Component]
    ) -> tuple[list[SystemWire], dict[str, tuple[SystemWire, ...]], dict[str, SystemWire]]:
        """Wires between components, those from inputs and to outputs of the system. Values of parameters and inputs of
        systems go to what they are connected to."""
        wires: list[SystemWire] = []
        inputs: dict[str, tuple[SystemWire, ...]] = {}
        outputs: dict[str, SystemWire] = {}
        for (at, connector), edge in self._edges.items():
            if at not in components and at != ():
                continue
            (source, name), edges = self._source((at, connector), edge)
            if source in components:
                wire = self._wire(edges, source, name, at, connector)
                if at == ():
                    outputs[connector] = wire
                else:
                    wires.append(wire)
                continue
            if at == ():  # from an input of the system: there is no FMU behind it
                continue
            if name in self._parameters.get(source, {}):
                self._pass_on(edges, self._parameters[source][name], at, connector)
            if source == () and self._nodes[()].connectors.get(name) != "parameter":
                inputs[name] = (*inputs.get(name, ()), self._wire(edges, source, name, at, connector))
        return wires, inputs, outputs

    def _pass_on(self, edges: list[_Edge], value: Any, at: ElementPath, name: str) -> None:
        """A value of a parameter or input of a system to a variable of a component, unless the caller has given one."""
        factor, offset = in_a_row(transformation(edge.element) for edge in edges)
        if (factor, offset) != (1.0, 0.0):
            if not isinstance(value, InUnitOfFmu) or not isinstance(value.value, int | float):
                what = "a transformation of a parameter with a unit is not read; give the value without one"
                raise InputError(what, edges[-1].element.place)
            value = InUnitOfFmu(factor * value.value + offset)
        if (at, name) not in self._given:
            self._parameters.setdefault(at, {})[name] = value

    def _part(self, at: ElementPath, element: XmlElement, read: Iterable[str]) -> SystemPart:
        """A component with checked parameters; read: of its variables."""
        path, given = self._fmu(element), self._parameters.get(at, {})
        described = self._described(path)
        place = SourceLocation(described.shown, None, part_name(at))
        variables = FmuVariables(described.description, described.version, place, given)
        for name, value in given.items():
            try:
                variables.values({name: value})
            except InputError as error:
                if (at, name) in self._given:
                    raise SectionError(str(error), ("params", self._given[at, name])) from None
                raise InputError(str(error), element.place) from None
        outputs = dict.fromkeys([*(v.name for v in variables.outputs(None)), *read])
        return SystemPart(part_name(at), path, given, tuple(outputs), _interface(element), described.shown)

    def _delayed(
        self, wires: list[SystemWire], initial: Mapping[str, float], names: Mapping[str, ElementPath]
    ) -> Iterable[SystemWire]:
        """The wires, those to the inputs of `initial` with its values."""
        values = {}
        for path, value in initial.items():
            at, name = self._owner(path, "initial")
            values[part_name(at), name] = value
            if (part_name(at), name) not in (wire.target for wire in wires):
                known = [".".join((*names[wire.target[0]], wire.target[1])) for wire in wires]
                what = f"no connection goes to '{shortened(path)}'{did_you_mean(path, known)}"
                raise SectionError(what, ("initial", path))
        for wire in wires:
            yield replace(wire, initial=values.get(wire.target))

    # --- reading ------------------------------------------------------------------------------------

    def _add(self, element: XmlElement, at: ElementPath) -> None:
        """An element and those in it; parameters of outer levels override inner ones."""
        self._nodes[at] = _Component(element, _connectors(element))
        names = set()
        for inner in (e for group in children(element, "Elements") for e in group.children):
            name = attribute(inner, "name")
            if kind_of(inner) not in ("Component", "System"):
                raise InputError(f"<{kind_of(inner)}> is not read; use components and systems", inner.place)
            if not name:
                raise InputError(f"<{kind_of(inner)}> has an empty name; give it one", inner.place)
            if name in names:
                raise InputError(f"there are two elements '{shortened(name)}'; rename one", inner.place)
            names.add(name)
            self._add(inner, (*at, name))
        for name, value in bound_values(self._folder, element).items():
            try:
                owner, parameter = self._owner(name, "params", at)
            except SectionError as error:
                raise InputError(error.what, element.place) from None
            self._parameters.setdefault(owner, {})[parameter] = value
        for connection in children(element, "Connections", "Connection"):
            self._connect(at, connection)

    def _owner(self, path: str, key: str, at: ElementPath = ()) -> tuple[ElementPath, str]:
        """(component, variable) of a path with dots in an element; key: the argument that has it, of which `params`
        has parameters and inputs of systems too. Raises SectionError for a path that begins with no element."""
        connectors = self._nodes[at].connectors.items() if key == "params" else ()
        own = [name for name, kind in connectors if kind in ("parameter", "input")]
        if self._nodes[at].is_component or path in own:
            return at, path
        inner = self._inner(at)
        for each in sorted(inner, key=lambda each: -len(each[-1])):
            if path.startswith(each[-1] + "."):
                return self._owner(path.removeprefix(each[-1] + "."), key, each)
        known = [*own, *(each[-1] + "." for each in inner)]
        raise SectionError(f"'{shortened(path)}' begins with no element{did_you_mean(path, known)}", (key, path))

    def _inner(self, at: ElementPath) -> list[ElementPath]:
        return [each for each in self._nodes if len(each) == len(at) + 1 and each[:-1] == at]

    def _connect(self, at: ElementPath, connection: XmlElement) -> None:
        ends = [self._end(at, connection, side) for side in ("start", "end")]
        if self._gives(at, *ends[1]) or self._takes(at, *ends[0]):
            if transformation(connection) != (1.0, 0.0):
                raise InputError("goes from an input to an output; swap start and end", connection.place)
            ends.reverse()
        start, end = ends
        if end in self._edges:
            shown = ".".join((*end[0], end[1]))
            raise InputError(f"'{shortened(shown)}' is connected twice; remove one connection", connection.place)
        self._edges[end] = _Edge(start, connection)

    def _end(self, at: ElementPath, connection: XmlElement, side: str) -> tuple[ElementPath, str]:
        """(element, connector) of one end of a connection."""
        connector, name = attribute(connection, f"{side}Connector"), connection.attributes.get(f"{side}Element")
        where = (*at, name) if name else at
        if where not in self._nodes:
            known = [each[-1] for each in self._inner(at)]
            raise InputError(
                f"there is no element '{shortened(str(name))}'{did_you_mean(str(name), known)}", connection.place
            )
        known = self._nodes[where].connectors
        if known and connector not in known:
            what = f"'{name}' has" if name else "the system has"
            raise InputError(
                f"{what} no connector '{shortened(connector)}'{did_you_mean(connector, known)}", connection.place
            )
        return where, connector

    def _gives(self, at: ElementPath, where: ElementPath, connector: str) -> bool:
        """Whether a connector only gives values in the system `at`: an output of an element, an input of the system."""
        kind = self._nodes[where].connectors.get(connector)
        return kind == "input" if where == at else kind in OUTPUTS

    def _takes(self, at: ElementPath, where: ElementPath, connector: str) -> bool:
        kind = self._nodes[where].connectors.get(connector)
        return kind in OUTPUTS if where == at else kind == "input"

    # --- connections through systems ------------------------------------------------------------------

    def _source(self, end: tuple[ElementPath, str], edge: _Edge) -> tuple[tuple[ElementPath, str], list[_Edge]]:
        """The connector that feeds one in the end, and the connections from there."""
        edges, seen = [edge], {end}
        while edges[0].start in self._edges and not self._nodes[edges[0].start[0]].is_component:
            if edges[0].start in seen:
                raise InputError("is part of a circle of connections; remove one of them", edge.element.place)
            seen.add(edges[0].start)
            edges.insert(0, self._edges[edges[0].start])
        return edges[0].start, edges

    def _wire(self, edges: list[_Edge], source: ElementPath, output: str, target: ElementPath, name: str) -> SystemWire:
        """From an output to an input, of which one may be a connector of the system: where it has no unit, it takes the
        other one's."""
        last = edges[-1].element
        variables = [
            self._variable(at, variable, edge) if at else None
            for at, variable, edge in ((source, output, edges[0]), (target, name, edges[-1]))
        ]
        if variables[0] is not None and (variables[0].declared.causality == "input" or not variables[0].storage):
            raise InputError(f"{_shown(source, output)} is no output of its FMU; connect one", edges[0].element.place)
        if variables[1] is not None and (variables[1].declared.causality != "input" or not variables[1].storage):
            raise InputError(f"{_shown(target, name)} is no input of its FMU; connect one", last.place)
        units = [
            self._units.get(connector) if variable is None else variable.conversion if variable.has_unit else None
            for variable, connector in zip(variables, (output, name), strict=True)
        ]
        undeclared = [k for k, at in enumerate((source, target)) if at == () and units[k] is None]
        for k in undeclared:
            units[k] = units[1 - k]
        suppressed = any(e.element.attributes.get("suppressUnitConversion") in ("true", "1") for e in edges)
        try:
            steps = [transformation(e.element) for e in edges]
            numbers = in_si(steps, units[0], units[1], suppressed)
        except ValueError:
            shown = [unit.unit if unit else "" for unit in units]
            what = f"{_shown(source, output)} is in {shown[0]}, {_shown(target, name)} in {shown[1]}"
            raise InputError(f"{what}; connect signals of one kind, or give a factor", last.place) from None
        return SystemWire((part_name(source), output), (part_name(target), name), *numbers, place=last.place)

    def _variable(self, at: ElementPath, name: str, edge: _Edge) -> FmuVariable:
        known = self._variables(self._fmu(self._nodes[at].element)).by_name
        if name not in known:
            shown = f"the FMU of '{'.'.join(at)}' has no variable '{shortened(name)}'"
            raise InputError(f"{shown}{did_you_mean(name, known)}", edge.element.place)
        return known[name]

    def _checked_local(self, at: ElementPath, name: str) -> FmuVariable:
        try:
            return self._variables(self._fmu(self._nodes[at].element)).outputs([name])[0]
        except InputError as error:
            raise SectionError(str(error), ("locals",)) from None

    def _read_variables(self, path: Path) -> FmuVariables:
        described = self._described(path)
        return FmuVariables(described.description, described.version, SourceLocation(described.shown))

    def _fmu(self, element: XmlElement) -> Path:
        given = element.attributes.get("type", FMU_TYPE)
        if given != FMU_TYPE:
            raise InputError(f"type '{shortened(given)}' is not read; use an FMU ({FMU_TYPE})", element.place)
        return self._folder.locate(element)


def _connectors(element: XmlElement) -> dict[str, str]:
    declared = children(element, "Connectors", "Connector")
    return {attribute(each, "name"): each.attributes.get("kind", "") for each in declared}


def _interface(element: XmlElement) -> Interface | None:
    return IMPLEMENTATIONS.get(element.attributes.get("implementation", ""))


def _units_of_connectors(root: XmlElement, system: XmlElement) -> dict[str, Conversion]:
    """Of the connectors of a system that declare a unit."""
    units, found = units_of(root), {}
    for connector in children(system, "Connectors", "Connector"):
        for typed in connector.children:
            if name := typed.attributes.get("unit"):
                found[attribute(connector, "name")] = conversion_of(name, units.get(name))
    return found


def _shown(at: ElementPath, name: str) -> str:
    return f"'{shortened('.'.join((*at, name)))}'"
