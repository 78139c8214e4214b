"""Causality: which end of each bond computes its effort, by the sequential assignment of Karnopp and Rosenberg.

Sources and elements that can compute one side only come first, then coordinates, then storages in integral causality,
then resistances, then bonds that are still free. After each choice what follows from it is assigned: a 0-junction takes
its effort from one bond, a 1-junction its flow, a transformer passes causality on, a gyrator turns it round.

A coordinate is a 1-junction whose displacement laws depend on. Where it has no inertia of its own its flow is a state,
whose rate makes the efforts of the junction balance. Otherwise the flow of a mass at a distance would be the state, and
the flow of the coordinate that divided by a ratio that can be 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from cosim.bondgraph.elements import Side
from cosim.bondgraph.graph import CheckedGraph, GraphError

STORAGES = ("I", "C")


@dataclass
class Causality:
    """effort_from: bond -> the element that computes its effort; the other end computes its flow."""

    graph: CheckedGraph
    effort_from: dict[int, str] = field(default_factory=dict)
    derivative: list[str] = field(default_factory=list)  # storages without a state of their own
    # resistances and bonds whose causality was free: they are in algebraic loops
    free: list[str] = field(default_factory=list)
    coordinates: list[str] = field(default_factory=list)  # 1-junctions whose flow is a state

    def computes(self, name: str, bond: int) -> Side:
        """What the element computes on its bond."""
        return "effort" if self.effort_from[bond] == name else "flow"

    def determining(self, name: str) -> int:
        """The bond that brings the common effort to a 0-junction, or the common flow to a 1-junction."""
        brings = "flow" if self.graph.elements[name].kind == "0" else "effort"
        return next(bond for bond in self.graph.at(name) if self.computes(name, bond) == brings)


def assign(graph: CheckedGraph, coordinates: Iterable[str] = ()) -> Causality:
    """coordinates: 1-junctions whose displacement laws depend on. Raises GraphError for elements that compute the same
    effort or flow."""
    found = Causality(graph)
    one_ports = {name: element for name, element in graph.elements.items() if element.row.ports == 1}
    for name, element in one_ports.items():
        if element.required:
            assert element.output
            _set_output(found, name, element.output)
    for name in coordinates:
        _assign_coordinate(found, name)
    for name, element in one_ports.items():
        if element.kind in STORAGES:
            (bond,) = graph.at(name)
            assert element.output
            if bond not in found.effort_from:
                _set_output(found, name, element.output)
            elif found.computes(name, bond) != element.output:
                found.derivative.append(name)
    for name, element in one_ports.items():
        (bond,) = graph.at(name)
        if bond not in found.effort_from:
            assert element.output
            found.free.append(name)
            _set_output(found, name, element.output)
    for bond, (tail, _) in enumerate(graph.bonds):
        if bond not in found.effort_from:
            found.free.append(tail)
            _assign(found, [(bond, tail)])
    return found


def _assign_coordinate(found: Causality, name: str) -> None:
    """The flow of a junction as a state: of its inertia where it has one, or its own."""
    graph = found.graph
    bonds = graph.at(name)
    if any(bond in found.effort_from and _brings(found, name, bond) for bond in bonds):
        return  # a source, or another coordinate, imposes it
    inertias = [graph.other(name, bond) for bond in bonds if graph.elements[graph.other(name, bond)].kind == "I"]
    if inertias:
        _set_output(found, inertias[0], "flow")
        return
    found.coordinates.append(name)
    _assign(found, [(bond, graph.other(name, bond)) for bond in bonds])


def _set_output(found: Causality, name: str, output: Side) -> None:
    (bond,) = found.graph.at(name)
    _assign(found, [(bond, name if output == "effort" else found.graph.other(name, bond))])


def _assign(found: Causality, first: Iterable[tuple[int, str]]) -> None:
    """Assign the bonds (bond, element that computes its effort) and all that follows. Raises GraphError at a
    conflict."""
    waiting = list(first)
    while waiting:
        bond, source = waiting.pop()
        if bond in found.effort_from:
            if found.effort_from[bond] != source:
                raise _conflict(found, bond)
            continue
        found.effort_from[bond] = source
        for end in found.graph.bonds[bond]:
            waiting += _consequences(found, end, bond)


def _consequences(found: Causality, name: str, bond: int) -> list[tuple[int, str]]:
    """What follows at an element from the causality of one of its bonds."""
    graph, kind = found.graph, found.graph.elements[name].kind
    if name in found.coordinates:
        return []
    rest = [k for k in graph.at(name) if k != bond]
    computes_effort = found.effort_from[bond] == name
    if kind in ("TF", "GY"):
        # a transformer gets an effort on one side and computes that of the other, a gyrator gets or computes both
        same = kind == "GY"
        return [(k, name if computes_effort == same else graph.other(name, k)) for k in rest]
    if kind not in ("0", "1"):
        return []
    # the side that a junction gets from one bond only
    single = "effort" if kind == "0" else "flow"
    gets_single = computes_effort == (single == "flow")

    def gives(k: int) -> tuple[int, str]:
        """The junction computes the common side on bond k."""
        return k, name if single == "effort" else graph.other(name, k)

    def gets(k: int) -> tuple[int, str]:
        return k, graph.other(name, k) if single == "effort" else name

    if gets_single:
        return [gives(k) for k in rest]
    free = [k for k in rest if k not in found.effort_from]
    if len(free) == 1 and all((k, found.effort_from[k]) == gives(k) for k in rest if k != free[0]):
        return [gets(free[0])]
    if not free and all((k, found.effort_from[k]) == gives(k) for k in rest):
        raise _undetermined(found, name)
    return []


def _conflict(found: Causality, bond: int) -> GraphError:
    """Of a bond whose effort both ends compute, or neither."""
    tail, head = found.graph.bonds[bond]
    both = [end for end in (tail, head) if found.graph.elements[end].required]
    name = both[0] if both else tail
    other = found.graph.other(name, bond)
    side = found.graph.elements[name].output or "effort"
    what = f"causal conflict: '{name}' and '{_determining_name(found, other, bond)}' both impose the {side} of one bond"
    fix = "a resistance or a compliance" if side == "flow" else "a resistance or an inertia"
    return GraphError(f"{what}; put {fix} between them", name)


def _determining_name(found: Causality, junction: str, bond: int) -> str:
    """The one-port that imposes the common side of a junction, as far as it can be followed."""
    seen = set()
    name = junction
    while found.graph.elements[name].row.ports != 1 and name not in seen:
        seen.add(name)
        onward = [
            k for k in found.graph.at(name)
            if k != bond and k in found.effort_from and _brings(found, name, k)
        ]  # fmt: skip
        if not onward:
            break
        bond, name = onward[0], found.graph.other(name, onward[0])
    return name


def _brings(found: Causality, name: str, bond: int) -> bool:
    """Whether the bond brings a junction its common side."""
    kind = found.graph.elements[name].kind
    if kind not in ("0", "1"):
        return True
    return found.computes(name, bond) == ("flow" if kind == "0" else "effort")


def _undetermined(found: Causality, name: str) -> GraphError:
    side = "effort" if found.graph.elements[name].kind == "0" else "flow"
    neighbours = ", ".join(f"'{found.graph.other(name, k)}'" for k in found.graph.at(name))
    what = f"causal conflict: nothing gives the {side} of this junction, {neighbours} all take it"
    fix = "a compliance or a resistance" if side == "effort" else "an inertia or a resistance"
    return GraphError(f"{what}; bond {fix} to it", name)
