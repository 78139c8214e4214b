"""The bond graphs of a rig as text: elements, bonds with causality, states, loops, equations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

from cosim.apps.derive.block_drawing import block_panel
from cosim.apps.derive.bond_graph_code import code_model
from cosim.apps.derive.bond_graph_drawing import bond_graph_panel, circuit_panel
from cosim.apps.derive.bond_graph_equations import equation_lines, formulas_of, latex_lines, outputs_of
from cosim.apps.derive.equations.command import check_file as check_code_file
from cosim.apps.derive.equations.files import WRITERS, code_lines
from cosim.apps.derive.graph_report import (
    actuators_of,
    check_file,
    read_rig_with_joints,
)
from cosim.apps.derive.picture import GraphPanel, save_panels
from cosim.apps.derive.tables import SIGNS, counted, quantity, table
from cosim.core.errors import InputError, did_you_mean, listed
from cosim.core.units import unit_sign
from cosim.mechanics.bondgraph import Assembly, Element, Law
from cosim.mechanics.multibody.description.robot_formats import SUFFIXES
from cosim.plugins.actuators._graph_actuator import GraphActuator

MAX_PRINTED_BONDS = 20  # of an incidence matrix

MAX_DRAWN_ELEMENTS = 200

Form = Literal["loop-free", "circuit", "blocks"]
Syntax = Literal["text", "latex", "c", "python", "matlab"]

PANELS: Mapping[Form, Callable[[GraphActuator, str, str], GraphPanel]] = {
    "loop-free": bond_graph_panel,
    "circuit": circuit_panel,
    "blocks": block_panel,
}


def derive_bond_graph(
    path: Path, file: Path | None = None, joint: str | None = None, form: Form = "loop-free", to: Syntax = "text"
) -> None:
    """Print the bond graphs of a rig, of one joint or of all; with `file` (png, svg, pdf) also draw them. As code,
    print one graph or write it to the file.

    Raises InputErrors for errors in the rig; InputError for a rig or joint without a graph, or a file that cannot be
    written.
    """
    if to in WRITERS:
        _write_code(path, file, joint, to)
        return
    check_file(file, path, "--bondgraph")
    actuators = chosen(graph_actuators(path), path, joint)
    if file is not None:
        _draw(file, actuators, form)
    for name, actuator in actuators.items():
        if to == "latex":
            print(f"% {name}")
            lines = latex_lines(formulas_of(actuator.assembly, outputs_of(actuator), actuator.origins))
        else:
            lines = report_lines(name, actuator)
        print("\n".join(lines))
        if name != list(actuators)[-1]:
            print()
    if file is not None and to == "text":
        print(f"wrote    graph {file}")


def _write_code(path: Path, file: Path | None, joint: str | None, to: str) -> None:
    """Raises InputError for several graphs, of which one is not chosen."""
    if file is not None:
        check_code_file(file, to, [path], "--bondgraph")
    actuators = chosen(graph_actuators(path), path, joint)
    if len(actuators) > 1:
        raise InputError(f"code is of one graph, and the rig has {listed(list(actuators))}; choose one", "--joint")
    ((name, actuator),) = actuators.items()
    lines = code_lines(code_model(name, actuator), to, file)
    if file is None:
        print("\n".join(lines))
        return
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"wrote    equations {file}")


def _draw(file: Path, actuators: dict[str, GraphActuator], form: Form) -> None:
    """Raises InputError for a graph too large to draw."""
    for name, actuator in actuators.items():
        if len(actuator.assembly.graph.elements) > MAX_DRAWN_ELEMENTS:
            number = len(actuator.assembly.graph.elements)
            what = f"the graph of '{name}' with {number} elements is too large to draw ({MAX_DRAWN_ELEMENTS} at most)"
            raise InputError(f"{what}; leave the file out", str(file))
    panel = PANELS[form]
    save_panels(file, [panel(actuator, name, count(actuator.assembly)) for name, actuator in actuators.items()])


def graph_actuators(path: Path) -> dict[str, GraphActuator]:
    """By joint, or by the name of a graph of several joints. Raises InputErrors for errors in the rig."""
    if path.suffix.lower() in SUFFIXES:
        raise InputError("a robot file has no actuators; name a rig (YAML)", str(path))
    found, shared = actuators_of(read_rig_with_joints(path))
    both = found | {name: drive.actuator for name, drive in shared.items()}
    return {name: actuator for name, actuator in both.items() if isinstance(actuator, GraphActuator)}


def chosen(actuators: dict[str, GraphActuator], path: Path, joint: str | None) -> dict[str, GraphActuator]:
    """The actuators of one joint, or all. Raises InputError for none."""
    if not actuators:
        what = "no actuator of this rig is a bond graph; give a joint an actuator of the type bond_graph"
        raise InputError(what, str(path))
    if joint is None:
        return actuators
    if joint not in actuators:
        what = f"no joint '{joint}' has a bond graph as actuator{did_you_mean(joint, actuators)}"
        raise InputError(what, "--joint")
    return {joint: actuators[joint]}


def report_lines(name: str, actuator: GraphActuator) -> list[str]:
    """The graph and its equations."""
    assembly = actuator.assembly
    small = len(assembly.graph.bonds) <= MAX_PRINTED_BONDS
    return [
        f"{name}: {count(assembly)}",
        "",
        *element_lines(assembly),
        "",
        *_bonds(assembly),
        "",
        *_states(assembly),
        *loop_lines(assembly),
        *(["", *_incidence(assembly)] if small else []),
        "",
        *equation_lines(formulas_of(assembly, outputs_of(actuator), actuator.origins)),
    ]


def count(assembly: Assembly) -> str:
    """`14 elements, 13 bonds, 3 states, 29 equations`"""
    graph = assembly.graph
    return (
        f"{counted(len(graph.elements), 'element')}, {counted(len(graph.bonds), 'bond')}, "
        f"{counted(len(assembly.states), 'state')}, {counted(len(assembly.equations.of), 'equation')}"
    )


def shown_value(element: Element) -> str:
    """The value with its unit, what a law depends on, or nothing for a junction."""
    if not element.row.value:
        return ""
    if isinstance(element.value, Law):
        return f"law of {', '.join(element.value.uses)}" if element.value.uses else "law"
    return quantity(float(element.value), element.unit or "")


def element_lines(assembly: Assembly) -> list[str]:
    graph, states = assembly.graph, [state.name for state in assembly.states]
    rows = []
    for name, element in graph.elements.items():
        bonds = graph.at(name)
        domains = element.domains or (graph.domains[bonds[0]],)
        sides = (
            ()
            if element.row.ports == 2 or element.is_junction
            else [assembly.causality.computes(name, k) for k in bonds]
        )
        own = ", ".join(state for state in states if state.rpartition(".")[0] == name)
        rows.append(
            (name, element.kind, " → ".join(dict.fromkeys(domains)), shown_value(element), ", ".join(sides), own)
        )
    return table([("element", "kind", "domain", "value", "computes", "state"), *rows], "<<<<<<")


def _bonds(assembly: Assembly) -> list[str]:
    graph = assembly.graph
    rows = [
        (f"{number}", bond.tail, bond.head, graph.domains[number - 1], assembly.causality.effort_from[number - 1])
        for number, bond in enumerate(graph.bonds, 1)
    ]
    return table([("bond", "from", "to", "domain", "effort from"), *rows], "><<<<")


def _states(assembly: Assembly) -> list[str]:
    if not assembly.states:
        return ["no states"]
    rows = [(s.name, f"{float(s.initial):.6g} {unit_sign(s.unit)}".rstrip()) for s in assembly.states]
    return table([("state", "initial"), *rows], "<<")


def loop_lines(assembly: Assembly) -> list[str]:
    derivative = assembly.causality.derivative
    lines = [f"derivative causality: {', '.join(derivative)}"] if derivative else []
    lines += [f"algebraic loop: {', '.join(names)}" for names in assembly.loops]
    return ["", *lines] if lines else []


def _incidence(assembly: Assembly) -> list[str]:
    graph = assembly.graph
    numbers = [f"{number}" for number in range(1, len(graph.bonds) + 1)]
    rows = [
        (name, *(SIGNS[int(sign)] for sign in row))
        for name, row in zip(graph.elements, graph.incidence, strict=True)
    ]  # fmt: skip
    heading = "A, elements × bonds: +1 where a bond enters an element, -1 where it leaves it"
    return [heading, *table([("", *numbers), *rows], "<")]
