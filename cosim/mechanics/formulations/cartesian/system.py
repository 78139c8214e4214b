"""The equations of motion [M Qᵀ; Q −C] [ẍ; −λ] = [F; b] of a mechanism in Cartesian coordinates, and their solution."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from cosim.core import ops
from cosim.core.compile.rolled_sweeps import RolledRoutine
from cosim.core.types import Numeric
from cosim.mechanics.formulations import check_state
from cosim.mechanics.formulations.cartesian.assembled import (
    GROUND_FRAME,
    NEGLIGIBLE_PART,
    Assembled,
    CartesianBody,
    CartesianJoint,
    CentralFrame,
    assemble,
    general_position,
    has_symbols,
)
from cosim.mechanics.formulations.cartesian.elementary import Row
from cosim.mechanics.formulations.cartesian.ldlt import (
    Blocks,
    body_joint_graph,
    border_multipliers,
    elimination_order,
    factorise,
    filled_blocks,
    substitute,
)
from cosim.mechanics.multibody import dynamics, kinematics
from cosim.mechanics.multibody.constrained_dynamics import ConstraintRow
from cosim.mechanics.multibody.equations import MechanismEquations
from cosim.mechanics.multibody.kinematics import Placement
from cosim.mechanics.multibody.spatial import SpatialVector
from cosim.mechanics.multibody.sweeps import Column, Sweeps

# from this many bodies on, the sweeps are loops in machine code: straight-line code has thousands of operations a body
ROLLED_FROM = 16


class Measures(NamedTuple):
    """The rows along the dofs of a joint: v̇ = own·ẍ_k + parent·ẍ_p + bias."""

    own: Numeric  # (nv, s)
    parent: Numeric  # (nv, s)
    bias: Numeric  # (nv,)


class BodyEquations(NamedTuple):
    """The equations of a body and of the joint above it; forces and what is given have one column each."""

    blocks: Blocks
    force: Numeric  # (s, 1)
    on_parent: Numeric  # (s, 1) of the joint's effort
    given: Numeric  # (m, 1) b
    dofs: Measures

    def with_demand(self, demand: Numeric, given: Numeric) -> BodyEquations:
        """With `demand` of the joint's constraints added to `given`; its rows of rotors come last."""
        rotors = np.zeros(len(given) - len(demand))
        return self._replace(given=given + _column(ops.concatenate([demand, rotors])))


class CartesianSolution(NamedTuple):
    """What the equations of motion determine in one state."""

    acceleration: Numeric  # v̇ (nv,) of all joints of the tree
    bodies: list[Numeric]  # ẍ (s,) of each body
    joints: list[Numeric]  # λ (m,) of each joint's rows
    border: Numeric  # λ of the rows of loops, constraints and mimics


