"""Impacts of a plant with rigid contacts: points that touch, stops of joints and latches exchange impulses in one
problem.

A stop is a contact of one row: it pushes, without friction, and the dof rebounds with its restitution. Points and stops
that touch already take part, so that no impulse of one leaves the others behind. With the velocities u⁻ before,

    0 ≤ Λ_n ⊥ u_n⁺ + e u_n⁻ ≥ 0,    |Λ_t| ≤ μ Λ_n, and Λ_t = −μ Λ_n u_t⁺ / |u_t⁺| where u_t⁺ ≠ 0:

Newton's law of impact and Coulomb's of friction. Of impulses that are not unique the ones of least norm are taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from cosim.core import ops
from cosim.core.compile.routine import Routine
from cosim.core.types import Numeric, State
from cosim.mechanics.multibody.contact.cone import DISKS, NORMAL
from cosim.mechanics.multibody.contact.contact_solver import ContactSolver
from cosim.mechanics.multibody.contact.gaps import PointOfContact
from cosim.mechanics.multibody.contact.law_rows import SLOWEST_BOUNCE, STUCK_SPEED
from cosim.mechanics.multibody.contact_dynamics import ContactDynamics, MotionState
from cosim.mechanics.multibody.contact_set import ContactSet
from cosim.simulation.plant.contact_modes import SLOWEST
from cosim.simulation.plant.plant import Plant

PROXIMAL = 1e-8  # of the mean mobility, of impulses that are not unique


class ContactImpact(NamedTuple):
    """change (nv,): of the velocities; impulse (nv,): on fixed dofs and of stops; lost (1,): in constraints [J]; rates
    (size,): velocities of the points afterwards [m/s]; of_points (size,): impulses [N s]; work (k,): that each point
    takes [J]; passes, residual [m/s]: of the solver."""

    change: Numeric
    impulse: Numeric
    lost: Numeric
    rates: Numeric
    of_points: Numeric
    work: Numeric
    passes: Numeric
    residual: Numeric


@dataclass
class ContactImpacts:
    """length: of a step [s]; compiled: whether the parts are compiled as routines."""

    plant: Plant
    length: float
    compiled: bool = True

    @property
    def contacts(self) -> ContactSet:
        return self.plant.model.equations.constraints.contacts

    @property
    def rows(self) -> int:
        """The number of what events may arrest: dofs, then points of exact contacts."""
        return self.plant.modes.nv + len(self.plant.modes.contacts.points)

    @cached_property
    def impact(self) -> Callable[..., Numeric]:
        """The fields of `ContactImpact` from (t, flat state, arrested (rows,), rebound (rows,))."""
        shapes = [(), (self.plant.layout.size,), (self.rows,), (self.rows,)]
        return Routine(self._solve, shapes, "contact_impact") if self.compiled else self._solve

    def _takes_part(self, x: State, points: Sequence[PointOfContact], rates: Numeric) -> Numeric:
        """(k,) 1 for rigid points that touch; where their instants are not known, also for those that come to touch
        within a step."""
        if self.plant.exact:
            return x["modes"]["closed"]
        pushes, speeds, found = self.contacts.normals(x["contacts"]["force"]), self.contacts.normals(rates), []
        for contact, point, push, speed in zip(self.contacts.of_points, points, pushes, speeds, strict=True):
            comes = ops.logical_and(speed < 0.0, point.gap + self.length * speed <= 0.0)
            touches = ops.where(ops.logical_or(push > 0.0, comes), 1.0, 0.0)
            found.append(touches if contact.law.stiffness is None else 0.0)
        return ops.array(found)

    def _stops(self, x: State, v: Numeric, arrested: Numeric) -> tuple[list[Numeric], Numeric]:
        """(which stops are hit, bool (stops,); 1 for those and for touched ones (stops,))."""
        hit = [
            ops.logical_and(arrested[stop.dof] > 0.5, stop.side * v[stop.dof] > 0.0) for stop in self.plant.modes.stops
        ]
        s = x["modes"]["stopped"]
        return hit, ops.array([ops.where(is_hit, 1.0, s[k]) for k, is_hit in enumerate(hit)])

    def _solve(self, t: Numeric, x: Numeric, arrested: Numeric, rebound: Numeric) -> tuple[Numeric, ...]:
        plant, state, modes = self.plant, self.plant.layout.unpack(x), self.plant.modes
        equations, nv, n = plant.model.equations, modes.nv, self.contacts.rows_of_point
        q, v, _ = plant.motion(t, state)
        _, rate = equations.constraint_violation(q, v, t)
        points, before = plant.contacts.points_and_rates(equations, t, q, v)
        hit, touched = self._stops(state, v, arrested)
        pushed: list[Numeric] = [0.0] * nv  # dofs that a stop pushes
        for stop, on in zip(modes.stops, hit, strict=True):
            pushed[stop.dof] = ops.where(on, 1.0, pushed[stop.dof])
        held = ops.where(ops.array(pushed) > 0.5, 0.0, arrested[:nv]) if modes.stops else arrested[:nv]
        fixed = ops.logical_or(plant.imposed, ops.maximum(held, state["modes"]["latched"]) > 0.5)
        jump = ops.where(plant.imposed, 0.0, -(1.0 + rebound[:nv]) * v)
        stops = [(stop.dof, stop.side) for stop in modes.stops]
        dynamics = ContactDynamics.of_impulses(
            equations, MotionState(t, q, v, plant.active(state)), rate, jump, fixed, stops
        )
        approach = [-stop.side * v[stop.dof] for stop in modes.stops]
        u = ops.concatenate([before, *([0.0] * NORMAL + [a] + [0.0] * (n - NORMAL - 1) for a in approach)])
        shift = self._shift(u, hit, arrested, rebound)
        of_points_on = self._takes_part(state, points, before)
        on = ops.concatenate([of_points_on, touched]) if stops else of_points_on
        impulses, passes, residual = self._impulses(dynamics.inertia, u + dynamics.free_change + shift, on, u, state)
        result = dynamics.motion(impulses)
        after = v + result.acceleration
        _, rates = plant.contacts.points_and_rates(equations, t, q, after)
        size = self.contacts.size
        of_points, impulse = impulses[:size], result.effort
        for k, stop in enumerate(modes.stops):
            own = impulses[size + n * k + NORMAL]
            impulse = ops.set_at(impulse, [stop.dof], [impulse[stop.dof] - stop.side * own])
        work = of_points * (before + rates)
        by_point = [-0.5 * ops.sum(work[self.contacts.at(j)]) for j in range(len(points))]
        lost = ops.array([-0.5 * (result.multipliers @ rate)])
        return ContactImpact(
            result.acceleration, impulse, lost, rates, of_points, ops.array(by_point), passes, residual
        )

    def _shift(self, u: Numeric, hit: list[Numeric], arrested: Numeric, rebound: Numeric) -> Numeric:
        """What the law of impact adds to the velocities of all rows."""
        nv, n, modes = self.plant.modes.nv, self.contacts.rows_of_point, self.plant.modes
        found: list[Numeric] = [0.0] * len(u)
        for j, contact in enumerate(self.contacts.of_points):
            row = n * j + NORMAL
            if self.plant.exact:
                back = ops.where(u[row] > -SLOWEST, -SLOWEST - u[row], rebound[nv + j] * u[row])
                found[row] = ops.where(arrested[nv + j] > 0.5, back, 0.0)
            else:
                found[row] = ops.where(u[row] < -SLOWEST_BOUNCE, contact.law.restitution * u[row], 0.0)
        for k, stop in enumerate(modes.stops):
            row = n * (len(self.contacts.of_points) + k) + NORMAL
            found[row] = ops.where(hit[k], rebound[stop.dof] * u[row], 0.0)
        return ops.array(found)

    def _impulses(
        self, W: Numeric, c: Numeric, on: Numeric, u: Numeric, state: State
    ) -> tuple[Numeric, Numeric, Numeric]:
        """(impulses of all rows, passes, residual) with the points and stops that take part."""
        n, size, count = self.contacts.rows_of_point, len(c), len(c) // self.contacts.rows_of_point
        part = [on[i // n] for i in range(size)]
        masked = ops.array([[part[i] * part[j] * W[i, j] for j in range(size)] for i in range(size)])
        away = ops.array([1.0 - part[i] if i % n == NORMAL else 0.0 for i in range(size)])
        right = ops.array(part) * c + away
        solver, friction, none = ContactSolver(count, rows=n), self._friction(u, state), np.zeros(size)
        if count == 1:
            found, passes, residual, _ = solver(masked, right, friction, none)
            return found, passes, residual
        mean = PROXIMAL / size * ops.sum(np.diag(masked))
        near = masked + mean * np.diag(np.ones(size))
        first, before, _, _ = solver(near, right, friction, none)
        found, passes, residual, _ = solver(near, right - mean * first, friction, first)
        return found, before + passes, residual

    def _friction(self, u: Numeric, state: State) -> Numeric:
        """Of all points, and none of the stops; (count,) or (count, disks)."""
        n, disks = self.contacts.rows_of_point, len(DISKS[self.contacts.rows_of_point])
        found: list[list[Numeric]] = []
        for j, contact in enumerate(self.contacts.of_points):
            across, law = u[n * j : n * j + 2], contact.law
            moves = across[0] * across[0] + across[1] * across[1] > STUCK_SPEED**2
            mu = ops.where(moves, law.sliding, law.static)
            found.append([mu, law.torsional, law.rolling][:disks])
        found += [[0.0] * disks for _ in self.plant.modes.stops]
        return ops.array(found) if disks > 1 else ops.array([each for (each,) in found])
