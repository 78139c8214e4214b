"""Causality: which end of each bond computes its effort, by the sequential assignment of Karnopp and Rosenberg.

Sources and elements that can compute one side only come first, then coordinates, then storages in integral causality,
of these first those by laws, then resistances, then bonds that are still free. After each choice what follows from it
is assigned: a 0-junction takes its effort from one bond, a 1-junction its flow, a transformer passes causality on, a
gyrator turns it round. A choice that contradicts itself, round a loop of rigid parts, is turned round: its flow or
effort follows from the loop.

A coordinate is a 1-junction whose displacement laws depend on. Where it has no inertia of its own its flow is a state,
whose rate makes the efforts of the junction balance. Otherwise the flow of a mass at a distance would be the state, and
the flow of the coordinate that divided by a ratio that can be 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from cosim.mechanics.bondgraph.elements import OUTPUTS, Side
from cosim.mechanics.bondgraph.graph import CheckedGraph, GraphError


@dataclass
class Causality:
    """The causality of a bond graph, and what it makes of storages, junctions and loops. effort_from: bond -> the
    element that computes its effort; the other end computes its flow."""

    graph: CheckedGraph
    effort_from: dict[int, str] = field(default_factory=dict)
    derivative: list[str] = field(default_factory=list)  # storages without a state of their own
    # resistances and bonds whose causality was free: they are in algebraic loops
    free: list[str] = field(default_factory=list)
    candidates: tuple[str, ...] = ()  # 1-junctions that may be coordinates
    coordinates: list[str] = field(default_factory=list)  # … and are: their flow is a state
    cause: dict[int, str] = field(default_factory=dict)  # bond -> the element whose choice it followed from
    # bond whose choice was turned round -> what contradicted it
    turned: dict[int, GraphError] = field(default_factory=dict)

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
    found = Causality(graph, candidates=tuple(coordinates))
    one_ports = {name: element for name, element in graph.elements.items() if element.row.ports == 1}
    for name, element in one_ports.items():
        if element.required:
            assert element.output
            _set_output(found, name, element.output, *graph.at(name))
    for name in found.candidates:
        _assign_coordinate(found, name)
    # those that must have a state of their own come first
    for name, element in sorted(graph.elements.items(), key=lambda item: item[1].may_follow):
        for bond, what in zip(graph.at(name), element.stored, strict=False):
            if bond not in found.effort_from:
                _choose(found, name, bond, OUTPUTS[what], either=element.may_follow)
            if found.computes(name, bond) != OUTPUTS[what]:
                found.derivative.append(name)
    for name, element in one_ports.items():
        (bond,) = graph.at(name)
        if bond not in found.effort_from:
            assert element.output
            found.free.append(name)
            _choose(found, name, bond, element.output, either=True)
    for bond, (tail, _) in enumerate(graph.bonds):
        if bond not in found.effort_from:
            found.free.append(tail)
            _choose(found, tail, bond, "effort", either=True)
    return found


def _assign_coordinate(found: Causality, name: str) -> None:
    """The flow of a junction as a state: of its inertia where it has one, or its own."""
    graph = found.graph
    bonds = graph.at(name)
    if any(bond in found.effort_from and found.computes(name, bond) == "effort" for bond in bonds):
        return  # a source, or another coordinate, imposes it
    inertias = [graph.other(name, bond) for bond in bonds if graph.elements[graph.other(name, bond)].kind == "I"]
    if inertias:
        _set_output(found, inertias[0], "flow", *graph.at(inertias[0]))
        return
    found.coordinates.append(name)
    _assign(found, name, [(bond, graph.other(name, bond)) for bond in bonds])


def _choose(found: Causality, name: str, bond: int, output: Side, either: bool) -> None:
    """Let the element compute this side on its bond; where what follows contradicts itself in a loop, and it can
    compute either side, the other one. Raises GraphError where neither can be."""
    before = dict(found.effort_from), dict(found.cause)
    try:
        _set_output(found, name, output, bond)
    except GraphError as error:
        found.effort_from, found.cause = dict(before[0]), dict(before[1])
        if not either:
            raise
        try:
            _set_output(found, name, "flow" if output == "effort" else "effort", bond)
        except GraphError:
            raise error from None
        found.turned[bond] = error


def _set_output(found: Causality, name: str, output: Side, bond: int) -> None:
    _assign(found, name, [(bond, name if output == "effort" else found.graph.other(name, bond))])


def _assign(found: Causality, cause: str, first: Iterable[tuple[int, str]]) -> None:
    """Assign the bonds (bond, element that computes its effort) of an element, and all that follows. Raises GraphError
    at a conflict."""
    waiting = list(first)
    while waiting:
        bond, source = waiting.pop()
        if bond in found.effort_from:
            if found.effort_from[bond] != source:
                raise _conflict(found, bond, cause)
            continue
        found.effort_from[bond], found.cause[bond] = source, cause
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
        # a transformer gets the effort of one side and computes the other's, a gyrator gets or computes both
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
    if name in found.candidates:
        return []
    free = [k for k in rest if k not in found.effort_from]
    if len(free) == 1 and all((k, found.effort_from[k]) == gives(k) for k in rest if k != free[0]):
        return [gets(free[0])]
    if not free and all((k, found.effort_from[k]) == gives(k) for k in rest):
        raise _undetermined(found, name)
    return []


def _conflict(found: Causality, bond: int, cause: str) -> GraphError:
    """Of a bond whose causality follows in two ways, from `cause` and from another element."""
    graph, other = found.graph, found.cause[bond]
    if cause == other:
        # what follows goes round the loop, and fails in it or at a bond beside it
        near = [k for end in graph.bonds[bond] for k in graph.at(end)]
        loop = next(filter(None, map(graph.loop_through, [bond, *near])), [])
        names = sorted(name for name in loop if graph.elements[name].row.ports == 2)
        what = f"{_quoted(names)} close a rigid loop" if names else "its junctions close a loop of one effort or flow"
        fix = "take one out, or make one elastic with a compliance"
        return GraphError(f"causal conflict: {what}; {fix}", (names or list(graph.bonds[bond]))[0])
    name, kept = (cause, other) if graph.elements[cause].required else (other, cause)
    element = graph.elements[name]
    side = element.output or "flow"
    if element.kind == "R":
        takes = "flow" if side == "effort" else "effort"
        what = f"its law computes the {side} from the {takes}, and '{kept}' imposes the {side}"
    else:
        what = f"'{name}' and '{kept}' both impose the {side}"
    fix = "a resistance or an inertia" if side == "effort" else "a resistance or a compliance"
    return GraphError(f"causal conflict: {what}; put {fix} between them", name)


def _quoted(names: Sequence[str]) -> str:
    quoted = [f"'{name}'" for name in names]
    return " and ".join([", ".join(quoted[:-1]), quoted[-1]] if quoted[1:] else quoted)


def _undetermined(found: Causality, name: str) -> GraphError:
    side = "effort" if found.graph.elements[name].kind == "0" else "flow"
    neighbours = ", ".join(f"'{found.graph.other(name, k)}'" for k in found.graph.at(name))
    what = f"causal conflict: nothing gives the {side} of this junction, {neighbours} all take it"
    fix = "a compliance or a resistance" if side == "effort" else "an inertia or a resistance"
    return GraphError(f"{what}; bond {fix} to it", name)