class Cartesian:
    """The Cartesian equations of a mechanism."""

    def __init__(self, equations: MechanismEquations, like: Cartesian | None = None) -> None:
        """like: of the same mechanism with numbers in place of symbols."""
        self.equations, self._like = equations, like
        known = None if like is None else Assembled(like.coordinates, like.sweeps)
        self.coordinates, self.sweeps = assemble(equations, known)
        self.joints: list[CartesianJoint] = list(self.sweeps.kinds)  # type: ignore[arg-type]
        self._routines: dict[tuple[bytes | None, ...], RolledRoutine] = {}

    @property
    def size(self) -> tuple[int, int]:
        """(coordinates of the bodies, rows of the joints and of the closing constraints)."""
        closing = len(self.acting) + len(self.equations.v_map.rows())
        rows = sum(joint.rows for joint in self.joints)
        return self.coordinates.size * len(self.sweeps.bodies), rows + closing

    @property
    def filled_blocks(self) -> int:
        """Number of blocks that LDLᵀ fills: 0 for a tree; constraints, eliminated last, fill their own columns."""
        return len(filled_blocks(body_joint_graph(self.sweeps.parents, self.loops), self.elimination_order))

    @property
    def loops(self) -> list[set[int]]:
        """The bodies on which each constraint acts, mimics last."""
        members = self.equations.constraints.members
        loops = [{*member.bodies, *self._bodies_of(member.dofs)} for member in members]
        return loops + [set(self._bodies_of(row.efforts)) for row in self.equations.v_map.rows()]

    @property
    def elimination_order(self) -> list[int]:
        """Of the vertices of `body_joint_graph`."""
        return elimination_order(self.sweeps.parents, len(self.loops))

    def _bodies_of(self, dofs: Iterable[int]) -> list[int]:
        """The bodies that the joints of these dofs of the tree connect."""
        joints = [self._dofs[dof][0] for dof in dofs]
        return [body for k in joints for body in (k, self.sweeps.parents[k])]

    # --- in the independent coordinates ---

    def forward_dynamics(self, q: Numeric, v: Numeric, tau: Numeric, t: Numeric = 0.0) -> Numeric:
        """q̈ (nv,): see `Model.forward_dynamics`."""
        check_state(self.equations, q, v, tau)
        if self._rolled and any(map(ops.is_symbolic, (q, v, tau))):
            constraints = self.equations.constraints
            return self._loops(q, v, tau + constraints.efforts_on_dofs(q, v) if constraints.acts_on_dofs else tau)
        return self.solution(q, v, tau, t).acceleration[self.equations.v_map.independent]

    def solution(self, q: Numeric, v: Numeric, tau: Numeric, t: Numeric = 0.0) -> CartesianSolution:
        """Accelerations and reactions in a state; arguments as of `forward_dynamics`."""
        equations = self.equations
        q_tree, v_tree = equations.q_map.positions(q), equations.v_map.expand(v)
        return self.solved(self._placed(q_tree, v_tree, t), q_tree, v_tree, equations.v_map.embed(tau), t)

    def placements(self, q: Numeric, v: Numeric = None, t: Numeric = 0.0) -> list[Placement]:
        """The bodies in ground axes; at rest without v."""
        equations = self.equations
        v = np.zeros(equations.nv) if v is None else v
        return self._placed(equations.q_map.positions(q), equations.v_map.expand(v), t)

    def _placed(self, q_tree: Numeric, v_tree: Numeric, t: Numeric) -> list[Placement]:
        return kinematics.placements(self.sweeps, dynamics.body_motions(self.sweeps, q_tree, v_tree, t))

    @property
    def _rolled(self) -> bool:
        alike = len({(joint.nq, joint.nv, joint.rows) for joint in self.joints}) == 1
        symbols = any(map(has_symbols, self.equations.tree.bodies))  # the data of a loop are numbers
        return len(self.joints) >= ROLLED_FROM and alike and self.equations.is_plain_tree and not symbols

    def _loops(self, *vectors: Numeric) -> Numeric:
        """q̈ of many bodies, as loops over them in machine code."""
        constants = [None if ops.is_symbolic(x) else np.asarray(x, dtype=float) for x in vectors]
        key = tuple(None if c is None else c.tobytes() for c in constants)
        given = [x for x in vectors if ops.is_symbolic(x)]
        if key not in self._routines:
            sizes = [(kind.nq, kind.nv) for kind in self.joints]
            shapes = [np.shape(x) for x in given]
            self._routines[key] = RolledRoutine(self._sweep, self.sweeps, sizes, shapes, constants, "cartesian")
        return self._routines[key](*given)

    def _sweep(self, sweeps: Sweeps, q: Numeric, v: Numeric, tau: Numeric) -> Numeric:
        """q̈ of a tree without other constraints and forces."""
        placed = kinematics.placements(sweeps, dynamics.body_motions(sweeps, q, v))  # type: ignore[arg-type]
        local = self._bodies(sweeps, placed, sweeps.by_v(tau))
        blocks, forces, given = sweeps.pick(local, 0), _forces(sweeps, local), sweeps.pick(local, 3)
        found = substitute(sweeps, blocks, factorise(sweeps, blocks), forces, given, (self.coordinates.size, 1))
        return sweeps.vector(self._along_dofs(sweeps, local, sweeps.pick(found, 0)))

    # --- the equations of each body ---

    def _bodies(self, sweeps: Sweeps, placed: Column, tau: Column, t: Numeric = 0.0) -> Column:
        """The `BodyEquations` of every body; tau: efforts on the dofs of its joint."""

        def step(
            joint: CartesianJoint, body: CartesianBody, above: CentralFrame, here: Placement, tau: Numeric
        ) -> tuple[CentralFrame, BodyEquations]:
            frame = CentralFrame.of(here, body.com)
            return frame, self._body(joint, body, above, frame, tau, t)

        return sweeps.outward(step, GROUND_FRAME, placed, tau)

    def _body(
        self,
        joint: CartesianJoint,
        body: CartesianBody,
        above: CentralFrame,
        here: CentralFrame,
        tau: Numeric,
        t: Numeric,
    ) -> BodyEquations:
        to_rows, axes = self.coordinates.row, here.placement.rotation
        forbidden, free = joint.rows_between(above.mount(body), here.mount(), t)
        size = self.coordinates.size

        def own(rows: Sequence[Row]) -> Numeric:
            return ops.array([to_rows(axes, row.other) for row in rows]).reshape(len(rows), size)

        def parent(rows: Sequence[Row]) -> Numeric:
            return ops.array([to_rows(above.placement.rotation, row.base) for row in rows]).reshape(len(rows), size)

        dofs = Measures(own(free), parent(free), ops.array([row.bias for row in free]))
        turning = [k for k, has in enumerate(joint.rotors) if has]
        direct = [k for k, has in enumerate(joint.rotors) if not has]
        compliance = [1.0 / body.rotor[k] for k in turning]
        driven = [tau[k] / body.rotor[k] - free[k].bias for k in turning]
        rows = [*forbidden, *(free[k] for k in turning)]
        blocks = Blocks(
            body.matrix, own(rows), parent(rows), ops.array([*[0.0] * len(forbidden), *compliance]), body.weight
        )
        omega = axes.T @ here.placement.angular
        weight = body.mass * self.equations.gravity
        force = self.coordinates.force(axes, weight, -ops.cross(omega, body.inertia @ omega))
        effort = ops.array([tau[k] for k in direct])
        force = force + dofs.own[direct].T @ effort
        on_parent = dofs.parent[direct].T @ effort
        given = ops.array([*(-row.bias for row in forbidden), *driven])
        return BodyEquations(blocks, _column(force), _column(on_parent), _column(given), dofs)

    def _along_dofs(self, sweeps: Sweeps, local: Column, found: Column) -> Column:
        """v̇ of the dofs of every joint from the accelerations (s, 1) of the bodies."""

        def step(
            joint: CartesianJoint, body: CartesianBody, above: Numeric, local: BodyEquations, here: Numeric
        ) -> tuple[Numeric, Numeric]:
            dofs = local.dofs
            return here, (dofs.own @ here + dofs.parent @ above)[:, 0] + dofs.bias

        return sweeps.outward(step, np.zeros((self.coordinates.size, 1)), local, found)

    # --- with loops, constraints, mimics, springs and force laws ---

    def solved(
        self,
        placed: Sequence[Placement],
        q_tree: Numeric,
        v_tree: Numeric,
        tau_tree: Numeric,
        t: Numeric,
        feedback: Sequence[Numeric] | None = None,
    ) -> CartesianSolution:
        """The solution with bodies in these places; efforts on all dofs of the tree. feedback: of each joint's
        constraints, what is added to the accelerations that vanish."""
        equations = self.equations
        constraints = equations.constraints
        wrenches, efforts = constraints.applied(placed, q_tree, v_tree, t)
        local = self.body_equations(placed, tau_tree + efforts, t)
        if feedback is not None:
            local = [each.with_demand(-added, each.given) for each, added in zip(local, feedback, strict=True)]
        forces = _forces(self.sweeps, local)
        for body, wrench in wrenches:
            forces[body] = forces[body] + _column(self.on_body(body, placed, wrench))
        residual, rate, rows = constraints.rows(placed, q_tree, v_tree, np.zeros(3), t)
        rows = constraints.stabilised(rows, residual, rate)
        closing = [*(rows[r] for r in self.acting), *equations.v_map.rows()]
        return self.bordered(local, placed, forces, closing)

    def body_equations(self, placed: Sequence[Placement], tau_tree: Numeric, t: Numeric) -> list[BodyEquations]:
        """The equations of bodies in these places; efforts on all dofs of the tree."""
        return self._bodies(self.sweeps, placed, self.sweeps.by_v(tau_tree), t)

    def joint_rows(self, placed: Sequence[Placement], t: Numeric) -> list[tuple[list[Row], list[Row]]]:
        """(constraints, rows along the dofs) of every joint, with bodies in these places."""
        sweeps = self.sweeps
        frames = [CentralFrame.of(here, body.com) for here, body in zip(placed, sweeps.bodies, strict=True)]
        found = []
        for k, (joint, body) in enumerate(zip(self.joints, sweeps.bodies, strict=True)):
            above = GROUND_FRAME if sweeps.parents[k] < 0 else frames[sweeps.parents[k]]
            found.append(joint.rows_between(above.mount(body), frames[k].mount(), t))
        return found

    def bordered(
        self, local: list[BodyEquations], placed: Sequence[Placement], forces: list[Numeric], rows: list[ConstraintRow]
    ) -> CartesianSolution:
        """The solution for these forces (s, 1) on the bodies, and rows of constraints."""
        sweeps, s, n = self.sweeps, self.coordinates.size, len(local)
        closing = [self.on_centres_of_mass(local, placed, row) for row in rows]
        G = [ops.array([on_body.get(k, np.zeros(s)) for on_body, _ in closing]).reshape(len(rows), s) for k in range(n)]
        blocks = [each.blocks for each in local]
        right = [_beside(force, g.T) for force, g in zip(forces, G, strict=True)]
        given = [_beside(each.given, np.zeros((len(each.given), len(rows)))) for each in local]
        found = substitute(sweeps, blocks, factorise(sweeps, blocks), right, given, (s, 1 + len(rows)))
        factors = _column(ops.array([1.0]))
        if rows:
            driven = ops.sum(g @ x for g, (x, _) in zip(G, found, strict=True))
            demand = ops.array([-bias for _, bias in closing]) - driven[:, 0]
            factors = _column(ops.array([1.0, *border_multipliers(driven[:, 1:], demand, list(map(_size, rows)))]))
        accelerations = [x @ factors for x, _ in found]
        return CartesianSolution(
            ops.concatenate(self._along_dofs(sweeps, local, accelerations)),
            [x[:, 0] for x in accelerations],
            [(multipliers @ factors)[:, 0] for _, multipliers in found],
            factors[1:, 0],
        )

    @cached_property
    def acting(self) -> list[int]:
        """The rows of constraints that are solved for: in a plane those that act in it, as far as they are not
        redundant."""
        if self._like is not None:
            return self._like.acting
        equations = self.equations
        q = general_position(equations.tree)
        placed = kinematics.placements(self.sweeps, dynamics.body_motions(self.sweeps, q, np.zeros(equations.nv_tree)))
        _, _, rows = equations.constraints.rows(placed, q, np.zeros(equations.nv_tree), np.zeros(3), 0.0)

        def acts(row: ConstraintRow) -> bool:
            turned = [(placed[k].rotation, wrench) for k, wrench in row.wrenches.items()]
            parts = [self.coordinates.force(axes, axes @ wrench.linear, wrench.angular) for axes, wrench in turned]
            return bool(row.efforts) or not sum(part @ part for part in parts) < NEGLIGIBLE_PART**2 * _size(row)

        return [r for r in equations.constraints.solved if acts(rows[r])]

    def on_body(self, k: int, placed: Sequence[Placement], wrench: SpatialVector) -> Numeric:
        """Coefficients (s,) of a force and moment at the origin of body k, along its axes."""
        axes, com = placed[k].rotation, self.sweeps.bodies[k].com
        moment = wrench.angular - ops.cross(com, wrench.linear)
        return self.coordinates.force(axes, axes @ wrench.linear, moment)

    def on_centres_of_mass(
        self, local: list[BodyEquations], placed: Sequence[Placement], row: ConstraintRow
    ) -> tuple[dict[int, Numeric], Numeric]:
        """(body -> coefficients (s,), bias) of a row on bodies and dofs."""
        on_body = {k: self.on_body(k, placed, wrench) for k, wrench in row.wrenches.items()}
        bias = row.bias
        for k, wrench in row.wrenches.items():  # origin and centre of mass accelerate differently
            axes, com = placed[k].rotation, self.sweeps.bodies[k].com
            omega = axes.T @ placed[k].angular
            bias = bias - wrench.linear @ ops.cross(omega, ops.cross(omega, com))
        for dof, factor in row.efforts.items():
            k, i = self._dofs[dof]
            bias = bias + factor * local[k].dofs.bias[i]
            for body, along in ((k, local[k].dofs.own[i]), (self.sweeps.parents[k], local[k].dofs.parent[i])):
                if body >= 0:
                    on_body[body] = on_body.get(body, np.zeros(self.coordinates.size)) + factor * along
        return on_body, bias

    @property
    def _dofs(self) -> list[tuple[int, int]]:
        """(body, index in its joint) of every dof of the tree."""
        return [(k, i) for k, kind in enumerate(self.joints) for i in range(kind.nv)]


def _forces(sweeps: Sweeps, local: Column) -> Column:
    """Of every body the force (s, 1) on it, with the efforts of the joints that it carries."""

    def own(joint: CartesianJoint, body: CartesianBody, local: BodyEquations) -> Numeric:
        return local.force

    def step(
        joint: CartesianJoint, body: CartesianBody, force: Numeric, local: BodyEquations
    ) -> tuple[Numeric, Numeric]:
        return local.on_parent, force

    return sweeps.inward(own, step, local)


def _size(row: ConstraintRow) -> Numeric:
    """|G_r|²"""
    wrenches: Mapping[int, SpatialVector] = row.wrenches
    return ops.sum(w.dot(w) for w in wrenches.values()) + ops.sum(g * g for g in row.efforts.values())


def _column(x: Numeric) -> Numeric:
    return x.reshape(len(x), 1)


def _beside(a: Numeric, b: Numeric) -> Numeric:
    """The columns of both."""
    return ops.array([[*x, *y] for x, y in zip(a, b, strict=True)]).reshape(len(a), a.shape[1] + b.shape[1])
