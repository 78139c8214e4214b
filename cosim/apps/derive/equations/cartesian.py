"""The Cartesian equations of a mechanism, term by term, as expressions of symbols: Newton and Euler for every body in
absolute coordinates, and a row with a multiplier for each elementary constraint of a joint.

    M a = F + D u + Gᵀ λ,   G a + C λ = b,   as one system   [M Gᵀ; G −C] [a; −λ] = [F + D u; b]

a: accelerations of the centres of mass along ground axes, and angular accelerations along the axes of the bodies; in a
plane two and one. C is 0 but for the rotors on joints: the row of one is u = λ + J v̇, with λ behind its gear.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cosim.apps.derive.equations.cartesian_system import CartesianSystem, RowName
from cosim.apps.derive.equations.components import Derivation, EquationTerm, with_used_parameters
from cosim.apps.derive.equations.parameters import SymbolicParameter
from cosim.core import ops
from cosim.core.compile.trace import column, inlined, symbols
from cosim.core.types import Numeric
from cosim.mechanics.formulations import load_formulation
from cosim.mechanics.formulations.cartesian.absolute import AbsolutePoses
from cosim.mechanics.formulations.cartesian.assembled import Plane
from cosim.mechanics.formulations.cartesian.elementary import Advance, NoRotation, PointOnPlane, Rotation, Row
from cosim.mechanics.formulations.cartesian.system import Cartesian
from cosim.mechanics.multibody.constrained_dynamics import GROUND
from cosim.mechanics.multibody.equations import MechanismEquations
from cosim.mechanics.multibody.kinematics import Placement
from cosim.mechanics.multibody.mechanism import CoupledRotor
from cosim.mechanics.multibody.model import Model
from cosim.mechanics.multibody.part_names import shown_name

IN_PLANE = ("rx{}", "ry{}", "phi{}"), ("vx{}", "vy{}", "w{}"), ("ax{}", "ay{}", "alpha{}")
IN_SPACE = (
    ("rx{}", "ry{}", "rz{}"),
    ("vx{}", "vy{}", "vz{}", "wx{}", "wy{}", "wz{}"),
    ("ax{}", "ay{}", "az{}", "alphax{}", "alphay{}", "alphaz{}"),
)
AXES = tuple(f"A{{}}_{i}{j}" for i in "xyz" for j in "xyz")
AXIS = "xyz"


def cartesian_derivation(
    model: Model,
    equations: MechanismEquations,
    parameters: Sequence[SymbolicParameter] = (),
    notes: tuple[str, ...] = (),
) -> Derivation:
    """The Cartesian equations of a model, or of the same with symbols for its numbers.

    Raises InputError for a mechanism that the formulation cannot treat."""
    load_formulation("cartesian", model.equations, "--formulation")  # its refusals
    numbers = Cartesian(model.equations)
    system = numbers if equations is model.equations else Cartesian(equations, numbers)
    import casadi

    plane = system.coordinates if isinstance(system.coordinates, Plane) else None
    names = _names(system, plane)
    made = {key: symbols(key, (len(of),)) for key, of in names.items()}
    columns, arrays = {key: found for key, (found, _) in made.items()}, {key: found for key, (_, found) in made.items()}
    time, t = symbols("t", ())
    columns["t"] = time
    if parameters:
        columns["p"] = casadi.vertcat(*(parameter.symbol for parameter in parameters))
    with inlined():
        terms = _Terms(system, plane, arrays, t).all()
    found = [_term(name, letter, about, value, shape, columns) for name, letter, about, value, shape in terms]
    by_name = {c.name: c for c in found}
    kept = [c for c in found if not c.is_zero]
    used = {a for c in kept for a in c.arguments} | {"tau"}
    inputs = {key: found for key, found in columns.items() if key in used or key == "p"}
    accelerations = [
        n for k in range(len(system.joints)) for n in _named((IN_SPACE if plane is None else IN_PLANE)[2], k)
    ]
    about = CartesianSystem(
        None if plane is None else plane.basis,
        accelerations,
        [shown_name(joint.child) for joint in equations.tree.joints],
        _row_names(model, system),
    )
    first, code = ("joint_rates",), ("descriptor_matrix", "descriptor_right_side")
    whole = Derivation(
        model.mechanism.name,
        model,
        inputs,
        [c for c in kept if c.name not in (*first, *code)],
        [by_name[name] for name in code],
        [c for c in kept if c.name in first],
        parameters,
        notes=notes,
        names={key: names[key] for key in inputs if key in names},
        cartesian=about,
    )
    return with_used_parameters(whole) if parameters else whole


def _names(system: Cartesian, plane: Plane | None) -> dict[str, list[str]]:
    """Of the elements of each input. q and v: of all joints of the tree."""
    n, tree = len(system.joints), system.equations.tree
    position, velocity, _ = IN_SPACE if plane is None else IN_PLANE
    nq, nv = sum(kind.nq for kind in tree.kinds), system.equations.nv_tree

    def of_bodies(templates: Sequence[str]) -> list[str]:
        return [name for k in range(n) for name in _named(templates, k)]

    axes = {"A": of_bodies(AXES)} if plane is None else {}
    numbered = {"q": nq, "v": nv, "tau": system.equations.nv, "u": nv}
    return {
        "r": of_bodies(position), **axes, "w": of_bodies(velocity),
        **{key: [f"{key}{k + 1}" for k in range(size)] for key, size in numbered.items()},
    }  # fmt: skip


def _named(templates: Sequence[str], k: int) -> list[str]:
    return [template.format(k + 1) for template in templates]


def _term(
    name: str, letter: str, about: str, value: Numeric, shape: tuple[int, ...], columns: dict[str, Numeric]
) -> EquationTerm:
    """With the inputs that it depends on as arguments."""
    import casadi

    entries = casadi.cse(casadi.densify(casadi.SX(column(value))))
    used = {x.element_hash() for x in casadi.symvar(entries)}
    arguments = tuple(key for key, given in columns.items() if any(x.element_hash() in used for x in given.elements()))
    return EquationTerm(name, letter, about, arguments, shape, entries)


Term = tuple[str, str, str, Numeric, tuple[int, ...]]


class _Terms:
    """The terms of a system in one state, of symbols."""

    def __init__(self, system: Cartesian, plane: Plane | None, at: dict[str, Numeric], t: Numeric) -> None:
        self.system, self.equations, self.at, self.t = system, system.equations, at, t
        self.s, self.n = system.coordinates.size, len(system.joints)
        self.placed = self._in_plane() if plane is not None else self._in_space()
        self.rows = system.joint_rows(self.placed, t)

    def _in_plane(self) -> list[Placement]:
        return AbsolutePoses(self.system).placements(ops.concatenate([self.at["r"], self.at["w"]]))

    def _in_space(self) -> list[Placement]:
        found = []
        for k, body in enumerate(self.system.sweeps.bodies):
            axes = self.at["A"][9 * k : 9 * k + 9].reshape(3, 3)
            speed = self.at["w"][6 * k : 6 * k + 6]
            arm, angular = axes @ body.com, axes @ speed[3:]
            linear = speed[:3] - axes @ ops.cross(speed[3:], body.com)
            found.append(Placement(axes, self.at["r"][3 * k : 3 * k + 3] - arm, angular, linear))
        return found

    def all(self) -> list[Term]:
        size, dofs = self.s * self.n, self.equations.nv_tree
        at = self.at
        local = self.system.body_equations(self.placed, at["u"] * 0.0, self.t)
        M: list[list[Numeric]] = [[0.0] * size for _ in range(size)]
        for k, each in enumerate(local):
            for i, row in enumerate(each.blocks.inertia):
                M[self.s * k + i][self.s * k : self.s * (k + 1)] = list(row)
        jacobian, right, compliance = self._constraints()
        m = len(right)
        D = self._directions()
        F = self._forces([each.force[:, 0] for each in local])
        residual, rate = self._violations()
        rows = [[*row, *(g[i] for g in jacobian)] for i, row in enumerate(M)]
        rows += [[*g, *(-compliance[r] if r == k else 0.0 for k in range(m))] for r, g in enumerate(jacobian)]
        total = [f + ops.sum(d * u for d, u in zip(row, at["u"], strict=True)) for f, row in zip(F, D, strict=True)]
        whole, diagonal = (size + m, size + m), [[compliance[r] if r == k else 0.0 for k in range(m)] for r in range(m)]
        return [
            ("joint_rates", "v", "rates along the dofs of the joints", self._rates(), (dofs,)),
            (
                "efforts",
                "u",
                "efforts along the dofs: of drives, less friction, with springs in joints",
                self._efforts(),
                (dofs,),
            ),
            (
                "mass_matrix",
                "M",
                "mass and inertia of the bodies about their centres of mass",
                ops.array(M),
                (size, size),
            ),
            (
                "forces",
                "F",
                "gravity, gyroscopic moments, springs and force laws between bodies",
                ops.array(F),
                (size,),
            ),
            ("effort_directions", "D", "efforts u act on the bodies as D u", ops.array(D), (size, dofs)),
            ("constraint_residual", "g", "what vanishes: the constraints at the level of positions", residual, (m,)),
            ("constraint_rate", "r", "what vanishes: the constraints at the level of velocities", rate, (m,)),
            (
                "constraint_jacobian",
                "G",
                "Jacobian of the constraints by the velocities of the bodies",
                ops.array(jacobian),
                (m, size),
            ),
            ("rotor_compliance", "C", "1/J of rotors", ops.array(diagonal), (m, m)),
            ("constraint_right_side", "b", "right side of G a + C lambda = b", ops.array(right), (m,)),
            ("descriptor_matrix", "K", "[M G^T; G -C], of a and -lambda", ops.array(rows), whole),
            ("descriptor_right_side", "k", "[F + D u; b]", ops.array([*total, *right]), (size + m,)),
        ]

    # --- joints and closing constraints ---

    def _on_bodies(self, k: int, row: Row) -> list[Numeric]:
        """The coefficients of a row of the joint above body k, on all coordinates."""
        found: list[Numeric] = [0.0] * (self.s * self.n)
        for body, along in ((k, row.other), (self.system.sweeps.parents[k], row.base)):
            if body != GROUND:
                axes = self.placed[body].rotation
                found[self.s * body : self.s * (body + 1)] = list(self.system.coordinates.row(axes, along))
        return found

    def _constraints(self) -> tuple[list[list[Numeric]], list[Numeric], list[Numeric]]:
        """(G by rows, b, the diagonal of C)"""
        G, b, C = list[list[Numeric]](), list[Numeric](), list[Numeric]()
        dof = 0
        for k, (joint, body, (forbidden, free)) in enumerate(
            zip(self.system.joints, self.system.sweeps.bodies, self.rows, strict=True)
        ):
            for row in forbidden:
                G, b, C = [*G, self._on_bodies(k, row)], [*b, -row.bias], [*C, 0.0]
            for i, row in enumerate(free):
                if joint.rotors[i]:
                    J = body.rotor[i]
                    G, b, C = [*G, self._on_bodies(k, row)], [*b, self.at["u"][dof + i] / J - row.bias], [*C, 1.0 / J]
            dof += joint.nv
        for turns in self._turns():
            along = ops.sum(ratio * ops.array(self._on_bodies(k, row)) for ratio, k, row in turns)
            G, b = [*G, list(along)], [*b, -ops.sum(ratio * row.bias for ratio, _, row in turns)]
        C += [1.0 / rotor.inertia for rotor in _with_inertia(self.equations.tree.rotors)]
        local = self.system.body_equations(self.placed, self.at["u"] * 0.0, self.t)
        for row in self._closing()[2]:
            on_body, bias = self.system.on_centres_of_mass(local, self.placed, row)
            whole: list[Numeric] = [0.0] * (self.s * self.n)
            for body, along in on_body.items():
                whole[self.s * body : self.s * (body + 1)] = list(along)
            G, b, C = [*G, whole], [*b, -bias], [*C, 0.0]
        return G, b, C

    def _turns(self) -> list[list[tuple[float, int, Row]]]:
        """Of each rotor that turns with several joints: ratio, body of the joint and row of the joint's motion."""
        tree = self.equations.tree
        place = {joint.name: k for k, joint in enumerate(tree.joints)}
        return [
            [(ratio, place[joint], self.rows[place[joint]][1][0]) for joint, ratio in rotor.turns]
            for rotor in _with_inertia(tree.rotors)
        ]

    def _closing(self) -> tuple[list[Numeric], list[Numeric], list]:
        """(residuals, 0 of rows without one; rates; rows) of the acting rows of constraints, and of mimics."""
        constraints, at = self.equations.constraints, self.at
        found, rate, rows = constraints.rows(self.placed, at["q"], at["v"], np.zeros(3), self.t)
        residuals = iter(found)
        whole = [next(residuals) if holonomic else 0.0 for holonomic in constraints.holonomic]
        acting, e = self.system.acting, self.equations
        followers = sorted(set(range(len(e.v_map.leader))) - set(e.v_map.independent.tolist()))
        # all joints with followers have one coordinate for each dof
        place = dict(
            zip(followers, sorted(set(range(len(e.q_map.leader))) - set(e.q_map.independent.tolist())), strict=True)
        )
        away_q = at["q"] - e.q_map.positions(at["q"][e.q_map.independent])
        away_v = at["v"] - e.v_map.expand(at["v"][e.v_map.independent])
        return (
            [*(whole[r] for r in acting), *(away_q[place[k]] for k in followers)],
            [*(rate[r] for r in acting), *(away_v[k] for k in followers)],
            [*(rows[r] for r in acting), *e.v_map.rows()],
        )

    def _violations(self) -> tuple[Numeric, Numeric]:
        residual, rate = list[Numeric](), list[Numeric]()
        for k, (joint, (forbidden, _)) in enumerate(zip(self.system.joints, self.rows, strict=True)):
            away, speed = self._given_motion(k) if joint.kind.timed else ([0.0] * len(forbidden),) * 2
            rotors = [0.0] * sum(joint.rotors)
            residual += [*(row.residual + x for row, x in zip(forbidden, away, strict=True)), *rotors]
            rate += [*(row.rate - x for row, x in zip(forbidden, speed, strict=True)), *rotors]
        more, more_rates, _ = self._closing()
        rotors = [0.0] * len(self._turns())
        return ops.array([*residual, *rotors, *more]), ops.array([*rate, *rotors, *more_rates])

    def _given_motion(self, k: int) -> tuple[list[Numeric], list[Numeric]]:
        """(what is added to the residuals of the rows of a joint with a given motion, what is subtracted from their
        rates). The residual of a rotation is the sine of a small angle between the body and where it should be."""
        none = np.zeros(0)
        joint, body = self.system.joints[k], self.system.sweeps.bodies[k]
        turn, position = joint.place(none, self.t)
        drift = joint.hinge(none, none, self.t).drift
        linear, angular = turn @ drift.linear, turn @ drift.angular
        parent = self.system.sweeps.parents[k]
        above = np.eye(3) if parent == GROUND else self.placed[parent].rotation
        base = above @ body.rotation
        off = base.T @ self.placed[k].rotation @ turn.T
        angle = 0.5 * ops.array([off[2, 1] - off[1, 2], off[0, 2] - off[2, 0], off[1, 0] - off[0, 1]])
        away, speed = list[Numeric](), list[Numeric]()
        for row in joint.forbidden:
            if isinstance(row, PointOnPlane):
                away.append(-position[row.axis])
                speed.append(linear[row.axis])
            else:
                assert isinstance(row, Rotation)
                away.append(angle[row.axis])
                speed.append(angular[row.axis])
        return away, speed

    # --- efforts and forces ---

    def _directions(self) -> list[list[Numeric]]:
        """D: columns of dofs with rotors are 0, since efforts on these act on the rotor."""
        columns = [
            self._on_bodies(k, row) if not turning else [0.0] * (self.s * self.n)
            for k, (joint, (_, free)) in enumerate(zip(self.system.joints, self.rows, strict=True))
            for row, turning in zip(free, joint.rotors, strict=True)
        ]
        return [[c[i] for c in columns] for i in range(self.s * self.n)]

    def _rates(self) -> Numeric:
        return ops.array([row.rate for _, free in self.rows for row in free])

    def _efforts(self) -> Numeric:
        e, at = self.equations, self.at
        _, efforts = e.constraints.applied(self.placed, at["q"], at["v"], self.t)
        drives = at["tau"] - e.friction_effort(at["v"][e.v_map.independent])
        return e.v_map.embed(drives) + efforts

    def _forces(self, of_bodies: list[Numeric]) -> list[Numeric]:
        wrenches, _ = self.equations.constraints.applied(self.placed, self.at["q"], self.at["v"], self.t)
        for body, wrench in wrenches:
            of_bodies[body] = of_bodies[body] + self.system.on_body(body, self.placed, wrench)
        return [x for force in of_bodies for x in force]


