"""What a reader of equations must know: the order of joints, units, parameters, what moves together, operations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from cosim.apps.derive.equations.cartesian_system import CartesianSystem
from cosim.apps.derive.equations.code import Operations, operations_of
from cosim.apps.derive.equations.components import WRENCH, Derivation
from cosim.apps.derive.equations.formulas import name_of
from cosim.apps.derive.tables import table
from cosim.core.units import quantity_unit
from cosim.mechanics.multibody.constrained_dynamics import GROUND
from cosim.mechanics.multibody.friction import FRICTION_SPEED
from cosim.mechanics.multibody.model import Model
from cosim.mechanics.multibody.part_names import given_names, shown_name

QUATERNION = "Rotations: a quaternion (x, y, z, w); their v is the angular velocity along the axes of the body."
CARTESIAN_EQUATION = "M a = F + D u + G^T lambda,  G a + C lambda = b;  [M G^T; G -C] [a; -lambda] = [F + D u; b]"
NO_BAUMGARTE_TERMS = (
    "Constraints hold exactly: the terms of a Baumgarte stabilisation, which runs have with",
    "loop_closure: {drift: baumgarte}, are not contained.",
)
QUANTITIES = "joint velocity", "joint acceleration", "joint effort"  # of v, a and tau

Element = Callable[[str, int], str]  # of a vector, from 0


def in_formulas(name: str, k: int) -> str:
    """q1"""
    return f"{name}{k + 1}"


def operation_table(d: Derivation) -> dict[str, Operations]:
    """By component, of the code of each."""
    return {c.name: operations_of([d.inputs[a] for a in c.arguments], c.entries) for c in d.everything}


def equation_of(d: Derivation) -> str:
    """`M(q) a + S(q, v) = tau + L(q, f)`"""
    if d.cartesian is not None:
        return CARTESIAN_EQUATION
    left, right = (
        [f"{c.letter}({', '.join(c.arguments)})" + " a" * (c.letter == "M") for c in side] for side in d.sides
    )
    reactions = ["H^T lambda"] * any(c.name == "constraint_jacobian" for c in d.components)
    where = ", H a = gamma" if reactions else ""
    return f"{' + '.join(left)} = {' + '.join(['tau', *right, *reactions])}{where}"


def header(d: Derivation, element: Element = in_formulas) -> list[str]:
    """What a reader of the file must know, and the operations of each component. element: how q1 is written."""
    return [*description(d, element), *count_lines(d)]


def count_lines(d: Derivation) -> list[str]:
    """A table of the operations of each component as code has them, and of the whole equation."""
    by_name = operation_table(d)
    total = sum((by_name[c.name] for c in d.components), Operations())
    return table_of_operations(by_name | {"equation of motion": total})


def table_of_operations(by_name: Mapping[str, Operations]) -> list[str]:
    rows = [(name, *map(str, found.numbers)) for name, found in by_name.items()]
    return table([("computed with", "additions", "multiplications", "divisions", "functions"), *rows], "<")


def description(d: Derivation, element: Element = in_formulas) -> list[str]:
    """What a reader of the file must know: the equation, the joints in their order, parameters."""
    model = d.model
    units = zip(model.dof_names, model.dof_units, strict=True)
    dofs = [(element("v", k), n, *(quantity_unit(of, unit) for of in QUANTITIES)) for k, (n, unit) in enumerate(units)]
    coordinates = enumerate(zip(model.coordinate_names, model.coordinate_units, strict=True))
    rows = [(element("p", k), p.name, repr(p.value), p.unit, p.about) for k, p in enumerate(d.parameters)]
    paragraphs: Sequence[Sequence[str]] = [
        [f"Equations of motion of {d.name}{', in Cartesian coordinates' * (d.cartesian is not None)}."],
        list(d.notes),
        [equation_of(d)],
        _contents(d),
        *(
            _cartesian(d, d.cartesian, element)
            if d.cartesian is not None
            else [
                ["All in SI units, matrices by rows, vectors in the order of this table:"],
                table([("", "joint", "v", "a", "tau"), *dofs], "<<<<<"),
                table([("", "coordinate", "q"), *((element("q", k), *pair) for k, pair in coordinates)], "<<<"),
            ]
        ),
        [QUATERNION] if model.nq != model.nv and "q" in d.inputs else [],
        _followers(model),
        _carried_links(model),
        _dry_friction(d),
        _friction_laws(d),
        [f"f: {', '.join(WRENCH)}, force [N] and moment [N*m] on {d.load} at its origin, in ground axes."]
        if d.load
        else [],
        ["t: time [s]."] if "t" in d.inputs else [],
        ["Constraints: " + ", ".join(model.constraint_rows)] if model.constraint_rows and not d.cartesian else [],
        table([("", "parameter", "value", "unit", ""), *rows], "<<><<") if rows else [],
    ]
    return [line for lines in paragraphs if lines for line in (*lines, "")]


def _cartesian(d: Derivation, system: CartesianSystem, element: Element) -> list[list[str]]:
    """Tables of the bodies with their coordinates, of the rows of the constraints, and of the dofs of the joints."""

    def shown(key: str, ks: range) -> str:
        return ", ".join(
            name_of(d, key, k) if element is in_formulas else element(key, k) for k in ks if key in d.inputs
        )

    s, p = system.size, 3
    bodies = [
        (
            *(f"{k + 1}", name, shown("r", range(p * k, p * (k + 1))), shown("w", range(s * k, s * (k + 1)))),
            ", ".join(system.accelerations[s * k : s * (k + 1)]),
        )
        for k, name in enumerate(system.bodies)
    ]
    rows = [(f"lambda{k + 1}", row.owner, row.about) for k, row in enumerate(system.rows)]
    kinds = zip(d.model.equations.tree.joints, d.model.equations.tree.kinds, strict=True)
    dofs = [
        (name, unit)
        for joint, kind in kinds
        for name, (_, unit) in zip(kind.named(joint.name, kind.dofs), kind.dofs, strict=True)
    ]
    driven = {name: k for k, name in enumerate(d.model.dof_names)}
    of_joints = [
        (
            *(shown("v", range(k, k + 1)) or f"v{k + 1}", shown("u", range(k, k + 1))),
            shown("tau", range(driven[name], driven[name] + 1)) if name in driven else "",
            *(name, quantity_unit("joint velocity", unit), quantity_unit("joint effort", unit)),
        )
        for k, (name, unit) in enumerate(dofs)
    ]
    return [
        ["All in SI units, matrices by rows. r: centres of mass; w: their velocities, and angular velocities."],
        _coordinates(system),
        table([("", "body", "r", "w", "a"), *bodies], "><<<<"),
        table([("", "joint or constraint", "what it keeps"), *rows], "<<<") if rows else [],
        table([("v", "u", "tau", "joint", "v", "u"), *of_joints], "<<<<<<"),
        ["q: coordinates of joints, on which springs, force laws or constraints depend."] if "q" in d.inputs else [],
    ]


def _coordinates(system: CartesianSystem) -> list[str]:
    if system.basis is None:
        return [
            "Along ground axes; angular velocities and accelerations along the axes of the body. A: the axes of each",
            "body as columns in ground axes, A1_xy the x component of the y axis of body 1; dA/dt = A [w x].",
        ]
    axes = [f"({', '.join(f'{x + 0.0:g}' for x in column)})" for column in system.basis.T]
    return [f"All moves in a plane: x along {axes[0]}, y along {axes[1]}, angles about {axes[2]}, 0 where q is 0."]


def _contents(d: Derivation) -> list[str]:
    """What acts in the equations, and what tau does not have."""
    tree, constraints = d.model.equations.tree, d.model.equations.constraints
    contained = {
        "bodies": True,
        "gravity": bool(np.any(d.model.gravity)),
        "rotors": bool(tree.rotors) or any(np.any(body.rotor) for body in tree.bodies),
        "damping and friction of joints": any(j.damping or j.friction or any(j.friction_laws) for j in tree.joints),
        "damping and friction of rotors": any(r.damping or r.friction for r in tree.rotors),
        "springs in joints": constraints.joint_springs is not None or bool(constraints.ball_springs),
        "springs and dampers between bodies": bool(constraints.springs),
        "force laws": bool(constraints.laws),
        "elastic links": bool(constraints.elastic),
        "loops and constraints": bool(constraints.members),
    }
    return [
        f"Contained: {', '.join(name for name, is_so in contained.items() if is_so)}.",
        "Not contained: all else of drives (currents, friction of gears, elastic gears with the rotors behind them),",
        f"brakes, latches, hard stops{', contacts' * bool(d.model.mechanism.contacts)}. "
        "tau: what drives exert behind their gears.",
        *(NO_BAUMGARTE_TERMS if constraints.members or d.cartesian is not None else ()),
        *_rotors(d),
    ]


def _rotors(d: Derivation) -> list[str]:
    """Their inertia, as it is reflected to the joints."""
    tree, rows = d.model.equations.tree, list[tuple[str, str, str]]()
    for joint, kind, body in zip(tree.joints, tree.kinds, tree.bodies, strict=True):
        dofs = zip(kind.named(joint.name, kind.dofs), kind.dofs, body.rotor, strict=True)
        rows += [(name, f"{r:.6g}", quantity_unit("joint inertia", unit)) for name, (_, unit), r in dofs if r]
    on_one = ["", *table([("rotor on", "inertia", ""), *rows], "<><")] if rows else []
    turns = [" ".join(f"{ratio:+g} {shown_name(j)}" for j, ratio in rotor.turns) for rotor in tree.rotors]
    several = [(r.name, f"{r.inertia:.6g}", "kg*m^2", of) for r, of in zip(tree.rotors, turns, strict=True)]
    return [*on_one, "", *table([("rotor", "inertia", "", "turns by"), *several], "<><<")] if several else on_one


def _friction_laws(d: Derivation) -> list[str]:
    """Friction by laws, and what of it is left out."""
    laws = [(d.model.dof_names[k], law) for k, law in d.model.equations.friction_laws.items()]
    rows = [
        (
            *(name, law.model, f"{law.coulomb:g}", f"{law.dry_friction(0.0):g}"),
            *(f"{law.stribeck_speed:g}", f"{law.stribeck_exponent:g}", f"{law.creep_speed:g}"),
            ", ".join(["bristles"] * law.sticks + ["the part of the load"] * bool(law.of_drive or law.of_external)),
        )
        for name, law in laws
    ]
    heading = "Dry friction by a law: (F_c + (F_s - F_c) exp(-|v / v_s|^alpha)) v / sqrt(v^2 + v_0^2), bristles aside"
    names = ("joint", "law", "F_c", "F_s", "v_s", "alpha", "v_0", "left out")
    return [heading, *table([names, *rows], "<<>>>>><")] if rows else []


def _followers(model: Model) -> list[str]:
    """The joints without coordinates of their own, by formula."""
    rows = list[tuple[str, str]]()
    for joint, kind in zip(model.equations.tree.joints, model.equations.tree.kinds, strict=True):
        if joint.mimic is not None:
            unit = kind.coordinates[0][1]
            offset = f" + {joint.mimic.offset:.6g} {unit}" * bool(joint.mimic.offset)
            rows.append((joint.name, f"= {joint.mimic.multiplier:.6g} * {joint.mimic.joint}{offset}"))
    return ["Joints that follow others:", *table(rows, "<<")] if rows else []


def _carried_links(model: Model) -> list[str]:
    """The links that are fixed to another one, with which their mass is counted."""
    tree = model.equations.tree
    moving = {joint.child for joint in tree.joints}
    rows = [
        (name, tree.mechanism.root if k == GROUND else shown_name(tree.joints[k].child))
        for name in given_names(link.name for link in tree.mechanism.links)
        if name not in moving and name != tree.mechanism.root
        for k in (tree.frames[name][0],)
    ]
    return table([("link", "fixed to, and part of"), *rows], "<<") if rows else []


def _dry_friction(d: Derivation) -> list[str]:
    """Its law, where a joint or a rotor has it."""
    tree = d.model.equations.tree
    if not any(part.friction for part in (*tree.joints, *tree.rotors)):
        return []
    return [f"Coulomb friction d of a joint: d v / sqrt(v^2 + s^2) with s = {FRICTION_SPEED:g} rad/s or m/s"]
