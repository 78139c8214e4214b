"""The equations of motion of a mechanism with contacts whose impulses come from outside, see `InwardSweep`.

In a step of length h at one configuration, with the impulses Λ (3 k,) of k points along their axes,

    u⁺ = G v + h (G v̇ + W Λ/h),    W = G M⁻¹ Gᵀ,

v̇ the change of the velocities along axes that stand still: what the turning of bodies and of axes adds to q̈ is taken
off (Moreau and Jean).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cosim.core import ops
from cosim.core.types import Numeric
from cosim.mechanics.multibody.bodies import AnyVector, transport
from cosim.mechanics.multibody.constrained_dynamics import (
    GROUND,
    OPEN,
    ConstraintRow,
    InwardSweep,
    Solution,
    rows_by_dof,
)
from cosim.mechanics.multibody.contact.cone import NORMAL
from cosim.mechanics.multibody.contact.gaps import PointOfContact
from cosim.mechanics.multibody.contact.near_contacts import NearContacts
from cosim.mechanics.multibody.coupled_inertia import CoupledInertia
from cosim.mechanics.multibody.equations import REST, ZERO, MechanismEquations
from cosim.mechanics.multibody.kinematics import Placement
from cosim.mechanics.multibody.spatial import SpatialVector


class GivenMotionAndEffort(NamedTuple):
    """q̈ of prescribed dofs, τ of the others, and which are prescribed, (nv,) each."""

    qdd: Numeric
    tau: Numeric
    prescribed: Numeric


class MotionState(NamedTuple):
    """t [s], q (nq,), v (nv,), and 1 for each constraint that is active (None: all)."""

    t: Numeric
    q: Numeric
    v: Numeric
    active: Numeric | None = None


@dataclass(frozen=True)
class ContactDynamics:
    """The motion in one state, before the impulses of contacts are known."""

    points: list[PointOfContact]
    free_change: Numeric  # (3 k,) G v̇ without impulses [m/s²]
    inertia: Numeric  # W (3 k, 3 k) [1/kg]
    _equations: MechanismEquations
    _rows: _OpenRows
    _spread: Numeric  # (3 k, rows)
    _given: GivenMotionAndEffort
    _efforts: Numeric  # of force laws and springs on the dofs of the tree
    _rates: Numeric  # a₀ of constraints that depend on time, as in `MechanismEquations.constrained_dynamics`

    @staticmethod
    def of(
        equations: MechanismEquations,
        state: MotionState,
        given: GivenMotionAndEffort,
        near: NearContacts | None = None,
        standing: bool = True,
    ) -> ContactDynamics:
        """The inward sweep of the equations of motion. near: the contacts that may touch, None: all; standing: whether
        the free change is along axes that stand still, else it is G q̈."""
        e, constraints = equations, equations.constraints
        t, q, v, active = state
        q_tree, v_tree = e.q_map.positions(q), e.v_map.expand(v)
        moving, placed, residual, rate, rows = e.constraint_state(q_tree, v_tree, t)
        rows = constraints.stabilised(rows, residual, rate)
        if active is not None:
            rows = constraints.with_active(rows, active)
        forces, efforts = constraints.forces(e.tree, moving, placed, q_tree, v_tree, t)
        root = SpatialVector(-e.gravity, REST)
        points = constraints.contacts.points(placed, near)
        spread = constraints.contacts.rows(placed, points)
        turning = e.transport(v) if standing else np.zeros(len(v))
        kinematic = _accelerations(e, moving, root, e.v_map.expand(ops.where(given.prescribed, 0.0, turning)))
        opened = [row._replace(bias=-_along(row, kinematic)) for row in spread.rows]
        reduced = _reduced(e, moving, forces, root, [rows, opened], given, efforts)
        timed = any(constraint.law.timed for constraint in constraints.members)
        rates = e.constraint_violation(q, np.zeros(len(v)), t)[1] if timed else np.zeros(len(constraints.holonomic))
        W, S = constraints.contacts.responses(spread, reduced.inertia, near), spread.spread
        return ContactDynamics(points, S @ reduced.free, W, e, reduced, S, given, efforts, rates)

    @staticmethod
    def of_impulses(
        equations: MechanismEquations,
        state: MotionState,
        demand: Numeric,
        jump: Numeric,
        fixed: Numeric,
        stops: Sequence[tuple[int, float]] = (),
    ) -> ContactDynamics:
        """The same for impulses: velocity changes in place of accelerations, as in `MechanismEquations.impulse` with
        its demand (m,), jump and fixed (nv,). Behind the points come the stops of joints as contacts of one row, their
        normal: (dof, side: +1 at an upper bound)."""
        e, constraints = equations, equations.constraints
        t, q, v, active = state
        moving, placed, _, _, rows = e.constraint_state(e.q_map.positions(q), np.zeros(e.nv_tree), t)
        rows = [row._replace(bias=d) for row, d in zip(rows, demand, strict=True)]
        if active is not None:
            rows = constraints.with_active(rows, active)
        still = [motion.bias * 0.0 for motion in moving]
        moving = [motion._replace(bias=nothing) for motion, nothing in zip(moving, still, strict=True)]
        points = constraints.contacts.points(placed)
        spread = constraints.contacts.rows(placed, points)
        of_stops = [ConstraintRow({}, {int(e.v_map.independent[dof]): -side}, 0.0) for dof, side in stops]
        given, nothing = GivenMotionAndEffort(jump, np.zeros(len(v)), fixed), np.zeros(e.nv_tree)
        reduced = _reduced(e, moving, still, ZERO, [rows, [*spread.rows, *of_stops]], given, nothing)
        S, n = spread.spread, constraints.contacts.rows_of_point
        if stops:
            own = np.zeros((n * len(stops), len(stops)))
            own[NORMAL::n] = np.eye(len(stops))
            beside = np.zeros((len(S), len(stops))), np.zeros((len(own), len(spread.rows)))
            S = ops.array([*([*a, *b] for a, b in zip(S, beside[0], strict=True)), *np.hstack((beside[1], own))])
        none, W = np.zeros(len(constraints.holonomic)), S @ reduced.inertia @ S.T
        return ContactDynamics(points, S @ reduced.free, W, e, reduced, S, given, nothing, none)

    def motion(self, forces: Numeric) -> Solution:
        """As `MechanismEquations.constrained_dynamics`, with the forces (3 k,) of the points."""
        e, (_, tau, prescribed) = self._equations, self._given
        found, solved = self._rows.solution(self._spread.T @ forces), e.constraints.solved
        none = np.zeros(len(e.constraints.holonomic))
        multipliers = ops.set_at(none, solved, found.multipliers[: len(solved)])
        return Solution(
            found.acceleration[e.v_map.independent],
            ops.where(prescribed, e.v_map.project(found.effort - self._efforts), tau),
            multipliers,
            found.power - multipliers @ self._rates,
        )


class _OpenRows(NamedTuple):
    """The open rows of a sweep without the rows of rotors that turn with several joints. A rotor exerts −K x along its
    row, x the acceleration of the row."""

    sweep: InwardSweep
    inertia: Numeric  # W (m, m)
    free: Numeric  # (m,) accelerations without multipliers
    of_rotors: Numeric  # (rotors, m + 1) their multipliers by those of the other rows, and without these

    @staticmethod
    def of(sweep: InwardSweep, K: Numeric) -> _OpenRows:
        """K (rotors, rotors): the inertia of the rotors; their rows are the last ones."""
        n, rotors = len(sweep.open), len(K)
        m = n - rotors
        W, free = ops.array(sweep.open_inertia).reshape(n, n), ops.array(sweep.open_accelerations)
        if not rotors:
            return _OpenRows(sweep, W, free, np.zeros((0, m + 1)))
        given = [W[m:, k] for k in range(m)] + [free[m:]]
        x = [ops.solve(np.eye(rotors) + W[m:, m:] @ K, column) for column in given]
        taken = -(K @ ops.array(x).T)
        return _OpenRows(sweep, W[:m, :m] + W[:m, m:] @ taken[:, :m], free[:m] + W[:m, m:] @ taken[:, m], taken)

    def solution(self, multipliers: Numeric) -> Solution:
        of_rotors = self.of_rotors[:, :-1] @ multipliers + self.of_rotors[:, -1]
        return self.sweep.solution(dict(zip(self.sweep.open, [*multipliers, *of_rotors], strict=True)))


def _reduced(
    e: MechanismEquations,
    moving: Sequence[AnyVector],
    forces: Sequence[AnyVector],
    root: SpatialVector,
    rows: Sequence[Sequence[ConstraintRow]],
    given: GivenMotionAndEffort,
    efforts: Numeric,
) -> _OpenRows:
    """rows: of the constraints, and those that are left open."""
    of_constraints, opened = rows
    rotors = CoupledInertia.of_rotors(e.tree)
    turning = [ConstraintRow({}, dict(enumerate(c)), 0.0) for c in rotors.directions.T]
    mimics = e.v_map.rows()
    levels = [*e.constraints.levels(e.tree, mimics), *[OPEN] * (len(opened) + len(turning))]
    chosen = [*(of_constraints[r] for r in e.constraints.solved), *mimics, *opened, *turning]
    vectors = e.v_map.expand(given.qdd), e.v_map.embed(given.tau) + efforts, given.prescribed[e.v_map.leader]
    return _OpenRows.of(InwardSweep(e.sweeps, moving, forces, root, chosen, levels, vectors), rotors.inertia)


def _accelerations(
    e: MechanismEquations, moving: Sequence[AnyVector], root: SpatialVector, qdd: Numeric
) -> list[AnyVector]:
    """Of every body, with these accelerations of the dofs of the tree."""
    found: list[AnyVector] = []
    for k, (motion, own) in enumerate(zip(moving, e.sweeps.by_v(qdd), strict=True)):
        above = root if e.sweeps.parents[k] == GROUND else found[e.sweeps.parents[k]]
        a = transport(e.sweeps.bodies[k], motion, above) + motion.bias
        for s, x in zip(motion.hinge, own, strict=True):
            a = a + s * x
        found.append(a)
    return found


def _along(row: ConstraintRow, accelerations: Sequence[AnyVector]) -> Numeric:
    return ops.sum(wrench.dot(accelerations[body]) for body, wrench in row.wrenches.items())


def contact_efforts(equations: MechanismEquations, q: Numeric, forces: Numeric, t: Numeric = 0.0) -> Numeric:
    """Gᵀ f (nv,): efforts on the dofs of the forces (3 k,) of the points [N]."""
    contacts = equations.constraints.contacts
    return _efforts(equations, q, t, lambda placed: contacts.wrenches(placed, contacts.points(placed), forces))


def measured_efforts(equations: MechanismEquations, q: Numeric, wrenches: Numeric) -> Numeric:
    """(nv,) the same of measured contacts: of each force (3,) [N] on its first shape, and its moment (3,) about the
    origin of the ground [N m], in ground axes (m, 6)."""
    contacts = equations.constraints.contacts
    return _efforts(equations, q, 0.0, lambda placed: contacts.of_ground_wrenches(placed, wrenches))


def _efforts(
    e: MechanismEquations,
    q: Numeric,
    t: Numeric,
    of_bodies: Callable[[Sequence[Placement]], Sequence[tuple[int, SpatialVector]]],
) -> Numeric:
    """(nv,) efforts on the dofs of wrenches on bodies, each at the origin of its body along its axes."""
    moving, placed = e.placements(e.q_map.positions(q), np.zeros(e.nv_tree), t)
    together: dict[int, SpatialVector] = {}
    for body, wrench in of_bodies(placed):
        together[body] = together[body] + wrench if body in together else wrench
    (by_dof,) = rows_by_dof(e.sweeps, moving, [ConstraintRow(together, {}, 0.0)], e.nv_tree)
    return e.v_map.project(ops.array([by_dof.get(dof, 0.0) for dof in range(e.nv_tree)]))