def _row_names(model: Model, system: Cartesian) -> list[RowName]:
    tree, constraints = system.equations.tree, system.equations.constraints
    names = list[RowName]()
    for joint, cartesian, kind in zip(tree.joints, system.joints, tree.kinds, strict=True):
        names += [RowName(shown_name(joint.name), _forbids(row)) for row in cartesian.forbidden]
        dofs = kind.named(joint.name, kind.dofs)
        names += [
            RowName(shown_name(joint.name), f"rotor on {dof}", False)
            for dof, turning in zip(dofs, cartesian.rotors, strict=True)
            if turning
        ]
    names += [RowName(rotor.name, "rotor on several joints", False) for rotor in _with_inertia(tree.rotors)]
    rows = [(member.name, row.name) for member in constraints.members for row in member.law.rows]
    names += [RowName(shown_name(rows[r][0]), rows[r][1]) for r in system.acting]
    dof_names = [
        name for j, kind in zip(tree.joints, tree.kinds, strict=True) for name in kind.named(j.name, kind.dofs)
    ]
    names += [RowName(dof_names[next(iter(row.efforts))], "follows") for row in system.equations.v_map.rows()]
    return names


def _with_inertia(rotors: Sequence[CoupledRotor]) -> list[CoupledRotor]:
    """The rotors that have a row of their own; one without inertia has friction alone."""
    return [rotor for rotor in rotors if not ops.is_zero(rotor.inertia)]


def _forbids(row: object) -> str:
    """What a row of a joint keeps."""
    match row:
        case PointOnPlane(axis, of):
            return f"origin stays on the plane across {AXIS[axis]} of the {('base', 'body')[of]}"
        case NoRotation(base_axis, other_axis):
            return f"{AXIS[base_axis]} of the base stays across {AXIS[other_axis]} of the body"
        case Rotation(axis):
            return f"rotation about {AXIS[axis]} as given"
        case Advance():
            return "advance by the pitch"
        case _:
            return ""
