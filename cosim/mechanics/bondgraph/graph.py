"""Bond graphs as they are built: elements, junctions and components by name, bonds between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np

from cosim.core import ops
from cosim.core.errors import SectionError, did_you_mean
from cosim.core.types import Numeric
from cosim.mechanics.bondgraph.domains import DOMAINS
from cosim.mechanics.bondgraph.elements import KINDS, OWN, TRANSDUCERS, Element, Law


class GraphError(SectionError):
    """A bond graph that cannot be; `element`: the one that the error is about; keys: of what is wrong in it."""

    def __init__(self, what: str, element: str, *keys: str) -> None:
        super().__init__(what, ("elements", element, *keys))
        self.element = element


class SignalError(GraphError):
    """A recorded `signal` that a graph does not have."""

    def __init__(self, error: GraphError, signal: str) -> None:
        super().__init__(error.what, error.element)
        self.signal = signal


class Bond(NamedTuple):
    """Power flows from the tail to the head where e · f > 0."""

    tail: str
    head: str


class End(NamedTuple):
    """Of a bond: an element, and of a field with named ports one of them."""

    element: str
    port: str = ""


@dataclass(frozen=True)
class Component:
    """A component of the library: its type, its module and its parameters. word: for it, in messages; types: that a
    section may name, if few; default: type of a section that names none."""

    word: ClassVar[str] = "component"
    types: ClassVar[tuple[str, ...]] = ()
    default: ClassVar[str | None] = None

    type: str
    module: Any
    params: Any

    def build(self) -> BondGraph:
        return built(self.module.build, self.params)

    @classmethod
    def choices(cls) -> str:
        """Its types, in a message."""
        *others, last = cls.types
        return f"{', '.join(others)} or {last}"


class ElectricMachine(Component):
    """The motor of a drive."""

    word, types = "motor", ("dc_machine", "pmsm", "linear_motor", "bldc", "stepper", "induction_machine")

    @property
    def linear(self) -> bool:
        """Whether it pushes instead of turns."""
        return self.type == "linear_motor"


class Stage(Component):
    """A stage of the gear train of a drive."""

    word, default = "stage", "gear_stage"
    types = ("gear_stage", "harmonic_drive", "ball_screw", "rack", "belt")

    @property
    def linear(self) -> bool:
        """Whether it turns rotation into travel."""
        return self.type in ("ball_screw", "rack", "belt")

    @property
    def inertias(self) -> tuple[float, float]:
        """Of its input and its output."""
        if self.linear:
            return self.params.inertia, self.params.mass
        return 0.0, getattr(self.params, "inertia", 0.0)


class DcSource(Component):
    """What feeds a DC link. Its parameters have `nominal`, the voltage [V] of a link without load."""

    word, types = "source", ("diode_bridge", "active_front_end", "battery")


@dataclass(frozen=True)
class ComponentOrigin:
    """What a component was built from: so it can be built again with other parameters. inner: parameters of what is
    inside it, by their names, keywords of `build`."""

    build: Callable[..., BondGraph]
    params: Any
    inner: Mapping[str, Any] = field(default_factory=dict)

    def __deepcopy__(self, memo: dict[int, Any]) -> ComponentOrigin:
        return self


@dataclass
class BondGraph:
    """A graph under construction, or a component of another graph.

    ports: names under which a surrounding graph bonds to elements of this one; inputs: name -> unit; signals: further
    ones to be recorded, name -> (law, unit); companions: junctions of gases -> the junction of their enthalpy, which is
    bonded as they are; origin: of a component, origins: of those in it, by their names.
    """

    elements: dict[str, Element] = field(default_factory=dict)
    bonds: list[Bond] = field(default_factory=list)
    ports: dict[str, str] = field(default_factory=dict)
    inputs: dict[str, str] = field(default_factory=dict)
    signals: dict[str, tuple[Law, str]] = field(default_factory=dict)
    companions: dict[str, str] = field(default_factory=dict)
    origin: ComponentOrigin | None = None
    origins: dict[str, ComponentOrigin] = field(default_factory=dict)

    def add(self, name: str, element: Element) -> str:
        """Raises GraphError for a name that is taken, and for a value that no such element can have."""
        if name in self.elements:
            raise GraphError("there are two elements of this name; rename one", name)
        if element.kind in KINDS:
            check_values(name, element)
        self.elements[name] = element
        return name

    def junction(self, name: str, kind: str, domain: str = "", initial: float = 0.0) -> str:
        """A junction "0" or "1"; its domain follows from its bonds. initial: displacement of a 1-junction."""
        return self.add(name, Element(kind, (domain,) if domain else (), initial=initial))

    def bond(self, tail: str, head: str) -> None:
        """A bond from `tail` to `head`, elements by name, ports of components as `component.port`."""
        self.bonds.append(Bond(tail, head))

    def chain(self, *names: str) -> None:
        """Bonds from each to the next."""
        for tail, head in pairwise(names):
            self.bond(tail, head)

    def include(self, name: str, component: BondGraph) -> None:
        """The elements of a component, as `name.element`. Laws in it use the names inside it."""
        for inner, element in component.elements.items():
            self.add(f"{name}.{inner}", element)
        for tail, head in component.bonds:
            self.bond(f"{name}.{tail}", f"{name}.{head}")
        self.ports |= {f"{name}.{port}": f"{name}.{target}" for port, target in component.ports.items()}
        self.inputs |= component.inputs
        self.signals |= {f"{name}.{signal}": how for signal, how in component.signals.items()}
        self.companions |= {f"{name}.{one}": f"{name}.{other}" for one, other in component.companions.items()}
        inside = {f"{name}.{inner}": origin for inner, origin in component.origins.items()}
        self.origins |= {name: component.origin} if component.origin else inside

    def checked(self) -> CheckedGraph:
        """The graph with its domains. Raises GraphError for elements and bonds that cannot be."""
        for name, element in self.elements.items():
            _check_element(name, element)
        fields = {
            f"{name}.{port}": End(name, port) for name, element in self.elements.items() for port in element.ports
        }
        ends = [(self._end(tail, fields), self._end(head, fields)) for tail, head in self.bonds]
        elements, ends = with_companions(self.elements, ends, self.companions)
        bonds = tuple(Bond(tail.element, head.element) for tail, head in ends)
        at_port = _bonds_of_fields(fields.values(), ends)
        graph = CheckedGraph(elements, bonds, dict(self.inputs), dict(self.signals), at_port, dict(self.ports))
        _check_bonds(graph)
        return graph

    def place_of(self, error: GraphError) -> tuple[str, ...]:
        """The keys of a section, as a file writes the graph, that an error is about."""
        name, keys = error.element, [str(key) for key in error.keys[2:]]
        first, dot, inside = name.partition(".")
        if dot:
            return "elements" if first in self.elements else "components", first, inside, *keys
        if name in self.signals and name not in self.elements:
            return "signals", name
        junction = name in self.elements and self.elements[name].is_junction
        return "junctions" if junction else "elements", name, *keys

    def _end(self, name: str, fields: Mapping[str, End]) -> End:
        """What the name of an element or a port means; fields: named ports of fields."""
        while name not in self.elements:
            if name in fields:
                return fields[name]
            if name not in self.ports:
                known = [*self.elements, *self.ports, *fields]
                raise GraphError(f"a bond names it, and there is no such element{did_you_mean(name, known)}", name)
            name = self.ports[name]
        if self.elements[name].ports:
            ports = ", ".join(f"{name}.{port}" for port in self.elements[name].ports)
            raise GraphError(f"a bond names it without a port; name one of {ports}", name)
        return End(name)


def built(build: Callable[..., BondGraph], params: Any, *others: Any, **inner: Any) -> BondGraph:
    """build(params, *others, **inner), which remembers its parameters. inner: as of `ComponentOrigin`."""
    graph = build(params, *others, **inner)
    graph.origin = ComponentOrigin(lambda changed, **inside: build(changed, *others, **inside), params, inner)
    return graph


@dataclass(frozen=True)
class CheckedGraph:
    """Elements by name, and bonds between them. at_port: bonds of (field, named port); ports: of components, name ->
    element or port inside, whose signals it has."""

    elements: dict[str, Element]
    bonds: tuple[Bond, ...]
    inputs: dict[str, str]
    signals: dict[str, tuple[Law, str]]
    at_port: dict[End, int] = field(default_factory=dict)
    ports: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        at: dict[str, list[int]] = {name: [] for name in self.elements}
        for number, bond in enumerate(self.bonds):
            for name in bond:
                at[name].append(number)
        for name, element in self.elements.items():
            if element.ports:
                at[name] = [self.at_port[End(name, port)] for port in element.ports]
        object.__setattr__(self, "_at", at)
        object.__setattr__(self, "domains", _domains(self))

    domains: tuple[str, ...] = field(init=False)  # of each bond
    _at: dict[str, list[int]] = field(init=False, repr=False)

    def at(self, name: str) -> list[int]:
        """The bonds of an element, by number; of a field with named ports in their order."""
        return self._at[name]

    @property
    def named_bonds(self) -> list[Bond]:
        """The bonds with their names in a graph under construction, names of field ports included."""
        ports = {(number, end.element): f"{end.element}.{end.port}" for end, number in self.at_port.items()}
        return [Bond(*(ports.get((number, name), name) for name in bond)) for number, bond in enumerate(self.bonds)]

    def sign(self, name: str, bond: int) -> int:
        """+1 where power flows into the element, −1 where it flows out."""
        return 1 if self.bonds[bond].head == name else -1

    def other(self, name: str, bond: int) -> str:
        """The element at the other end."""
        tail, head = self.bonds[bond]
        return tail if head == name else head

    def ends(self, name: str) -> tuple[int, int]:
        """The bonds into and out of a transformer or gyrator."""
        first, second = self.at(name)
        return (first, second) if self.sign(name, first) > 0 else (second, first)

    def loop_through(self, bond: int) -> list[str]:
        """The elements of a shortest loop of bonds through this one; none where it closes no loop."""
        start, end = self.bonds[bond]
        before: dict[str, str] = {start: ""}
        waiting = [start]
        for name in waiting:
            for other in (self.other(name, k) for k in self.at(name) if k != bond):
                if other not in before:
                    before[other] = name
                    waiting.append(other)
        path, name = [], end if end in before else ""
        while name:
            path.append(name)
            name = before[name]
        return path

    def meant(self, signal: str, own: str, kinds: Sequence[str] = OWN) -> tuple[str, str]:
        """(element, `effort`, `flow`, … or a port of a field) that the law of `own` means by the name of a signal, for
        an element in its component or in one around it. Raises GraphError for a signal that does not exist."""
        if signal in OWN:
            return own, signal
        target, _, what = signal.rpartition(".")
        scopes = own.split(".")[:-1]
        inside = [self._behind(".".join([*scopes[:depth], target])) for depth in range(len(scopes), -1, -1)]
        found = [name for name in inside if name in self.elements]
        if not found or what not in (*kinds, *self.elements[found[0]].ports):
            known = ["t", *self.inputs, *OWN, *(f"{name}.{what}" for name in self.elements for what in kinds)]
            known += [f"{name}.{port}" for name, port in self.at_port]
            hint = "; Euler's number is exp(1)" if signal == "e" else did_you_mean(signal, known)
            raise GraphError(f"there is no signal '{signal}'{hint}", own)
        return found[0], what

    def _behind(self, name: str) -> str:
        """The element behind a port; any other name as it is."""
        while name not in self.elements and name in self.ports:
            name = self.ports[name]
        return name

    @property
    def coordinates(self) -> list[str]:
        """The 1-junctions whose displacement a law uses."""
        found = []
        for own, element in self.elements.items():
            uses = element.value.uses if isinstance(element.value, Law) else ()
            named = [self.meant(signal, own) for signal in uses if signal != "t" and signal not in self.inputs]
            found += [name for name, what in named if what == "displacement" and self.elements[name].kind == "1"]
        return list(dict.fromkeys(found))

    @property
    def incidence(self) -> np.ndarray:
        """A (elements, bonds): +1 where a bond enters an element, −1 where it leaves."""
        matrix = np.zeros((len(self.elements), len(self.bonds)), dtype=int)
        rows = {name: k for k, name in enumerate(self.elements)}
        for number, (tail, head) in enumerate(self.bonds):
            matrix[rows[tail], number], matrix[rows[head], number] = -1, 1
        return matrix


def _check_element(name: str, element: Element) -> None:
    if element.kind not in KINDS:
        raise GraphError(f"there is no element '{element.kind}'{did_you_mean(element.kind, KINDS)}", name)
    for domain in element.domains:
        if domain not in DOMAINS:
            raise GraphError(f"there is no domain '{domain}'{did_you_mean(domain, DOMAINS)}", name)
    if element.kind in TRANSDUCERS and element.unit is None:
        pairs = ", ".join(f"{a} to {b}" for a, b in TRANSDUCERS[element.kind] if a != b)
        what = f"a {element.row.doc} from {' to '.join(element.domains)} is not known"
        raise GraphError(f"{what}; use the same domain on both sides, or {pairs}", name)
    if element.kind == "I" and not DOMAINS[element.domains[0]].product_is_power:
        fix = "use a C for a state" if element.domains == ("signal",) else "use a C for what is stored"
        raise GraphError(f"there is no {element.domains[0]} inertia; {fix}", name)
    check_values(name, element)


def check_values(name: str, element: Element) -> None:
    """Raises GraphError for a value or an initial state of the element that is not finite, or not physical. Symbols
    and laws of signals are not checked."""
    value, row = element.value, element.row
    if isinstance(value, Law) and element.kind in TRANSDUCERS and not value.uses:
        value = value.fn()
    for key, numbers in ((row.value, value), ("initial", element.initial)):
        if not key or isinstance(numbers, Law) or ops.is_symbolic(numbers):
            continue
        array = np.asarray(numbers, dtype=float)
        if not np.isfinite(array).all():
            raise GraphError(f"must be finite, is {numbers}", name, key)
        if key == row.value and not row.allows(float(array)):
            raise GraphError(_beyond_bound(element, float(array)), name, key)
    if element.kind == "IC" and element.energy is not None and not ops.is_symbolic(element.initial):
        _check_energy(name, element.energy, element.initial)


def _check_energy(name: str, energy: Law, initial: Numeric) -> None:
    """Raises GraphError for a field whose energy is not finite at its initial state."""
    try:
        with np.errstate(all="ignore"):
            value = energy.fn(*initial)
            finite = ops.is_symbolic(value) or np.isfinite(value)
    except ZeroDivisionError:
        finite = False
    if not finite:
        raise GraphError("is not finite at the initial state; give another one, or another energy", name, "energy")


def _beyond_bound(element: Element, value: float) -> str:
    if element.kind in TRANSDUCERS:
        return f"a {element.row.doc} whose {element.row.value} is 0 transmits nothing; give another one"
    known = element.domains[0] in DOMAINS
    unit = f" {element.unit}" if known else ""
    return f"must be {element.row.bound}{unit}, is {value:.12g}{unit}"


def _bonds_of_fields(ports: Iterable[End], ends: Iterable[tuple[End, End]]) -> dict[End, int]:
    """The bond at each named port. Raises GraphError for a port that has none, or several."""
    found: dict[End, int] = {}
    for number, both in enumerate(ends):
        for end in both:
            if end in found:
                raise GraphError(f"its port '{end.port}' has two bonds; put a junction between", end.element)
            if end.port:
                found[end] = number
    for end in ports:
        if end not in found:
            raise GraphError(f"its port '{end.port}' has no bond; bond one to {end.element}.{end.port}", end.element)
    return found


def _check_bonds(graph: CheckedGraph) -> None:
    for tail, head in graph.bonds:
        if tail == head:
            raise GraphError("a bond joins it with itself; take the bond out", tail)
    for name, element in graph.elements.items():
        count, row = len(graph.at(name)), element.row
        if row.ports == 1 and count != 1:
            fix = "bond it to a junction" if not count else "put a junction between it and the others"
            raise GraphError(f"a {row.doc} has one bond, not {count}; {fix}", name)
        if element.kind == "IC" and count != len(element.domains):
            raise GraphError(f"this field has {len(element.domains)} bonds, not {count}; bond each port once", name)
        if element.kind in ("I", "C", "IC", "R") and any(graph.sign(name, bond) < 0 for bond in graph.at(name)):
            raise GraphError(f"the bond of a {row.doc} points to it; turn the bond round", name)
        if element.is_junction and count < 2:
            raise GraphError(f"a junction joins two bonds or more, not {count}; add bonds, or take it out", name)
        if row.ports == 2 and sorted(graph.sign(name, bond) for bond in graph.at(name)) != [-1, 1]:
            what = f"a {row.doc} has one bond in and one out"
            raise GraphError(f"{what}, not {_in_and_out(graph, name)}; turn a bond round, or add the missing one", name)


def with_companions(
    elements: Mapping[str, Element], ends: Sequence[tuple[End, End]], companions: Mapping[str, str]
) -> tuple[dict[str, Element], list[tuple[End, End]]]:
    """(the elements with the junctions of enthalpy that junctions of gases lack, the bonds with those between these).

    Raises GraphError for an element at a junction of a gas that takes mass without its enthalpy.
    """
    of, found = dict(companions), dict(elements)
    waiting = [end for end in of if end in elements]
    while waiting:
        name = waiting.pop()
        for one, other in ((a.element, b.element) for pair in ends for a, b in (pair, pair[::-1])):
            if one != name or other in of:
                continue
            inside = one.rpartition(".")[0]
            if elements[other].is_junction:
                of[other] = f"{other}.enthalpy"
                found[of[other]] = Element(elements[other].kind, ())
                waiting.append(other)
            elif elements[other].domains == ("pneumatic",) and (not inside or inside != other.rpartition(".")[0]):
                what = f"it takes gas from '{one}' without its enthalpy"
                raise GraphError(f"{what}; bond a component there, such as gas_supply", other)
    pairs = ((of.get(tail.element), of.get(head.element)) for tail, head in ends)
    return found, [*ends, *((End(tail), End(head)) for tail, head in pairs if tail and head)]


def _in_and_out(graph: CheckedGraph, name: str) -> str:
    signs = Counter(graph.sign(name, bond) for bond in graph.at(name))
    return f"{signs[1]} in and {signs[-1]} out"


def _domains(graph: CheckedGraph) -> tuple[str, ...]:
    """The domain of each bond, carried through junctions. Raises GraphError where two meet, or none is known."""
    found: dict[int, tuple[str, str]] = {}  # bond -> domain, and the element that has it
    waiting: list[tuple[int, str, str]] = []
    for name, element in graph.elements.items():
        if element.row.ports == 2:
            ends = {1: element.domains[0], -1: element.domains[1]}
            waiting += [(bond, ends[graph.sign(name, bond)], name) for bond in graph.at(name)]
        elif element.kind == "IC":
            waiting += [(bond, domain, name) for bond, domain in zip(graph.at(name), element.domains, strict=False)]
        elif element.domains:
            waiting += [(bond, element.domains[0], name) for bond in graph.at(name)]
    while waiting:
        bond, domain, name = waiting.pop()
        if bond in found:
            known, owner = found[bond]
            if known != domain:
                what = f"the bond of '{owner}' ({known}) and '{name}' ({domain}) joins two domains"
                raise GraphError(f"{what}; put a TF or GY between them", name)
            continue
        found[bond] = domain, name
        for end in graph.bonds[bond]:
            if graph.elements[end].is_junction:
                waiting += [(k, domain, name) for k in graph.at(end) if k != bond]
    for number, bond in enumerate(graph.bonds):
        if number not in found:
            raise GraphError("its domain is unknown; bond it to an element, or give it one", bond.tail)
    return tuple(found[number][0] for number in range(len(graph.bonds)))
