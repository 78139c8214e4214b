"""Exact contacts of a plant: their forces between events, and what keeps its state on the surfaces.

Forces follow from the modes of the points in every evaluation of the equations of motion, see `ContactForces`. The
accelerations of the points without forces are those of their velocities u(q, v),

    c = G q̈ + ∂u/∂q q̇ + ∂u/∂t,

the latter two by differentiating u along the motion: so axes that turn and surfaces that are curved are exact. After
every step velocities and gaps are projected onto those of the modes, in the metric of M.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from cosim.core import ops
from cosim.core.compile.jacobian import Jacobian
from cosim.core.types import Numeric, State
from cosim.mechanics.multibody.constrained_dynamics import Solution
from cosim.mechanics.multibody.contact.cone import NORMAL
from cosim.mechanics.multibody.contact.contact_forces import ROWS, ContactForces, PointModes, projecting
from cosim.mechanics.multibody.contact.contact_solver import SolverBounds
from cosim.mechanics.multibody.contact_dynamics import ContactDynamics, GivenMotionAndEffort, MotionState
from cosim.mechanics.multibody.contact_set import ContactSet
from cosim.mechanics.multibody.equations import MechanismEquations
from cosim.mechanics.multibody.model import Model
from cosim.simulation.plant.contact_modes import ACCELERATIONS, CLOSED, DIRECTION, GAP, LAW, RATES, RESTITUTION
from cosim.simulation.plant.contact_state import ContactState
from cosim.simulation.plant.hybrid_modes import HybridModes
from cosim.simulation.plant.inertial_drives import InertialDrives, PlantMotion

MOST_MOVED = 1e-6  # m
SOLVER = "solver"  # of `touching`: passes, and residual [m/s²]


def _moved(gap: Numeric) -> Numeric:
    """How far a point is moved to the surface in one step [m]: what steps drift, and not a start that is deep."""
    return ops.clip(gap, -MOST_MOVED, MOST_MOVED)


class PlantThatTouches(Protocol):
    """What is used of a `Plant`."""

    @property
    def contact_bounds(self) -> SolverBounds: ...
    @property
    def modes(self) -> HybridModes: ...
    @cached_property
    def contacts(self) -> ContactState: ...
    @cached_property
    def model(self) -> Model: ...
    @cached_property
    def inertial_drives(self) -> InertialDrives: ...
    def active(self, x: State) -> Numeric: ...
    def locked_or_imposed(self, x: State) -> Numeric: ...
    def motion(self, t: Numeric, x: State) -> tuple[Numeric, Numeric, Numeric]: ...
    def with_motion(self, x: State, q: Numeric, v: Numeric) -> State: ...
    def efforts(self, t: Numeric, x: State, request: Numeric) -> dict[str, Numeric]: ...


@dataclass(frozen=True)
class ExactContacts:
    """Of a plant, by functions of numbers or symbols. k: the number of points."""

    plant: PlantThatTouches

    @property
    def contacts(self) -> ContactSet:
        return self._equations.constraints.contacts

    @property
    def _equations(self) -> MechanismEquations:
        return self.plant.model.equations

    @cached_property
    def _forces(self) -> ContactForces:
        return ContactForces(tuple(contact.law for contact in self.contacts.of_points))

    @cached_property
    def _by_motion(self) -> Jacobian:
        """∂u/∂q q̇ + ∂u/∂t (3 k, 1) from (0 (1,), q, v, t)."""
        e = self._equations

        def rates(way: Numeric, q: Numeric, v: Numeric, t: Numeric) -> Numeric:
            return self._rates(q + way[0] * e.rate(q, v), v, t + way[0])

        return Jacobian(rates, [(1,), (self.plant.model.nq,), (self.plant.model.nv,), ()], "rates_by_motion")

    def rates(self, t: Numeric, x: State) -> Numeric:
        """(3 k,) velocities of the points in a state."""
        q, v, _ = self.plant.motion(t, x)
        return self._rates(q, v, t)

    def _rates(self, q: Numeric, v: Numeric, t: Numeric) -> Numeric:
        return self.plant.contacts.points_and_rates(self._equations, t, q, v)[1]

    def modes(self, x: State, rates: Numeric) -> PointModes:
        """rates (3 k,): velocities of the points in the state x. A plant whose modes are not known yet has no
        contact."""
        modes, k = self.plant.modes.contacts, len(self.contacts.of_points)
        return modes.of(x["modes"], rates) if modes else PointModes(np.zeros(k), np.zeros(2 * k))

    # --- between events ---

    def accelerated(self, at: PlantMotion, a: Numeric, applied: Numeric) -> tuple[Solution, dict[str, Numeric]]:
        """What the equations of motion determine, and what is known of the points: inputs of events, and
        `pushes`, their forces."""
        t, x, q, v, known, _ = at
        motion, given = MotionState(t, q, v, self.plant.active(x)), GivenMotionAndEffort(a, applied, known)
        dynamics = ContactDynamics.of(self._equations, motion, given, standing=False)
        rates = self._rates(q, v, t)
        c = dynamics.free_change + self._by_motion(np.zeros(1), q, v, t)[:, 0]
        modes = self.modes(x, rates)
        found = self._forces.solved(dynamics.inertia, c, modes, x["contacts"]["force"])
        laws = [contact.law for contact in self.contacts.of_points]
        return dynamics.motion(found.forces), {
            "pushes": found.forces,
            GAP: ops.array([point.gap for point in dynamics.points]),
            RATES: rates,
            ACCELERATIONS: c + dynamics.inertia @ found.forces,
            LAW: found.law,
            RESTITUTION: ops.array([law.restitution for law in laws]),
            SOLVER: ops.array([found.passes, found.residual * found.scale]),
        }

    def powers(self, x: State, solution: Mapping[str, Numeric]) -> tuple[Numeric, State]:
        """(power (m,) that each contact takes [W], rates of what is counted in the state of the contacts)."""
        force, rates, modes = solution["pushes"], solution[RATES], self.modes(x, solution[RATES])
        power, impulse, slid = [], [], []
        for _, own in self.contacts.by_contact:
            work, normal, fastest = 0.0, 0.0, 0.0
            for j in own:
                rows = slice(ROWS * j, ROWS * (j + 1))
                u = rates[rows]
                work, normal = work - force[rows] @ u, normal + force[rows][NORMAL]
                speed = ops.sqrt(ops.where(modes.slides(j) > 0.5, u[0] * u[0] + u[1] * u[1], 0.0))
                fastest = ops.maximum(fastest, speed)
            power.append(work)
            impulse.append(normal)
            slid.append(fastest)
        return ops.array(power), {"impulse": ops.array(impulse), "slid": ops.array(slid)}

    # --- at events and after steps ---

    def settled(self, t: Numeric, x: State) -> tuple[State, Numeric]:
        """(the state with gaps and velocities of the modes, energy (m,) that each contact takes in it [J])."""
        plant, e = self.plant, self._equations
        q, v, _ = plant.motion(t, x)
        violation, _ = e.constraint_violation(q, v, t)
        holonomic = e.constraints.holonomic
        demand = ops.set_at(np.zeros(len(holonomic)), np.flatnonzero(holonomic), violation)
        held = self.modes(x, np.zeros(self.contacts.size)).held()
        normals = np.arange(len(held)) % ROWS == NORMAL
        dynamics = self._impulses(t, x, q, demand)
        gaps = ops.set_at(np.zeros(len(held)), np.flatnonzero(normals), [_moved(p.gap) for p in dynamics.points])
        moved = self._projected(dynamics, gaps, held * normals)
        q = e.normalised(e.integrate(q, moved.acceleration))
        _, rate = e.constraint_violation(q, v, t)
        dynamics, before = self._impulses(t, x, q, rate), self._rates(q, v, t)
        impulses = projecting(dynamics.inertia, before + dynamics.free_change, held)
        v = v + dynamics.motion(impulses).acceleration
        work = impulses * (before + self._rates(q, v, t))
        taken = [
            -0.5 * ops.sum(ops.sum(work[ROWS * j : ROWS * (j + 1)]) for j in own) for _, own in self.contacts.by_contact
        ]
        return plant.with_motion(x, q, v), ops.array(taken)

    def _impulses(self, t: Numeric, x: State, q: Numeric, demand: Numeric) -> ContactDynamics:
        """For changes of position or velocity that the constraints demand (m,), with given dofs as they are."""
        none, fixed = np.zeros(self.plant.model.nv), self.plant.locked_or_imposed(x)
        state = MotionState(t, q, none, self.plant.active(x))
        return ContactDynamics.of_impulses(self._equations, state, demand, none, fixed)

    def _projected(self, dynamics: ContactDynamics, demand: Numeric, held: Numeric) -> Solution:
        return dynamics.motion(projecting(dynamics.inertia, demand + dynamics.free_change, held))

    def at_end(self, t: Numeric, x: State, request: Numeric, h: Numeric) -> State:
        """The state after a step of length h [s], on the surfaces, with the forces that act then."""
        x, _ = self.settled(t, x)
        solution, before = self.plant.efforts(t, x, request), x["contacts"]
        modes = self.modes(x, solution[RATES])
        passes, residual = solution[SOLVER][0], h * solution[SOLVER][1]
        slides = [
            ops.where(solution["pushes"][ROWS * j + NORMAL] > 0.0, modes.slides(j), 0.0)
            for j in range(len(self.contacts.of_points))
        ]
        known = {"force": solution["pushes"], "slides": ops.array(slides), "passes": passes, "residual": residual}
        unsolved = ops.logical_not(residual <= self.plant.contact_bounds.unsolved)
        known["unsolved"] = ops.where(unsolved, before["unsolved"] + 1.0, 0.0)
        coarse = ops.where(ops.logical_not(residual <= self.plant.contact_bounds.unconverged), 1.0, 0.0)
        known["unconverged"] = before["unconverged"] + coarse
        known["total_passes"] = before["total_passes"] + passes
        return x | {"contacts": before | known}

    def after_event(self, t: Numeric, before: State, hit: Numeric, x: State) -> State:
        """The state after an event, on the surfaces; before: the modes before it; hit (k,): 1 for points in an impact.
        What a contact loses where it is brought to rest below its creep speed is counted, and how often it touches and
        slips."""
        x, taken = self.settled(t, x)
        counts = dict(x["contacts"])
        for name, now, then in (
            ("touches", lambda own: ops.sum(hit[j] for j in own), lambda own: self._touches(before, own)),
            ("slips", lambda own: self._slides(x["modes"], own), lambda own: self._slides(before, own)),
        ):
            began = [ops.where(ops.logical_and(now(own) > 0.5, then(own) < 0.5), 1.0, 0.0) for own in self._own]
            counts[name] = counts[name] + ops.array(began)
        energy = x["energy"] | {"contacts": x["energy"]["contacts"] + taken}
        return x | {"contacts": counts, "energy": energy}

    @property
    def _own(self) -> list[range]:
        return [own for _, own in self.contacts.by_contact]

    def _touches(self, s: State, own: range) -> Numeric:
        """1 where one of these points touches, else 0."""
        return ops.where(ops.sum(s[CLOSED][j] for j in own) > 0.5, 1.0, 0.0)

    def _slides(self, s: State, own: range) -> Numeric:
        modes = PointModes(s[CLOSED], s[DIRECTION])
        return ops.where(ops.sum(modes.slides(j) for j in own) > 0.5, 1.0, 0.0)
