"""The laws of one mechanism as pure functions of numbers or symbols, in its independent coordinates.

Open trees go through the sweeps of `dynamics`, written out or as loops; what couples bodies besides (mimics,
loops, constraints) adds rows to the same sweeps (`constrained`), springs between bodies add forces.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from cosim import ops
from cosim.compile.rolled_sweeps import RolledRoutine
from cosim.multibody import dynamics, kinematics
from cosim.multibody.constrained_dynamics import ConstraintRow, Solution, constraint_jacobian, solve_tree
from cosim.multibody.constraint_set import ConstraintSet
from cosim.multibody.kinematics import Placement
from cosim.multibody.mechanism import Pose
from cosim.multibody.mimics import find_mimics
from cosim.multibody.spatial import Vector
from cosim.multibody.tree import Tree

# speed at which Coulomb friction has grown to 1/√2 of its value; below it joints creep instead of sticking
FRICTION_SPEED = 0.01

REST = np.zeros(3)

# from this many bodies on, sweeps are loops: straight-line code then compiles for seconds and outgrows caches
ROLLED_FROM = 48


class MechanismEquations:
    """Pure functions of one mechanism; arguments and results as in `Model`, for one state.

    t: time [s], of use only to joints and constraints that depend on it.
    """

    def __init__(self, tree: Tree, gravity: np.ndarray, ties: ConstraintSet) -> None:
        self.tree, self.gravity, self.ties = tree, gravity, ties
        self.sweeps = tree.sweeps
        self.at, self.moved = find_mimics(tree)
        self.nv_full = len(self.moved.leader)
        self._rolled: dict[Any, RolledRoutine] = {}

    @property
    def timed(self) -> bool:
        return any(k.timed for k in self.tree.kinds) or any(c.law.timed for c in self.ties.couplings)

    @property
    def open(self) -> bool:
        """Whether the joints of the tree are all there is, and none is moved by time."""
        moved = any(kind.timed for kind in self.tree.kinds)
        return self.moved.trivial and not self.ties.couplings and not self.ties.struts and not moved

    # --- sweeps over the tree ---

    @cached_property
    def rolled(self) -> bool:
        """Whether sweeps become loops: for many bodies whose joints are alike."""
        alike = len({(k.nq, k.nv) for k in self.tree.kinds}) == 1
        return len(self.tree.bodies) >= ROLLED_FROM and alike and self.open

    def _over_tree(self, algorithm: Callable[..., Any], *vectors: Any, t: Any = 0.0) -> Any:
        """An algorithm of `dynamics` or `kinematics`: written out, or as a loop when there are many bodies."""
        if not self.rolled or not any(map(ops.is_symbolic, vectors)):
            return algorithm(self.sweeps, *vectors, t=t)
        given = [v for v in vectors if ops.is_symbolic(v)]
        constants = [None if ops.is_symbolic(v) else np.asarray(v) for v in vectors]
        key = algorithm.__name__, tuple(None if c is None else c.tobytes() for c in constants)
        if key not in self._rolled:
            sizes = [(k.nq, k.nv) for k in self.tree.kinds]
            shapes = [np.shape(v) for v in given]
            self._rolled[key] = RolledRoutine(algorithm, self.sweeps, sizes, shapes, constants, algorithm.__name__)
        return self._rolled[key](*given)

    # --- constraints ---

    def _placed(self, q_all: Any, v_all: Any, t: Any) -> tuple[list[dynamics.BodyMotion], list[Placement]]:
        moving = dynamics.motions(self.sweeps, q_all, v_all, t)
        return moving, kinematics.placements(self.sweeps, moving)

    def _tied(self, q_all: Any, v_all: Any, t: Any) -> tuple[Any, Any, Any, Any, Any]:
        """(motions, placements, residual, rate, rows) of the tree with its couplings."""
        moving, placed = self._placed(q_all, v_all, t)
        return moving, placed, *self.ties.rows(placed, q_all, v_all, self.gravity, t)

    def constraints(self, q: Any, v: Any, t: Any = 0.0) -> tuple[Any, Any]:
        """(f of the holonomic rows, ḟ or a₀ + a·q̇ of all rows): both vanish when the constraints hold."""
        _, _, residual, rate, _ = self._tied(self.at.positions(q), self.moved.spread(v), t)
        return residual, rate

    def constraint_jacobian(self, q: Any, t: Any = 0.0) -> Any:
        """G (m, nv): the rates of all rows are G v + a₀."""
        moving, _, _, _, rows = self._tied(self.at.positions(q), np.zeros(self.nv_full), t)
        full = constraint_jacobian(self.sweeps, moving, rows, self.nv_full)
        return full if self.moved.trivial else ops.array([self.moved.gathered(row) for row in full])

    def _solve(self, moving: Any, forces: Any, root: Vector, rows: list[ConstraintRow], *given: Any) -> Solution:
        """q̈, τ of the independent dofs and λ of all rows of couplings, 0 for redundant ones; given: q̈, τ, held."""
        qdd, tau, held = given
        vectors = self.moved.spread(qdd), self.moved.placed(tau), held[self.moved.leader]
        mimics, solved = self.moved.rows(), self.ties.solved
        levels = self.ties.levels(self.tree, mimics)
        chosen = [*(rows[r] for r in solved), *mimics]
        found = solve_tree(self.sweeps, moving, forces, root, chosen, levels, *vectors)
        return Solution(
            found.acceleration[self.moved.own],
            ops.where(held, self.moved.gathered(found.effort), tau),
            ops.placed(np.zeros(len(rows)), solved, found.multipliers[: len(solved)]),
            found.power,
        )

    def constrained_dynamics(
        self, q: Any, v: Any, qdd: Any, tau: Any, prescribed: Any, t: Any = 0.0, active: Any = None
    ) -> Solution:
        """q̈, τ, λ: see `Model.hybrid_dynamics` and `Model.reactions`, and the power that what time moves puts in.
        active: which couplings hold (1 or 0 each), by default all."""
        moving, placed, residual, rate, rows = self._tied(self.at.positions(q), self.moved.spread(v), t)
        rows = self.ties.steadied(rows, residual, rate)
        if active is not None:
            rows = self.ties.switched(rows, active)
        forces = self.ties.forces(self.tree, moving, placed)
        found = self._solve(moving, forces, Vector(-self.gravity, REST), rows, qdd, tau, prescribed)
        if not any(coupling.law.timed for coupling in self.ties.couplings):
            return found
        _, alone = self.constraints(q, np.zeros(len(v)), t)  # a₀ of G v + a₀ = 0
        return found._replace(power=found.power - found.multipliers @ alone)

    def impulse(self, q: Any, demand: Any, jump: Any, held: Any, t: Any = 0.0, active: Any = None) -> Solution:
        """What happens at once when the rates of the constraints are to change by −demand (m,) and held dofs by
        `jump` (nv,): changes of velocity Δv (nv,), impulses of the held dofs (nv,), Λ (m,), in place of accelerations
        and forces: G Δv = −demand, M Δv = Gᵀ Λ + impulse (theory §6, impulse balance). Nothing else acts in no time.
        """
        moving, _, _, _, rows = self._tied(self.at.positions(q), np.zeros(self.nv_full), t)
        rows = [row._replace(bias=d) for row, d in zip(rows, demand, strict=True)]
        if active is not None:
            rows = self.ties.switched(rows, active)
        still = Vector(REST, REST)
        moving = [motion._replace(bias=still) for motion in moving]
        return self._solve(moving, [still] * len(moving), still, rows, jump, np.zeros(len(jump)), held)

    def settled(self, q: Any, v: Any, held: Any, t: Any = 0.0, active: Any = None) -> tuple[Any, Any]:
        """(q, v) moved onto the constraints by the shortest way that inertia gives: one step of Newton each.

        Quaternions get length 1. held: (nv,) dofs that stay.
        """
        q = self.normalised(q)
        if not self.ties.couplings:
            return q, v
        nothing = np.zeros(len(v))
        residual, _ = self.constraints(q, v, t)
        gap = ops.placed(np.zeros(len(self.ties.holonomic)), np.flatnonzero(self.ties.holonomic), residual)
        q = self.integrate(q, self.impulse(q, gap, nothing, held, t, active).acceleration)
        _, rate = self.constraints(q, v, t)
        return q, v + self.impulse(q, rate, nothing, held, t, active).acceleration

    # --- dynamics ---

    def hybrid_dynamics(self, q: Any, v: Any, qdd: Any, tau: Any, prescribed: Any, t: Any = 0.0) -> tuple[Any, Any]:
        """(q̈, τ): see `Model.hybrid_dynamics`."""
        if self.open:
            return self._over_tree(dynamics.hybrid_dynamics, q, v, qdd, tau, prescribed, self.gravity, t=t)
        found = self.constrained_dynamics(q, v, qdd, tau, prescribed, t)
        return found.acceleration, found.effort

    def forward_dynamics(self, q: Any, v: Any, tau: Any, t: Any = 0.0) -> Any:
        free = np.zeros(len(self.moved.own), dtype=bool)
        return self.hybrid_dynamics(q, v, np.zeros(len(free)), tau, free, t)[0]

    def reactions(self, q: Any, v: Any, tau: Any, t: Any = 0.0) -> Any:
        free = np.zeros(len(self.moved.own), dtype=bool)
        found = self.constrained_dynamics(q, v, np.zeros(len(free)), tau, free, t)
        return self.shared(q, found.multipliers, t)

    def shared(self, q: Any, factors: Any, t: Any = 0.0, active: Any = None) -> Any:
        """The reactions λ (m,) of least norm that do the same as the given ones, in which redundant rows have none.

        With G_d = B G_i the efforts of λ_i are those of λ_i − Bᵀ λ_d and λ_d for any λ_d.
        """
        redundant, solved = list(self.ties.redundant), self.ties.solved
        if not redundant:
            return factors
        holds = np.ones(len(factors)) if active is None else active[self.ties.owners]
        G = self.constraint_jacobian(q, t) * holds[:, None]
        independent, dependent, given = G[solved], G[redundant], factors[solved]
        # rows that are released shall take no part, and leave the matrix regular
        normal = independent @ independent.T + ops.array(np.diag(1.0 - holds[solved]))
        B = ops.solve(normal, independent @ dependent.T).T
        share = ops.solve(np.eye(len(redundant)) + B @ B.T, B @ given)
        return ops.placed(ops.placed(factors, solved, given - B.T @ share), redundant, share)

    def inverse_dynamics(self, q: Any, v: Any, qdd: Any, t: Any = 0.0) -> Any:
        vectors = self.at.positions(q), self.moved.spread(v), self.moved.spread(qdd)
        if not self.ties.struts:
            tau = self._over_tree(dynamics.inverse_dynamics, *vectors, self.gravity, t=t)
        else:
            held = np.ones(self.nv_full, dtype=bool)
            moving, placed = self._placed(*vectors[:2], t)
            forces, root = self.ties.forces(self.tree, moving, placed), Vector(-self.gravity, REST)
            tau = solve_tree(self.sweeps, moving, forces, root, [], [], vectors[2], vectors[2], held).effort
        return self.moved.gathered(tau)

    def inertia_effort(self, q: Any, qdd: Any) -> Any:
        """M(q) q̈: inverse dynamics at rest and without gravity."""
        vectors = self.at.positions(q), np.zeros(self.nv_full), self.moved.spread(qdd)
        return self.moved.gathered(self._over_tree(dynamics.inverse_dynamics, *vectors, REST))

    # --- what acts in the joints themselves ---

    def friction_effort(self, v: Any) -> Any:
        """What damping and Coulomb friction take, (nv,), along +v: d v + f v / √(v² + v_s²)."""
        v = self.moved.spread(v)
        damping, coulomb = self._per_dof("damping"), self._per_dof("friction")
        smooth = ops.smooth_sign(v, FRICTION_SPEED) if coulomb.any() else v
        return self.moved.gathered(damping * v + coulomb * smooth)

    def spring_effort(self, q: Any) -> Any:
        """What the springs in the joints take, (nv,), along +v: k (q − rest)."""
        stiffness = self._per_dof("stiffness")
        return self.moved.gathered(stiffness * self._stretch(q)) if stiffness.any() else np.zeros(len(self.moved.own))

    @property
    def sprung(self) -> bool:
        """Whether there are springs, in joints or between bodies."""
        return bool(self._per_dof("stiffness").any()) or bool(self.ties.struts)

    def spring_energy(self, q: Any, t: Any = 0.0) -> Any:
        """What all springs hold [J]."""
        energy: Any = 0.0
        stiffness = self._per_dof("stiffness")
        if stiffness.any():
            twist = self._stretch(q)
            energy = 0.5 * (twist @ (stiffness * twist))
        if self.ties.struts:
            _, placed = self._placed(self.at.positions(q), np.zeros(self.nv_full), t)
            energy = energy + ops.total(strut.energy(placed) for strut in self.ties.struts)
        return energy

    def damper_loss(self, q: Any, v: Any, t: Any = 0.0) -> Any:
        """What the dampers between bodies take [W]."""
        if not self.ties.struts:
            return 0.0
        _, placed = self._placed(self.at.positions(q), self.moved.spread(v), t)
        return ops.total(strut.loss(placed) for strut in self.ties.struts)

    def _per_dof(self, what: str) -> np.ndarray:
        """A property of the joints on each of their dofs."""
        pairs = zip(self.tree.joints, self.tree.kinds, strict=True)
        return np.array([getattr(joint, what) for joint, kind in pairs for _ in range(kind.nv)], dtype=float)

    def _stretch(self, q: Any) -> Any:
        """How far the dofs of all joints are from where their springs rest."""
        q_all, start, parts = self.at.positions(q), 0, []
        for kind in self.tree.kinds:
            parts.append(kind.space.chart(q_all[start : start + kind.nq]))
            start += kind.nq
        return ops.concatenate(parts) - self._per_dof("rest")

    # --- coordinates ---

    def rate(self, q: Any, v: Any) -> Any:
        """q̇ (nq,)"""
        return self._by_joint("rate", q, v)

    def integrate(self, q: Any, d: Any) -> Any:
        return self._by_joint("integrate", q, d)

    def difference(self, q0: Any, q1: Any) -> Any:
        parts, start = [], 0
        for kind in self.own_kinds:
            place = slice(start, start := start + kind.nq)
            parts.append(kind.space.difference(q0[place], q1[place]))
        return ops.concatenate(parts)

    def chart(self, q: Any) -> Any:
        """(nv,) positions of the dofs: the coordinates, of a rotation its rotation vector."""
        return self._each("chart", q)

    def coordinates(self, chart: Any) -> Any:
        """q (nq,) of positions of the dofs (nv,), as `chart` gives them and encoders measure them."""
        parts, start = [], 0
        for kind in self.own_kinds:
            parts.append(kind.space.of_chart(chart[start : start + kind.nv]))
            start += kind.nv
        return ops.concatenate(parts)

    def normalised(self, q: Any) -> Any:
        """q with quaternions of length 1."""
        return self._each("normalised", q)

    def _each(self, what: str, q: Any) -> Any:
        parts, start = [], 0
        for kind in self.own_kinds:
            parts.append(getattr(kind.space, what)(q[start : start + kind.nq]))
            start += kind.nq
        return ops.concatenate(parts)

    def _by_joint(self, what: str, q: Any, v: Any) -> Any:
        parts, nq, nv = [], 0, 0
        for kind in self.own_kinds:
            parts.append(getattr(kind.space, what)(q[nq : nq + kind.nq], v[nv : nv + kind.nv]))
            nq, nv = nq + kind.nq, nv + kind.nv
        return ops.concatenate(parts)

    @cached_property
    def own_kinds(self) -> list[Any]:
        """The kinds of the joints that move on their own."""
        pairs = zip(self.tree.joints, self.tree.kinds, strict=True)
        return [kind for joint, kind in pairs if joint.mimic is None]

    # --- energies, mass matrix and frames ---

    def mass_matrix(self, q: Any, t: Any = 0.0) -> Any:
        full = kinematics.mass_matrix(self.sweeps, self.at.positions(q), self.nv_full, t)
        return full if self.moved.trivial else self.moved.matrix.T @ full @ self.moved.matrix

    def kinetic_energy(self, q: Any, v: Any, t: Any = 0.0) -> Any:
        return self._over_tree(kinematics.kinetic_energy, self.at.positions(q), self.moved.spread(v), t=t)

    def potential_energy(self, q: Any, t: Any = 0.0) -> Any:
        return self._over_tree(kinematics.potential_energy, self.at.positions(q), self.gravity, t=t)

    def frame_pose(self, q: Any, body: int, frame: Pose, t: Any = 0.0) -> Any:
        return kinematics.frame_pose(self.sweeps, self.at.positions(q), body, frame, t)

    def given_poses(self, q: Any, t: Any) -> dict[str, dict[str, Any]]:
        """Where the bodies are that time alone moves, by joint: x, y, z [m], roll, pitch, yaw [rad] in ground axes."""
        found = {}
        for k, (joint, kind) in enumerate(zip(self.tree.joints, self.tree.kinds, strict=True)):
            if kind.timed and not kind.nv:
                pose = self.frame_pose(q, k, Pose.identity(), t)
                (a, b, c), tip = pose[:3, 0], pose[2, 1:3]
                turns = ops.atan2(tip[0], tip[1]), ops.atan2(-c, ops.sqrt(a * a + b * b)), ops.atan2(b, a)
                names = ("x", "y", "z", "roll", "pitch", "yaw")
                found[joint.name] = dict(zip(names, (*pose[:3, 3], *turns), strict=True))
        return found

    def frame_jacobian(self, q: Any, body: int, frame: Pose, t: Any = 0.0) -> Any:
        full = kinematics.frame_jacobian(self.sweeps, self.at.positions(q), self.nv_full, body, frame, t)
        return full if self.moved.trivial else ops.array([self.moved.gathered(row) for row in full])
