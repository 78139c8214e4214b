"""The equations of motion of a mechanism with contacts whose impulses come from outside, see `InwardSweep`.

In a step of length h at one configuration, with the impulses Λ (3 k,) of k points along their axes,

    u⁺ = G v + h (G v̇ + W Λ/h),    W = G M⁻¹ Gᵀ,

v̇ the change of the velocities along axes that stand still: what the turning of bodies and of axes adds to q̈ is taken
off (Moreau and Jean).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cosim.core import ops
from cosim.core.types import Numeric
from cosim.mechanics.multibody.bodies import AnyVector, transport
from cosim.mechanics.multibody.constrained_dynamics import GROUND, OPEN, ConstraintRow, InwardSweep, rows_by_dof
from cosim.mechanics.multibody.contact.gaps import PointOfContact
from cosim.mechanics.multibody.contact_set import SpreadRows
from cosim.mechanics.multibody.equations import REST, MechanismEquations
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
    _sweep: InwardSweep
    _spread: SpreadRows
    _given: GivenMotionAndEffort
    _efforts: Numeric  # of force laws and springs on the dofs of the tree

    @staticmethod
    def of(equations: MechanismEquations, state: MotionState, given: GivenMotionAndEffort) -> ContactDynamics:
        """The inward sweep of the equations of motion."""
        e, constraints = equations, equations.constraints
        t, q, v, active = state
        q_tree, v_tree = e.q_map.positions(q), e.v_map.expand(v)
        moving, placed, residual, rate, rows = e.constraint_state(q_tree, v_tree, t)
        rows = constraints.stabilised(rows, residual, rate)
        if active is not None:
            rows = constraints.with_active(rows, active)
        forces, efforts = constraints.forces(e.tree, moving, placed, q_tree, v_tree, t)
        root = SpatialVector(-e.gravity, REST)
        points = constraints.contacts.points(placed)
        spread = constraints.contacts.rows(placed, points)
        standing = e.v_map.expand(ops.where(given.prescribed, 0.0, e.transport(v)))
        kinematic = _accelerations(e, moving, root, standing)
        opened = [row._replace(bias=-_along(row, kinematic)) for row in spread.rows]
        mimics, solved = e.v_map.rows(), constraints.solved
        levels = [*constraints.levels(e.tree, mimics), *[OPEN] * len(opened)]
        chosen = [*(rows[r] for r in solved), *mimics, *opened]
        vectors = e.v_map.expand(given.qdd), e.v_map.embed(given.tau) + efforts, given.prescribed[e.v_map.leader]
        sweep = InwardSweep(e.sweeps, moving, forces, root, chosen, levels, vectors)
        S, m = spread.spread, len(opened)
        W = S @ ops.array(sweep.open_inertia).reshape(m, m) @ S.T
        return ContactDynamics(points, S @ ops.array(sweep.open_accelerations), W, e, sweep, spread, given, efforts)

    def motion(self, forces: Numeric) -> tuple[Numeric, Numeric]:
        """q̈ (nv,) with the forces (3 k,) of the points, and the efforts (nv,) as in `hybrid_dynamics`."""
        v_map, (_, tau, prescribed) = self._equations.v_map, self._given
        found = self._sweep.solution(dict(zip(self._sweep.open, self._spread.spread.T @ forces, strict=True)))
        effort = ops.where(prescribed, v_map.project(found.effort - self._efforts), tau)
        return found.acceleration[v_map.independent], effort


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
    e, contacts = equations, equations.constraints.contacts
    moving, placed = e.placements(e.q_map.positions(q), np.zeros(e.nv_tree), t)
    together: dict[int, SpatialVector] = {}
    for body, wrench in contacts.wrenches(placed, contacts.points(placed), forces):
        together[body] = together[body] + wrench if body in together else wrench
    (by_dof,) = rows_by_dof(e.sweeps, moving, [ConstraintRow(together, {}, 0.0)], e.nv_tree)
    return e.v_map.project(ops.array([by_dof.get(dof, 0.0) for dof in range(e.nv_tree)]))
