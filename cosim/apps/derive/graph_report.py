"""The graph of a mechanism as text: lists of bodies and joints, matrices, loops, mobility."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from cosim.apps.derive.graph_drawing import plot_graph
from cosim.apps.derive.tables import SIGNS, counted, table
from cosim.core.errors import InputError, InputErrors
from cosim.core.types import Actuator
from cosim.mechanics.multibody.description.robot_file import RobotFile
from cosim.mechanics.multibody.description.robot_formats import SUFFIXES, check_robot_file, format_of, read_robot
from cosim.mechanics.multibody.description.structure import FundamentalLoop, Structure, freedoms, mobility, structure_of
from cosim.mechanics.multibody.mechanism import Joint, Mechanism
from cosim.output import console
from cosim.rig.reading.contracts import load_actuator
from cosim.rig.reading.schema import Reading
from cosim.rig.rig_files import files_named_by
from cosim.rig.sections.rig_spec import PlantSpec, RigSpec, read_rig
from cosim.rig.wiring.plant import shared_drives
from cosim.rig.wiring.wired_rig import require_joints
from cosim.simulation.plant.plant_description import SharedDrive

MAX_PRINTED_BODIES = 20  # bodies besides body 0 whose matrices are printed


def derive_graph(path: Path, file: Path | None = None) -> None:
    """Print the graph of the mechanism of a rig or URDF file; with `file` (png, svg, pdf) also draw it.

    Raises InputError for errors in the file, an output that cannot be written or a graph too large to draw.
    """
    check_file(file, path, "--graph")
    mechanism = read_mechanism(path)
    structure = structure_of(mechanism)
    if file is not None:
        plot_graph(file, structure, mechanism.name, count(structure) + "; cut joints are dashed" * bool(structure.cuts))
    print("\n".join(graph_lines(mechanism, structure)))
    if file is not None:
        print(f"wrote    graph {file}")


def check_file(file: Path | None, path: Path, option: str) -> None:
    """Raises InputError for a picture that cannot be written, or that would overwrite a rig or robot file at `path` or
    one that it uses."""
    try:
        console.check_targets([] if file is None else [file], None, rig=path)
    except InputError as error:
        raise InputError(error.what, option) from None
    keep_files_of(path, file, option)


def keep_files_of(path: Path, file: Path | None, option: str) -> None:
    """Raises InputError for an output that is a file which a rig or robot file at `path` uses."""
    if file is not None and file.exists():
        console.refuse_inputs(files_named_by(path), file, option)


def read_mechanism(path: Path) -> Mechanism:
    """The mechanism of a robot file, by its suffix, or a rig. Raises InputError as their readers do."""
    if path.suffix.lower() not in SUFFIXES:
        return read_rig_with_joints(path).mechanism.description
    return read_robot_file(path).mechanism


def read_robot_file(path: Path) -> RobotFile:
    """What a robot file states; what of it is lost is printed. Raises InputError as its reader does."""
    try:
        check_robot_file(path)
    except InputError as error:
        raise InputError(error.what, str(path)) from None
    robot = read_robot(path, format_of(path))
    for line in robot.mechanism.warnings:
        print(f"warning: {line}", file=sys.stderr)
    return robot


def graph_lines(mechanism: Mechanism, structure: Structure) -> list[str]:
    """Lists of bodies and joints; the matrices of the graph unless they are large; loops; the mobility."""
    small = 0 < structure.size <= MAX_PRINTED_BODIES
    return [
        f"{mechanism.name}: {count(structure)}",
        "",
        *_bodies(structure),
        *_cuts(structure),
        *(line for lines in _matrices(structure) for line in ("", *lines) if small),
        *_loops(structure),
        "",
        *_mobility(mechanism, structure),
    ]


def count(structure: Structure) -> str:
    """The counts as text: `3 bodies on base, 4 joints, 1 loop`."""
    return (
        f"{counted(structure.size, 'body', 'bodies')} on {structure.bodies[0]}, "
        f"{counted(len(structure.edges), 'joint')}, {counted(len(structure.cuts), 'loop')}"
    )


def _joint(joint: Joint) -> tuple[str, str, str]:
    """Its name, type and number of freedoms."""
    kind = f"{joint.kind}, mimics {joint.mimic.joint}" if joint.mimic else joint.kind
    return joint.name, kind, f"{freedoms(joint)}"


def _bodies(structure: Structure) -> list[str]:
    rows = [
        (f"{edge.end}", structure.bodies[edge.end], _body(structure, edge.start), *_joint(edge.joint))
        for edge in structure.tree
    ]
    head = ("", "body", "parent", "joint", "type", "dof"), ("0", structure.bodies[0], *[""] * 4)
    return table([*head, *rows], "><<<<")


def _cuts(structure: Structure) -> list[str]:
    if not structure.cuts:
        return []
    rows = [
        (f"{cut.number}", *_joint(cut.joint), _body(structure, cut.start), _body(structure, cut.end))
        for cut in structure.cuts
    ]
    return ["", *table([("", "cut joint", "type", "dof", "from", "to"), *rows], "><<><<")]


def _body(structure: Structure, number: int) -> str:
    return f"{number} {structure.bodies[number]}"


def _matrices(structure: Structure) -> list[list[str]]:
    return [_adjacency(structure), _incidence(structure), _leaving(structure), _paths(structure)]


def _adjacency(structure: Structure) -> list[str]:
    heading = "adjacency, bodies × bodies: +1 where a joint connects two bodies"
    rows = [
        (f"{k}", name, *_signs(row, len(structure.bodies)))
        for k, (name, row) in enumerate(zip(structure.bodies, adjacency(structure), strict=True))
    ]
    return [heading, *table([("", "", *(f"{k}" for k in range(len(rows)))), *rows], "><")]


def adjacency(structure: Structure) -> np.ndarray:
    """(bodies, bodies) 1 where a joint connects two bodies, the ground among them."""
    S = structure.incidence
    return (S @ S.T < 0).astype(int)


def _incidence(structure: Structure) -> list[str]:
    heading = "S, bodies × joints: +1 where a joint leaves a body, -1 where it enters it; S0 is the row of body 0"
    return _of_bodies(structure, heading, "S", structure.incidence)


def _leaving(structure: Structure) -> list[str]:
    heading = "S+, bodies × joints: +1 where a joint leaves a body, S without its -1; S0+ is the row of body 0"
    return _of_bodies(structure, heading, "S+", np.maximum(structure.incidence, 0))


def _of_bodies(structure: Structure, heading: str, letter: str, matrix: np.ndarray) -> list[str]:
    """A matrix of bodies × joints, with the row of body 0 apart and the cut joints behind a bar."""
    n = structure.size
    if structure.cuts:
        heading += f", {letter.replace('S', 'S*')} behind the bar"
    first = letter.replace("S", "S0")
    rows = [
        (first if k == 0 else letter if k == 1 else "", f"{k}", name, *_signs(matrix[k], n))
        for k, name in enumerate(structure.bodies)
    ]
    numbers = [f"{edge.number}" for edge in structure.edges]
    return [heading, *table([("", "", "", *_barred(numbers, n)), *rows], "<><")]


def _paths(structure: Structure) -> list[str]:
    heading = "T, joints × bodies: -1 where a joint lies on the path from body 0 to a body, and so T S = S T = E"
    rows = [
        ("T" if edge.number == 1 else "", f"{edge.number}", edge.joint.name, *_signs(row, structure.size))
        for edge, row in zip(structure.tree, structure.T, strict=True)
    ]
    return [heading, *table([("", "", "", *(f"{edge.end}" for edge in structure.tree)), *rows], "<><")]


def _signs(row: np.ndarray, n: int) -> list[str]:
    return _barred([SIGNS[int(value)] for value in row], n)


def _barred(cells: Sequence[str], n: int) -> list[str]:
    """The cells with a bar after the first n."""
    return [*cells[:n], "|", *cells[n:]] if len(cells) > n else list(cells)


def _loops(structure: Structure) -> list[str]:
    if not structure.loops:
        return []
    many = f"{len(structure.edges)} joints - {counted(structure.size, 'body', 'bodies')}"
    return [
        "",
        f"{counted(len(structure.loops), 'loop')} = {many}",
        *(f"  loop {loop.cut.joint.name}: {loop_path(structure, loop)}" for loop in structure.loops),
    ]


def loop_path(structure: Structure, loop: FundamentalLoop) -> str:
    """The bodies along a loop, with the cut joint at its place: `base → crank → rod → C → rocker → base`."""
    around = [*loop.bodies, loop.bodies[0]]
    words = [structure.bodies[around[0]]]
    for edge, (_, body) in zip(loop.edges, pairwise(around), strict=True):
        words += [edge.joint.name] * (edge is loop.cut) + [structure.bodies[body]]
    return " → ".join(words)


def _mobility(mechanism: Mechanism, structure: Structure) -> list[str]:
    found = mobility(mechanism, structure)
    terms = [counted(found.tree, "freedom") + " of the tree"]
    terms += [
        f"{counted(rows, 'row')} of loop {loop.cut.joint.name}"
        for rows, loop in zip(found.closure_rows, structure.loops, strict=True)
    ]
    terms += [counted(found.constraints, "row") + " of constraints"] * bool(found.constraints)
    line = f"mobility {found.estimate} = " + " - ".join(terms)
    return [line + " (Kutzbach's estimate: all rows assumed independent)" * (len(terms) > 1)]


def read_rig_with_joints(path: Path) -> RigSpec:
    """As `read_rig`. Raises InputError for a rig of parts only too."""
    spec = read_rig(path)
    require_joints(spec.joints, path, "cosim derive")
    return spec


def actuators_of(rig: RigSpec | PlantSpec) -> tuple[dict[str, Actuator], dict[str, SharedDrive]]:
    """By joint, and drives of several joints by name. Raises InputErrors for those that cannot be set up."""
    reading = Reading(rig.source.place, [], rig.path.parent)
    shared = shared_drives(rig, reading)
    found = {
        name: load_actuator(joint.actuator, ("joints", name, "actuator"), reading)
        for name, joint in rig.joints.items()
        if joint.actuator is not None
    }
    if reading.errors:
        raise InputErrors(reading.errors)
    return {name: actuator for name, actuator in found.items() if actuator is not None}, shared
