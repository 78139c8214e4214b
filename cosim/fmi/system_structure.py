"""Systems of SSP (System Structure and Parameterization 1.0, 2.0) as parts and wires: nested systems are flattened,
parameters bound, units and linear transformations of connections computed."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from cosim.errors import InputError, did_you_mean, shortened
from cosim.fmi.archive import Interface
from cosim.fmi.description import FmuDescription
from cosim.fmi.ssp_files import VERSIONS, SspFolder, attribute, child, children, kind_of, open_folder
from cosim.fmi.ssp_parameters import bound_values, transformation
from cosim.fmi.unit_conversion import Conversion
from cosim.fmi.variables import FmuVariables
from cosim.multibody.description.xmltree import XmlElement

IMPLEMENTATIONS: dict[str, Interface] = {"CoSimulation": "co-simulation", "ModelExchange": "model exchange"}
FMU_TYPE = "application/x-fmu-sharedlibrary"
OUTPUTS = ("output", "calculatedParameter")
ElementPath = tuple[str, ...]  # names of systems and a component, from the outside in


@dataclass(frozen=True)
class SystemPart:
    """An FMU of a system. name: with those of the systems around it, `arm.motor`; parameters: for `FmuPart`."""

    name: str
    path: Path
    parameters: Mapping[str, Any]
    interface: Interface | None


@dataclass(frozen=True)
class SystemWire:
    """input = factor · output + offset, in SI. source: (part, output); target: (part, input)."""

    source: tuple[str, str]
    target: tuple[str, str]
    factor: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True)
class FmuSystem:
    """Parts and wires. inputs, outputs: of the system, by name: the inputs of parts that one feeds, and the output of a
    part that one is. `close` removes the files that were extracted; the parts need them when they open."""

    name: str
    parts: tuple[SystemPart, ...]
    wires: tuple[SystemWire, ...]
    inputs: Mapping[str, tuple[tuple[str, str], ...]]
    outputs: Mapping[str, tuple[str, str]]
    _folder: SspFolder = field(repr=False)  # what it holds goes with it
    _remove: weakref.finalize | None = field(default=None, repr=False)

    def close(self) -> None:
        if self._remove is not None:
            self._remove()


def read_system(path: str | Path) -> FmuSystem:
    """The system of an `.ssp` archive or an `.ssd` file. Raises InputError with file and line for mistakes."""
    folder, structure, remove = open_folder(Path(path))
    try:
        root = folder.read(structure, "SystemStructureDescription")
        version = root.attributes.get("version", "")
        if not version.startswith(VERSIONS):
            raise InputError(f"has SSP version '{shortened(version)}'; export it for SSP 1.0 or 2.0", root.place)
        system = child(root, "System")
        if system is None:
            raise InputError("<SystemStructureDescription> has no <System>; add one", root.place)
        return _Flattening(folder, system).result(remove)
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

    def __init__(self, folder: SspFolder, system: XmlElement) -> None:
        self._folder, self._system = folder, system
        self._nodes: dict[ElementPath, _Component] = {}
        self._edges: dict[tuple[ElementPath, str], _Edge] = {}
        self._parameters: dict[ElementPath, dict[str, Any]] = {}
        self._conversions = cache(self._read_conversions)
        self._add(system, ())

    def result(self, remove: weakref.finalize | None) -> FmuSystem:
        components = {at: node for at, node in self._nodes.items() if node.is_component}
        if not components:
            raise InputError("<System> has no components; add one with an FMU", self._system.place)
        wires, inputs = self._wires(components)
        parts = [
            SystemPart(".".join(at), self._fmu(node.element), self._parameters.get(at, {}), _interface(node.element))
            for at, node in components.items()
        ]
        outputs = {}
        for (at, connector), edge in self._edges.items():
            if at == ():
                (source, name), _ = self._source((at, connector), edge)
                if source in components:
                    outputs[connector] = (".".join(source), name)
        name = self._system.attributes.get("name", "")
        fed = {n: tuple(targets) for n, targets in inputs.items()}
        return FmuSystem(name, tuple(parts), tuple(wires), fed, outputs, self._folder, remove)

    def _wires(
        self, components: Mapping[ElementPath, _Component]
    ) -> tuple[list[SystemWire], dict[str, list[tuple[str, str]]]]:
        """Wires between components, and the inputs that the inputs of the system feed. Values of parameters of systems
        go to the parameters that they are connected to."""
        wires, inputs = [], dict[str, list[tuple[str, str]]]()
        for (at, connector), edge in self._edges.items():
            if at not in components:
                continue
            (source, name), edges = self._source((at, connector), edge)
            if source in components:
                numbers = self._total(edges, source, name, at, connector)
                wires.append(SystemWire((".".join(source), name), (".".join(at), connector), *numbers))
            elif name in self._parameters.get(source, {}):
                self._parameters.setdefault(at, {})[connector] = self._parameters[source][name]
            elif source == ():
                inputs.setdefault(name, []).append((".".join(at), connector))
        return wires, inputs

    # --- reading ------------------------------------------------------------------------------------

    def _add(self, element: XmlElement, at: ElementPath) -> None:
        """An element and those in it; parameters of outer levels replace those of inner ones."""
        self._nodes[at] = _Component(element, _connectors(element))
        names = set()
        for inner in (e for group in children(element, "Elements") for e in group.children):
            name = attribute(inner, "name")
            if kind_of(inner) not in ("Component", "System"):
                raise InputError(f"<{kind_of(inner)}> is not read; use components and systems", inner.place)
            if name in names:
                raise InputError(f"there are two elements '{shortened(name)}'; rename one", inner.place)
            names.add(name)
            self._add(inner, (*at, name))
        for name, value in bound_values(self._folder, element).items():
            self._bind(at, name, value, element)
        for connection in children(element, "Connections", "Connection"):
            self._connect(at, connection)

    def _bind(self, at: ElementPath, name: str, value: Any, owner: XmlElement) -> None:
        """A parameter of a component, or of one inside a system by its hierarchical name."""
        if self._nodes[at].is_component or self._nodes[at].connectors.get(name) == "parameter":
            self._parameters.setdefault(at, {})[name] = value
            return
        inner = [each for each in self._nodes if len(each) == len(at) + 1 and each[:-1] == at]
        for each in sorted(inner, key=lambda each: -len(each[-1])):
            if name.startswith(each[-1] + "."):
                self._bind(each, name.removeprefix(each[-1] + "."), value, owner)
                return
        known = [each[-1] + "." for each in inner]
        what = f"a binding gives the parameter '{shortened(name)}', which begins with no element"
        raise InputError(f"{what}{did_you_mean(name, known)}", owner.place)

    def _connect(self, at: ElementPath, connection: XmlElement) -> None:
        ends = [self._end(at, connection, side) for side in ("start", "end")]
        if self._gives(at, *ends[1]) or self._takes(at, *ends[0]):
            if connection.children:
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
        where = at if name is None else (*at, name)
        if where not in self._nodes:
            known = [each[-1] for each in self._nodes if len(each) == len(at) + 1 and each[:-1] == at]
            raise InputError(
                f"there is no element '{shortened(str(name))}'{did_you_mean(str(name), known)}", connection.place
            )
        known = self._nodes[where].connectors
        if known and connector not in known:
            what = f"'{name}' has" if name is not None else "the system has"
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

    def _total(
        self, edges: list[_Edge], source: ElementPath, output: str, target: ElementPath, name: str
    ) -> tuple[float, float]:
        """(factor, offset) in SI. Transformations act on values in the unit of the target, or, where the conversion of
        units is suppressed, on those in the unit of the source."""
        factor, offset = 1.0, 0.0
        for edge in edges:
            f, o = transformation(edge.element)
            factor, offset = f * factor, f * offset + o
        suppressed = any(e.element.attributes.get("suppressUnitConversion") in ("true", "1") for e in edges)
        if not suppressed and (factor, offset) == (1.0, 0.0):
            return 1.0, 0.0
        theirs = self._conversion(target, name, edges[-1])
        ours = self._conversion(source, output, edges[0]) if suppressed else theirs
        # SI of the target = theirs(factor · ours⁻¹(SI of the source) + offset)
        scale = theirs.factor * factor / ours.factor
        return scale, theirs.factor * offset + theirs.offset - scale * ours.offset

    def _conversion(self, at: ElementPath, name: str, edge: _Edge) -> Conversion:
        known = self._conversions(self._fmu(self._nodes[at].element))
        if name not in known:
            shown = f"the FMU of '{'.'.join(at)}' has no variable '{shortened(name)}'"
            raise InputError(f"{shown}{did_you_mean(name, known)}", edge.element.place)
        return known[name]

    def _read_conversions(self, path: Path) -> dict[str, Conversion]:
        described = FmuDescription(path)
        variables = FmuVariables(described.description, described.version, described.place)
        return {name: variable.conversion for name, variable in variables.by_name.items()}

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
