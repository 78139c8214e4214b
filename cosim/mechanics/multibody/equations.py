"""The equations of motion of one mechanism as pure functions of numbers or symbols, in its independent coordinates.

Open trees use the sweeps of `dynamics`, as straight-line code or as loops. Mimics, loop closures and other
constraints add rows to the same sweeps (`constrained_dynamics`); springs between bodies add forces.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from cosim.core import ops
from cosim.core.compile.rolled_sweeps import RolledRoutine
from cosim.core.types import Numeric
from cosim.mechanics.multibody import dynamics, kinematics
from cosim.mechanics.multibody.bodies import AnyMotion, AnyVector
from cosim.mechanics.multibody.closure import Closure
from cosim.mechanics.multibody.constrained_dynamics import (
    ConstraintRow,
    Solution,
    largest_by_dof,
    least_norm,
    rows_by_dof,
    solve_tree,
)
from cosim.mechanics.multibody.constraint_rows import ConstraintWrenches
from cosim.mechanics.multibody.constraint_set import ConstraintSet
from cosim.mechanics.multibody.copies import CopiesRoutine, Forest
from cosim.mechanics.multibody.coupled_inertia import CoupledInertia, rotor_friction
from cosim.mechanics.multibody.friction import FRICTION_SPEED, JointFriction
from cosim.mechanics.multibody.inertial_parameters import with_inertial_parameters
from cosim.mechanics.multibody.kinematics import Placement
from cosim.mechanics.multibody.spatial import SpatialVector
from cosim.mechanics.multibody.torsion_springs import TorsionState
from cosim.mechanics.multibody.tree import Tree
from cosim.mechanics.multibody.tree_kinematics import TreeKinematics
from cosim.mechanics.multibody.wrenches import transmitted, with_contacts, with_reactions

REST = np.zeros(3)
ZERO = SpatialVector(REST, REST)

# from this many bodies on, sweeps are loops: straight-line code then compiles for seconds and exceeds the caches
ROLLED_FROM = 48


class MechanismEquations(TreeKinematics):
    """Pure functions of one mechanism; arguments and results as in `Model`, for one state.

    t: time [s], used only by joints and constraints that depend on it.
    """

    def __init__(self, tree: Tree, gravity: np.ndarray, constraints: ConstraintSet) -> None:
        super().__init__(tree)
        self.gravity, self.constraints = gravity, constraints
        self._rolled: dict[tuple[str, tuple[bytes | None, ...]], RolledRoutine | CopiesRoutine] = {}

    @property
    def timed(self) -> bool:
        """Whether a joint or a constraint depends on time."""
        laws = [item.law for item in (*self.constraints.members, *self.constraints.laws)]
        return any(kind.timed for kind in self.tree.kinds) or any(law.timed for law in laws)

    @property
    def is_plain_tree(self) -> bool:
        """Whether there are only joints, their springs and rotors: no elastic links, and what `is_open_tree`
        excludes."""
        return self.is_open_tree and not self.constraints.elastic

    @property
    def is_open_tree(self) -> bool:
        """Whether there are only joints, rotors and elastic links: no mimics, constraints, springs between bodies,
        force laws or time-dependent joints."""
        timed = any(kind.timed for kind in self.tree.kinds)
        constraints = self.constraints
        return self.v_map.trivial and not (constraints.members or constraints.springs or constraints.laws or timed)

    def with_inertias(self, parameters: Numeric) -> MechanismEquations:
        """The same mechanism with these inertial parameters (10 n,) of its bodies; see `inertial_parameters`."""
        tree = with_inertial_parameters(self.tree, parameters)
        return MechanismEquations(tree, self.gravity, self.constraints)

    def with_rotors(self, inertia: Numeric) -> MechanismEquations:
        """The same mechanism with further reflected inertia on its dofs (nv,), numbers or symbols."""
        by_dof = ops.set_at(np.zeros(self.nv_tree), self.v_map.independent, inertia)
        ends = np.cumsum([0, *(kind.nv for kind in self.tree.kinds)])
        tree = self.tree.with_rotors([by_dof[a:b] for a, b in pairwise(ends)])
        equations = MechanismEquations(tree, self.gravity, self.constraints)
        # loops over bodies take their inertia from tables
        equations.__dict__ |= {"rolled": False, "copies": None}
        return equations

    @property
    def without_coupled_rotors(self) -> MechanismEquations:
        """The same mechanism without rotors that turn with several joints."""
        return MechanismEquations(replace(self.tree, rotors=()), self.gravity, self.constraints)

    @cached_property
    def coupled_inertia(self) -> CoupledInertia:
        """Of the rotors that turn with several joints, on the independent dofs."""
        of_tree = CoupledInertia.of_rotors(self.tree)
        return of_tree._replace(directions=self.v_map.matrix.T @ of_tree.directions)

    # --- sweeps over the tree ---

    @cached_property
    def rolled(self) -> bool:
        """Whether sweeps become loops: for many bodies whose joints have the same numbers of coordinates and dofs."""
        alike = len({(k.nq, k.nv) for k in self.tree.kinds}) == 1
        return len(self.tree.bodies) >= ROLLED_FROM and alike and self.is_plain_tree

    @cached_property
    def copies(self) -> Forest | None:
        """The trees on the ground where there are many bodies in copies of a few small trees."""
        forest = Forest(self.sweeps)
        many = len(self.tree.bodies) >= ROLLED_FROM and self.is_plain_tree
        return forest if many and forest.has_copies(ROLLED_FROM) else None

    def _over_tree(self, algorithm: Callable[..., Numeric], *vectors: Numeric, t: Numeric = 0.0) -> Numeric:
        """An algorithm of `dynamics` or `kinematics`: straight-line code, or a loop when there are many bodies."""
        if not (self.rolled or self.copies) or not any(map(ops.is_symbolic, vectors)):
            return algorithm(self.sweeps, *vectors, t=t)
        given = [v for v in vectors if ops.is_symbolic(v)]
        constants = [None if ops.is_symbolic(v) else np.asarray(v) for v in vectors]
        key = algorithm.__name__, tuple(None if c is None else c.tobytes() for c in constants)
        if key not in self._rolled:
            sizes = [(k.nq, k.nv) for k in self.tree.kinds]
            shapes = [np.shape(v) for v in given]
            self._rolled[key] = (
                CopiesRoutine(algorithm, self.copies, constants, [len(v) for v in vectors])
                if self.copies
                else RolledRoutine(algorithm, self.sweeps, sizes, shapes, constants, algorithm.__name__)
            )
        return self._rolled[key](*given)

    # --- constraints ---

    def constraint_state(
        self, q_tree: Numeric, v_tree: Numeric, t: Numeric
    ) -> tuple[list[AnyMotion], list[Placement], Numeric, Numeric, list[ConstraintRow]]:
        """(motions, placements, residual, rate, rows) of the tree and its constraints."""
        moving, placed = self.placements(q_tree, v_tree, t)
        return moving, placed, *self.constraints.rows(placed, q_tree, v_tree, self.gravity, t)

    def constraint_violation(self, q: Numeric, v: Numeric, t: Numeric = 0.0) -> tuple[Numeric, Numeric]:
        """(f of the holonomic rows, ḟ or a₀ + a·q̇ of all rows): both vanish when the constraints hold."""
        _, _, residual, rate, _ = self.constraint_state(self.q_map.positions(q), self.v_map.expand(v), t)
        return residual, rate

    def constraint_jacobian(self, q: Numeric, t: Numeric = 0.0) -> Numeric:
        """G (m, nv): the rates of all rows are G v + a₀."""
        rows = self._rows_by_dof(q, t)
        return ops.array([[row.get(dof, 0.0) for dof in range(self.nv)] for row in rows]).reshape(len(rows), self.nv)

    def _rows_by_dof(self, q: Numeric, t: Numeric, active: Numeric | None = None) -> list[dict[int, Numeric]]:
        """The elements of G that are not 0, by independent dof; active: as in `constrained_dynamics`."""
        moving, _, _, _, rows = self.constraint_state(self.q_map.positions(q), np.zeros(self.nv_tree), t)
        if active is not None:
            rows = self.constraints.with_active(rows, active)
        return [self.v_map.project_elements(row) for row in rows_by_dof(self.sweeps, moving, rows, self.nv_tree)]

    def largest_jacobian(self, q: Numeric, t: Numeric = 0.0) -> np.ndarray:
        """(m, nv) bounds of |G| whatever the directions of joint axes are, see `largest_by_dof`."""
        moving, _, _, _, rows = self.constraint_state(self.q_map.positions(q), np.zeros(self.nv_tree), t)
        return largest_by_dof(self.sweeps, moving, rows, self.nv_tree) @ np.abs(self.v_map.matrix)

    @cached_property
    def closure(self) -> Closure:
        """The holonomic rows on numbers."""
        at_rest, members = np.zeros(self.nv_tree), self.constraints.members

        def evaluate(q: Numeric, t: Numeric) -> tuple[Numeric, list[Numeric]]:
            _, placed, residual, _, _ = self.constraint_state(self.q_map.positions(q), at_rest, t)
            return residual, [constraint.branch(placed) for constraint in members]

        return Closure(self, [constraint.holonomic for constraint in members], evaluate)

    def _solve(
        self,
        moving: list[AnyMotion],
        forces: list[AnyVector],
        root: SpatialVector,
        rows: list[ConstraintRow],
        *given: Numeric,
        efforts: Numeric = 0.0,
    ) -> Solution:
        """q̈, τ of the independent dofs and λ of all rows, 0 for redundant ones; given: q̈, τ, prescribed; efforts: of
        force laws on the dofs of the tree."""
        found = self._solve_tree(moving, forces, root, rows, *given, efforts=efforts)
        if not self.coupled_inertia.acts:
            return found
        nothing, still = np.zeros(self.nv), [motion.bias * 0.0 for motion in moving]
        moving = [motion._replace(bias=none) for motion, none in zip(moving, still, strict=True)]
        rows = [row._replace(bias=0.0) for row in rows]
        _, tau, prescribed = given
        units = self.coupled_inertia.directions.T
        responses = [self._solve_tree(moving, still, ZERO, rows, nothing, unit, prescribed) for unit in units]
        return self.coupled_inertia.joined(found, responses, tau, prescribed)

    def _solve_tree(
        self,
        moving: list[AnyMotion],
        forces: list[AnyVector],
        root: SpatialVector,
        rows: list[ConstraintRow],
        *given: Numeric,
        efforts: Numeric = 0.0,
    ) -> Solution:
        """`_solve` without rotors that turn with several joints."""
        qdd, tau, prescribed = given
        vectors = self.v_map.expand(qdd), self.v_map.embed(tau) + efforts, prescribed[self.v_map.leader]
        mimics, solved = self.v_map.rows(), self.constraints.solved
        levels = self.constraints.levels(self.tree, mimics)
        chosen = [*(rows[r] for r in solved), *mimics]
        found = solve_tree(self.sweeps, moving, forces, root, chosen, levels, *vectors)
        return Solution(
            found.acceleration[self.v_map.independent],
            ops.where(prescribed, self.v_map.project(found.effort - efforts), tau),
            ops.set_at(np.zeros(len(rows)), solved, found.multipliers[: len(solved)]),
            found.power,
        )

    def constrained_dynamics(
        self,
        q: Numeric,
        v: Numeric,
        qdd: Numeric,
        tau: Numeric,
        prescribed: Numeric,
        t: Numeric = 0.0,
        active: Numeric | None = None,
    ) -> Solution:
        """q̈, τ, λ as in `Model.hybrid_dynamics` and `Model.reactions`, and the power of time-dependent joints and
        laws.

        active: which constraints are active (1 or 0 each), by default all.
        """
        q_tree, v_tree = self.q_map.positions(q), self.v_map.expand(v)
        moving, placed, residual, rate, rows = self.constraint_state(q_tree, v_tree, t)
        rows = self.constraints.stabilised(rows, residual, rate)
        if active is not None:
            rows = self.constraints.with_active(rows, active)
        forces, efforts = self.constraints.forces(self.tree, moving, placed, q_tree, v_tree, t)
        root = SpatialVector(-self.gravity, REST)
        found = self._solve(moving, forces, root, rows, qdd, tau, prescribed, efforts=efforts)
        if not any(constraint.law.timed for constraint in self.constraints.members):
            return found
        _, at_rest = self.constraint_violation(q, np.zeros(len(v)), t)  # a₀ of G v + a₀ = 0
        return found._replace(power=found.power - found.multipliers @ at_rest)

    def impulse(
        self,
        q: Numeric,
        demand: Numeric,
        jump: Numeric,
        fixed: Numeric,
        t: Numeric = 0.0,
        active: Numeric | None = None,
        impulses: Numeric | None = None,
    ) -> Solution:
        """The impulse balance when the constraint rates must change by −demand (m,) and fixed dofs by `jump` (nv,);
        impulses (nv,): given ones on the other dofs.

        The fields of the result hold velocity changes Δv (nv,), impulses of the fixed dofs (nv,) and Λ (m,) in place
        of accelerations and forces: G Δv = −demand, M Δv = Gᵀ Λ + impulse. Finite forces have no effect.
        """
        moving, _, _, _, rows = self.constraint_state(self.q_map.positions(q), np.zeros(self.nv_tree), t)
        return self._impulse(moving, rows, demand, jump, fixed, active, impulses=impulses)

    def _impulse(
        self,
        moving: list[AnyMotion],
        rows: list[ConstraintRow],
        demand: Numeric,
        jump: Numeric,
        fixed: Numeric,
        active: Numeric | None,
        given: Mapping[int, SpatialVector] | None = None,
        impulses: Numeric | None = None,
    ) -> Solution:
        """See `impulse`; moving, rows: at any velocity; given: jumps of the relative velocity in joints, by body."""
        rows = [row._replace(bias=d) for row, d in zip(rows, demand, strict=True)]
        if active is not None:
            rows = self.constraints.with_active(rows, active)
        still = [motion.bias * 0.0 for motion in moving]
        given = given or {}
        jumps = [nothing + given[k] if k in given else nothing for k, nothing in enumerate(still)]
        moving = [motion._replace(bias=of_body) for motion, of_body in zip(moving, jumps, strict=True)]
        impulses = np.zeros(len(jump)) if impulses is None else impulses
        return self._solve(moving, still, ZERO, rows, jump, impulses, fixed)

    def impulse_of_jump(
        self,
        q: Numeric,
        v: Numeric,
        jump: Numeric,
        fixed: Numeric,
        times: tuple[Numeric, Numeric],
        active: Numeric | None = None,
        impulses: Numeric | None = None,
    ) -> Solution:
        """As `impulse`, when given functions of time jump between two times: the velocities of joints and the rates of
        constraints that depend on time, and those of fixed dofs by `jump` (nv,)."""
        before, after = times
        q_tree, v_tree = self.q_map.positions(q), self.v_map.expand(v)
        moving, placed = self.placements(q_tree, v_tree, before)
        # the bodies as they move before, the laws as they are afterwards
        _, rate, rows = self.constraints.rows(placed, q_tree, v_tree, self.gravity, after)
        later = dynamics.body_motions(self.sweeps, q_tree, v_tree, after)
        timed = [k for k, kind in enumerate(self.tree.kinds) if kind.timed]
        given = {k: later[k].drift - moving[k].drift for k in timed}
        return self._impulse(moving, rows, rate, jump, fixed, active, given, impulses)

    def project_onto_constraints(
        self, q: Numeric, v: Numeric, fixed: Numeric, t: Numeric = 0.0, active: Numeric | None = None
    ) -> tuple[Numeric, Numeric]:
        """(q, v) projected onto the constraints, orthogonally in the metric of M: one Newton step each.

        Quaternions get length 1. fixed: (nv,) dofs that do not change.
        """
        q = self.normalised(q)
        if not self.constraints.members:
            return q, v
        no_jump, holonomic = np.zeros(len(v)), self.constraints.holonomic
        v_tree = self.v_map.expand(v)
        moving, _, residual, _, rows = self.constraint_state(self.q_map.positions(q), v_tree, t)
        violation = ops.set_at(np.zeros(len(holonomic)), np.flatnonzero(holonomic), residual)
        q = self.integrate(q, self._impulse(moving, rows, violation, no_jump, fixed, active).acceleration)
        moving, _, _, rate, rows = self.constraint_state(self.q_map.positions(q), v_tree, t)
        return q, v + self._impulse(moving, rows, rate, no_jump, fixed, active).acceleration

    # --- dynamics ---

    def hybrid_dynamics(
        self, q: Numeric, v: Numeric, qdd: Numeric, tau: Numeric, prescribed: Numeric, t: Numeric = 0.0
    ) -> tuple[Numeric, Numeric]:
        """(q̈, τ): see `Model.hybrid_dynamics`."""
        if self.is_open_tree:
            if not ops.is_symbolic(prescribed) and np.all(prescribed):  # without articulated inertias
                return qdd, self.inverse_dynamics(q, v, qdd, t)
            own = self.constraints.efforts_on_dofs(q, v) if self.constraints.acts_on_dofs else None
            whole = tau if own is None else tau + own
            found = self._over_tree(dynamics.hybrid_dynamics, q, v, qdd, whole, prescribed, self.gravity, t=t)
            if self.coupled_inertia.acts:
                found = self._with_coupled_inertia(found, q, whole, prescribed, t)
            return found if own is None else (found[0], ops.where(prescribed, found[1] - own, tau))
        found = self.constrained_dynamics(q, v, qdd, tau, prescribed, t)
        return found.acceleration, found.effort

    def _with_coupled_inertia(
        self, free: tuple[Numeric, Numeric], q: Numeric, tau: Numeric, prescribed: Numeric, t: Numeric
    ) -> tuple[Numeric, Numeric]:
        """(q̈, τ) of an open tree, from those without the rotors that turn with several joints."""
        still, responses = np.zeros(self.nv), []
        for unit in self.coupled_inertia.directions.T:
            a, effort = self._over_tree(dynamics.hybrid_dynamics, q, still, still, unit, prescribed, REST, t=t)
            responses.append(Solution(a, effort, np.zeros(0), 0.0))
        found = self.coupled_inertia.joined(Solution(*free, np.zeros(0), 0.0), responses, tau, prescribed)
        return found.acceleration, found.effort

    def forward_dynamics(self, q: Numeric, v: Numeric, tau: Numeric, t: Numeric = 0.0) -> Numeric:
        """q̈ (nv,): see `Model.forward_dynamics`."""
        return self.hybrid_dynamics(q, v, np.zeros(self.nv), tau, np.zeros(self.nv, dtype=bool), t)[0]

    def reactions(self, q: Numeric, v: Numeric, tau: Numeric, t: Numeric = 0.0) -> Numeric:
        """λ (m,): see `Model.reactions`."""
        found = self.constrained_dynamics(q, v, np.zeros(self.nv), tau, np.zeros(self.nv, dtype=bool), t)
        return self.least_norm_reactions(q, found.multipliers, t)

    def least_norm_reactions(
        self, q: Numeric, multipliers: Numeric, t: Numeric = 0.0, active: Numeric | None = None
    ) -> Numeric:
        """The reactions λ (m,) with the same effect as the given ones, which are 0 for redundant rows, that have the
        least norm once they are in the units of their rows."""
        if not self.constraints.redundant:
            return multipliers
        if any(constraint.is_scaled for constraint in self.constraints.members):
            return self._least_norm_in_units(q, multipliers, t, active)
        holds = np.ones(len(multipliers)) if active is None else active[self.constraints.owners]
        rows = self._rows_by_dof(q, t, active)
        return least_norm(rows, self.constraints.redundant, multipliers, holds)

    def _least_norm_in_units(self, q: Numeric, multipliers: Numeric, t: Numeric, active: Numeric | None) -> Numeric:
        """The same, by rows of which each exerts 1 N or N m per λ: how a law is scaled then does not matter."""
        sizes = ops.concatenate(self.sizes_of_rows(q, t))
        sizes = ops.where(sizes > 0.0, sizes, 1.0)
        holds = np.ones(len(multipliers)) if active is None else active[self.constraints.owners]
        rows = [
            {dof: g / size for dof, g in row.items()}
            for row, size in zip(self._rows_by_dof(q, t, active), sizes, strict=True)
        ]
        return least_norm(rows, self.constraints.redundant, multipliers * sizes, holds) / sizes

    def sizes_of_rows(self, q: Numeric, t: Numeric = 0.0) -> list[Numeric]:
        """By constraint, of each row what λ = 1 exerts: see `BodyConstraint.sizes`."""
        q_tree, at_rest = self.q_map.positions(q), np.zeros(self.nv_tree)
        _, placed = self.placements(q_tree, at_rest, t)
        return [constraint.sizes(placed, q_tree, at_rest, t) for constraint in self.constraints.members]

    def wrenches_of_constraints(
        self, q: Numeric, v: Numeric, multipliers: Numeric, t: Numeric = 0.0
    ) -> list[ConstraintWrenches]:
        """What the reactions λ (m,) of all rows do, by constraint."""
        q_tree, v_tree = self.q_map.positions(q), self.v_map.expand(v)
        _, placed = self.placements(q_tree, v_tree, t)
        found, first = [], 0
        for constraint in self.constraints.members:
            own = multipliers[first : first + len(constraint.law.rows)]
            found.append(constraint.wrenches(placed, q_tree, v_tree, own, t))
            first += len(own)
        return found

    def wrenches_of_joints(
        self, q: Numeric, v: Numeric, qdd: Numeric, multipliers: Numeric, t: Numeric = 0.0, pushes: Numeric = ()
    ) -> list[SpatialVector]:
        """Of every joint of the tree, in the order of `tree.joints`: see `wrenches.transmitted`. qdd (nv,), λ (m,): of
        the state; pushes (3 k,): forces of the points of contact along their axes [N], none without contact."""
        q_tree, v_tree = self.q_map.positions(q), self.v_map.expand(v)
        moving, placed, _, _, rows = self.constraint_state(q_tree, v_tree, t)
        forces, _ = self.constraints.forces(self.tree, moving, placed, q_tree, v_tree, t)
        forces = with_reactions(forces, rows, multipliers)
        forces = with_contacts(forces, self.constraints.contacts, placed, pushes)
        return transmitted(self.sweeps, moving, forces, SpatialVector(-self.gravity, REST), self.v_map.expand(qdd))

    def constraint_wrenches(self, q: Numeric, v: Numeric, tau: Numeric, t: Numeric = 0.0) -> Numeric:
        """(k, 6): see `Model.constraint_wrenches`."""
        found = self.wrenches_of_constraints(q, v, self.reactions(q, v, tau, t), t)
        return _stacked([wrench for constraint in found for wrench in constraint.along_parent()])

    def joint_wrenches(self, q: Numeric, v: Numeric, tau: Numeric, t: Numeric = 0.0) -> Numeric:
        """(n, 6): see `Model.joint_wrenches`."""
        if not self.constraints.members:
            return _stacked(self.wrenches_of_joints(q, v, self.forward_dynamics(q, v, tau, t), np.zeros(0), t))
        found = self.constrained_dynamics(q, v, np.zeros(self.nv), tau, np.zeros(self.nv, dtype=bool), t)
        multipliers = self.least_norm_reactions(q, found.multipliers, t)
        return _stacked(self.wrenches_of_joints(q, v, found.acceleration, multipliers, t))

    def inverse_dynamics(self, q: Numeric, v: Numeric, qdd: Numeric, t: Numeric = 0.0) -> Numeric:
        """τ (nv,): see `Model.inverse_dynamics`."""
        vectors = self.q_map.positions(q), self.v_map.expand(v), self.v_map.expand(qdd)
        if not (self.constraints.springs or self.constraints.laws):
            tau = self._over_tree(dynamics.inverse_dynamics, *vectors, self.gravity, t=t)
            if self.constraints.acts_on_dofs:
                tau = tau - self.constraints.efforts_on_dofs(*vectors[:2])
        else:
            prescribed = np.ones(self.nv_tree, dtype=bool)
            moving, placed = self.placements(*vectors[:2], t)
            forces, efforts = self.constraints.forces(self.tree, moving, placed, *vectors[:2], t)
            root = SpatialVector(-self.gravity, REST)
            found = solve_tree(self.sweeps, moving, forces, root, [], [], vectors[2], vectors[2], prescribed)
            tau = found.effort - efforts
        return self._with_rotor_effort(self.v_map.project(tau), qdd)

    def inertia_effort(self, q: Numeric, qdd: Numeric) -> Numeric:
        """M(q) q̈ (nv,): inverse dynamics at rest and without gravity."""
        vectors = self.q_map.positions(q), np.zeros(self.nv_tree), self.v_map.expand(qdd)
        tau = self._over_tree(dynamics.inverse_dynamics, *vectors, REST)
        return self._with_rotor_effort(self.v_map.project(tau), qdd)

    def _with_rotor_effort(self, tau: Numeric, qdd: Numeric) -> Numeric:
        """τ (nv,) with what the rotors require that turn with several joints."""
        return tau + self.coupled_inertia.times(qdd) if self.coupled_inertia.acts else tau

    # --- friction and springs ---

    def friction_effort(self, v: Numeric, dry: Mapping[int, Numeric] | None = None) -> Numeric:
        """Damping and Coulomb friction of joints and rotors (nv,), along +v: d v + f v / √(v² + v_s²), and friction by
        a law.

        dry: dof -> dry friction of a law that depends on more than the velocity, in place of `sliding_effort`."""
        laws, own = self.friction_laws, dry or {}
        v_tree = self.v_map.expand(v)
        damping, coulomb = self._per_dof("damping"), self._per_dof("friction")
        if laws:
            coulomb = ops.set_at(coulomb, self.v_map.independent[list(laws)], [0.0] * len(laws))
        smooth = v_tree if _all_zero(coulomb) else ops.smooth_sign(v_tree, FRICTION_SPEED)
        of_tree = damping * v_tree + coulomb * smooth
        friction = self.v_map.project(of_tree + rotor_friction(self.tree, v_tree) if self.tree.rotors else of_tree)
        if not laws:
            return friction
        of_laws = [
            friction[k] + law.viscous * v[k] + (own[k] if k in own else law.sliding_effort(v[k]))
            for k, law in laws.items()
        ]
        return ops.set_at(friction, laws, of_laws)

    @cached_property
    def friction_laws(self) -> dict[int, JointFriction]:
        """Dof -> the law of its friction, where it has one."""
        pairs = zip(self.tree.joints, self.tree.kinds, strict=True)
        laws = [law for joint, kind in pairs for law in (joint.friction_laws or (None,) * kind.nv)]
        return {k: law for k, place in enumerate(self.v_map.independent) if (law := laws[place]) is not None}

    @property
    def has_springs(self) -> bool:
        """Whether there are springs, in joints or between bodies, or elastic links."""
        return bool(self.constraints.springs) or self.constraints.acts_on_dofs

    @cached_property
    def without_joint_springs(self) -> MechanismEquations:
        """The same mechanism without the springs in its joints, for methods that treat these apart."""
        return MechanismEquations(self.tree, self.gravity, replace(self.constraints, joint_springs=None))

    def joint_spring_effort(self, q: Numeric) -> Numeric:
        """Effort (nv,) that holds the springs in the joints, k (q − rest); `inverse_dynamics` contains it."""
        springs = self.constraints.joint_springs
        return np.zeros(self.nv) if springs is None else -self.v_map.project(springs.efforts(self.q_map.positions(q)))

    def elastic_energy(self, q: Numeric, t: Numeric = 0.0) -> Numeric:
        """Energy stored in all springs and in elastic links [J]."""
        q_tree, placed = self.q_map.positions(q), []
        if self.constraints.springs:
            _, placed = self.placements(q_tree, np.zeros(self.nv_tree), t)
        return self.constraints.stored_energy(placed, q_tree)

    def torsion_states(self, q: Numeric, v: Numeric, t: Numeric = 0.0) -> dict[str, TorsionState]:
        """By torsion spring, or by spherical joint with one in it."""
        q_tree, placed = self.q_map.positions(q), []
        if self.constraints.springs:
            _, placed = self.placements(q_tree, self.v_map.expand(v), t)
        return self.constraints.torsion_states(placed, q_tree)

    def potential_energy(self, q: Numeric, t: Numeric = 0.0) -> Numeric:
        gravity = self.gravity_energy(q, t)
        return gravity + self.elastic_energy(q, t) if self.has_springs else gravity

    def mechanical_energy(self, q: Numeric, v: Numeric, t: Numeric = 0.0) -> Numeric:
        return self.kinetic_energy(q, v, t) + self.potential_energy(q, t)

    def damper_loss(self, q: Numeric, v: Numeric, t: Numeric = 0.0) -> Numeric:
        """Power dissipated by the dampers between bodies and in elastic links [W]."""
        loss = ops.sum(link.loss(self.v_map.expand(v)) for link in self.constraints.elastic)
        if not self.constraints.springs:
            return loss
        _, placed = self.placements(self.q_map.positions(q), self.v_map.expand(v), t)
        return loss + ops.sum(spring.loss(placed) for spring in self.constraints.springs)

    def force_powers(self, q: Numeric, v: Numeric, t: Numeric = 0.0) -> dict[str, Numeric]:
        """Power of each force law on the mechanism [W]."""
        if not self.constraints.laws:
            return {}
        q_tree, v_tree = self.q_map.positions(q), self.v_map.expand(v)
        _, placed = self.placements(q_tree, v_tree, t)
        return {law.name: law.forces(placed, q_tree, v_tree, t)[2] for law in self.constraints.laws}

    def _per_dof(self, attribute: str) -> Numeric:
        """An attribute of the joints, repeated for each of their dofs."""
        pairs = zip(self.tree.joints, self.tree.kinds, strict=True)
        return ops.array([getattr(joint, attribute) for joint, kind in pairs for _ in range(kind.nv)])

    # --- energies and mass matrix ---

    def mass_matrix(self, q: Numeric, t: Numeric = 0.0) -> Numeric:
        full = kinematics.mass_matrix(self.sweeps, self.q_map.positions(q), self.nv_tree, t)
        full = full if self.v_map.trivial else self.v_map.matrix.T @ full @ self.v_map.matrix
        return full + self.coupled_inertia.matrix if self.coupled_inertia.acts else full

    def mass_diagonal(self, q: Numeric, t: Numeric = 0.0) -> Numeric:
        """The diagonal (nv,) of the mass matrix."""
        if not self.v_map.trivial:
            return np.diag(self.mass_matrix(q, t))
        diagonal = kinematics.mass_diagonal(self.sweeps, self.q_map.positions(q), self.nv_tree, t)
        return diagonal + np.diag(self.coupled_inertia.matrix) if self.coupled_inertia.acts else diagonal

    def kinetic_energy(self, q: Numeric, v: Numeric, t: Numeric = 0.0) -> Numeric:
        energy = self._over_tree(kinematics.kinetic_energy, self.q_map.positions(q), self.v_map.expand(v), t=t)
        return energy + 0.5 * (v @ self.coupled_inertia.times(v)) if self.coupled_inertia.acts else energy

    def gravity_energy(self, q: Numeric, t: Numeric = 0.0) -> Numeric:
        """Potential energy of gravity alone [J]."""
        return self._over_tree(kinematics.potential_energy, self.q_map.positions(q), self.gravity, t=t)

    # --- effort of gravity and velocities ---

    def nonlinear_effects(self, q: Numeric, v: Numeric, t: Numeric = 0.0) -> Numeric:
        return self.inverse_dynamics(q, v, np.zeros(self.nv), t)

    def gravity_effort(self, q: Numeric, t: Numeric = 0.0) -> Numeric:
        still = self.q_map.positions(q), np.zeros(self.nv_tree), np.zeros(self.nv_tree)
        effort = self._over_tree(dynamics.inverse_dynamics, *still, self.gravity, t=t)
        if any(kind.timed for kind in self.tree.kinds):  # less what the motion of the base requires
            effort = effort - self._over_tree(dynamics.inverse_dynamics, *still, REST, t=t)
        return self.v_map.project(effort)


def _stacked(wrenches: Sequence[SpatialVector]) -> Numeric:
    """(n, 6) force and moment of each."""
    return ops.array([[*w.linear, *w.angular] for w in wrenches]).reshape(len(wrenches), 6)


def _all_zero(values: Numeric) -> bool:
    return all(map(ops.is_zero, values))
