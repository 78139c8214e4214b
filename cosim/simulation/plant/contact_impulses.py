"""The impulses of a step: the law of every contact in the velocities that they leave, solved, and what it leaves in the
state of the contacts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from cosim.core import ops
from cosim.core.compile.routine import Routine, call_when
from cosim.core.types import Numeric, State
from cosim.mechanics.multibody.contact.cone import DISKS, NORMAL, miss
from cosim.mechanics.multibody.contact.contact_problem import is_closed
from cosim.mechanics.multibody.contact.contact_solver import ContactSolver
from cosim.mechanics.multibody.contact.law_rows import PROXIMAL, SOFT, PointState, PointTerms, point_terms, spring_after
from cosim.mechanics.multibody.contact_dynamics import ContactDynamics
from cosim.mechanics.multibody.contact_set import ContactSet
from cosim.simulation.plant.contact_state import UNCONVERGED, UNSOLVED

SLIP_SPEED = 1e-8  # m/s, of a point that slides


class SolvedContacts(NamedTuple):
    """state: of the contacts after the step, without what is counted in them; slip (size,): velocities that the law
    holds of [m/s]; taken (m,): energy that each contact takes [J]; continues: 0 where a point touches first."""

    state: State
    slip: Numeric
    taken: Numeric
    continues: Numeric

    @property
    def forces(self) -> Numeric:
        """(size,) mean forces of the step [N] and moments [N m]."""
        return self.state["force"]


@dataclass(frozen=True)
class ContactImpulses:
    """compiled: whether the parts are compiled as routines."""

    contacts: ContactSet
    compiled: bool

    def solved(self, dynamics: ContactDynamics, before: Numeric, state: State, h: Numeric) -> SolvedContacts:
        """before (size,): velocities of the points before the step; state: of the contacts then."""
        free = before + h * dynamics.free_change
        terms = self._terms(dynamics, before, free, state, h)
        compliance = ops.concatenate([of.compliance for of in terms])
        W = dynamics.inertia + np.eye(self.contacts.size) * compliance
        shifted = free + ops.concatenate([of.shift for of in terms])
        friction, known = self._friction(terms), h * state["force"]
        if self._anchored.any():
            known = self._known_impulses(W, shifted, friction, known, compliance)
            shifted = shifted - ops.where(self._anchored, compliance * known, 0.0)
        impulses, passes, residual, _ = self._solver(W, shifted, friction, known)
        forces = impulses / h
        after = free + dynamics.inertia @ impulses
        slip = shifted + W @ impulses
        ended = self._state(terms, forces, slip, state) | {"passes": passes, "residual": residual}
        unsolved = ops.logical_not(residual <= UNSOLVED)
        ended["unsolved"] = ops.where(unsolved, state["unsolved"] + 1.0, 0.0)
        coarse, mobility = ops.logical_not(residual <= UNCONVERGED), np.diag(W)
        none = np.zeros(len(self.contacts.members))
        ended["miss"] = call_when(coarse, self._misses, (impulses, slip, friction, mobility), [none])
        work, at = impulses * (before + after), self.contacts.at
        taken = [-0.5 * ops.sum(ops.sum(work[at(j)]) for j in own) for _, own in self.contacts.by_contact]
        return SolvedContacts(ended, slip, ops.array(taken), self._continues(forces, state["force"]))

    def _continues(self, forces: Numeric, before: Numeric) -> Numeric:
        """Points that touch first change velocities in no time: their change is no prediction of the next step."""
        now, then = self.contacts.normals(forces), self.contacts.normals(before)
        first = ops.sum(ops.where(ops.logical_and(now > 0.0, then <= 0.0), 1.0, 0.0)) > 0.5
        return ops.where(first, 0.0, 1.0)

    @cached_property
    def _solver(self) -> ContactSolver:
        return ContactSolver(len(self.contacts.of_points), rows=self.contacts.rows_of_point)

    @cached_property
    def _misses(self) -> Callable[..., Numeric]:
        """(m,) how far each contact is from its law [m/s], from impulses, velocities, friction and diagonal of W."""
        n, k = self.contacts.size, len(self.contacts.of_points)
        disks = (k,) if self._disks == 1 else (k, self._disks)
        return Routine(self._missed, [(n,), (n,), disks, (n,)], "misses") if self.compiled else self._missed

    def _missed(self, impulses: Numeric, velocities: Numeric, friction: Numeric, mobility: Numeric) -> Numeric:
        found = []
        for _, own in self.contacts.by_contact:
            worst: Numeric = 0.0
            for j in own:
                rows = self.contacts.at(j)
                impulse, velocity = impulses[rows], velocities[rows]
                missed = miss(impulse, velocity, friction.reshape(-1, self._disks)[j], mobility[rows])
                worst = ops.maximum(worst, ops.where(is_closed(impulse, velocity) > 0.5, missed, 0.0))
            found.append(worst)
        return ops.array(found)

    @property
    def _disks(self) -> int:
        """The number of disks of friction of each point."""
        return len(DISKS[self.contacts.rows_of_point])

    def _friction(self, terms: list[PointTerms]) -> Numeric:
        """(k,) or (k, disks) coefficients of friction: of sliding, and of spinning and rolling [m]."""
        laws = [contact.law for contact in self.contacts.of_points]
        pairs = zip(terms, laws, strict=True)
        found = [[of.friction, law.torsional, law.rolling][: self._disks] for of, law in pairs]
        return ops.array(found) if self._disks > 1 else ops.array([each for (each,) in found])

    @cached_property
    def _anchored(self) -> np.ndarray:
        """bool (size,): rows whose impulse is next to a known one: of rigid points, and moments."""
        rows = self.contacts.rows_of_point
        return np.array([rigid or row > NORMAL for rigid in self._rigid for row in range(rows)], dtype=bool)

    @cached_property
    def _rigid(self) -> np.ndarray:
        """bool (k,)"""
        return np.array([contact.law.stiffness is None for contact in self.contacts.of_points], dtype=bool)

    def _known_impulses(
        self, W: Numeric, c: Numeric, friction: Numeric, before: Numeric, compliance: Numeric
    ) -> Numeric:
        """(size,) next to which impulses of rigid points are searched, see `law_rows`."""
        if not self._rigid.any():
            return before
        normals = [self.contacts.at(j).start + NORMAL for j in np.flatnonzero(self._rigid).tolist()]
        touches = [ops.logical_and(c[n] < 0.0, before[n] <= 0.0) for n in normals]
        first = ops.sum(ops.where(each, 1.0, 0.0) for each in touches) > 0.5
        soft = ops.where(np.repeat(self._rigid, self.contacts.rows_of_point), SOFT / PROXIMAL * compliance, 0.0)
        given = W + np.eye(len(c)) * soft, c, friction, before
        return call_when(first, self._solver, given, [before, 0.0, 0.0, 0.0])[0]

    def _terms(
        self, dynamics: ContactDynamics, before: Numeric, free: Numeric, state: State, h: Numeric
    ) -> list[PointTerms]:
        found = []
        for j, (contact, point) in enumerate(zip(self.contacts.of_points, dynamics.points, strict=True)):
            own = self.contacts.at(j)
            mobility = np.diag(dynamics.inertia)[own]
            found.append(
                point_terms(
                    contact.law, point.gap, before[own], free[own], mobility, _point(self.contacts, state, j), h
                )
            )
        return found

    def _state(self, terms: list[PointTerms], forces: Numeric, slip: Numeric, state: State) -> State:
        springs, slides = [], []
        for j, of in enumerate(terms):
            own = self.contacts.at(j)
            force = forces[own]
            springs.append(spring_after(of, force, _point(self.contacts, state, j)))
            slides.append(_slides(force, slip[own], of.friction))
        return {"force": forces, "spring": ops.concatenate(springs), "slides": ops.array(slides)}


def _point(contacts: ContactSet, state: State, j: int) -> PointState:
    """The part of the state of point j."""
    force, spring = state["force"][contacts.at(j)], state["spring"][2 * j : 2 * j + 2]
    return PointState(force, spring, state["slides"][j])


def _slides(force: Numeric, slip: Numeric, friction: Numeric) -> Numeric:
    """1 for a point at the limit of friction that slips."""
    across = force[0] * force[0] + force[1] * force[1]
    limit = friction * force[2]
    at_limit = across >= (1.0 - 1e-9) ** 2 * limit * limit
    slips = slip[0] * slip[0] + slip[1] * slip[1] > SLIP_SPEED**2
    return ops.where(ops.logical_and(force[2] > 0.0, ops.logical_and(at_limit, slips)), 1.0, 0.0)
