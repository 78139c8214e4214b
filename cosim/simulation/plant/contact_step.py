"""A step of the plant with contacts: impulses at the middle of the step, with the drives implicit (Moreau and Jean).

The mechanism is evaluated once, at q_m = q ⊕ ½ h v. The velocities v⁺ at the end solve

    (M + D) (v⁺ − v) = h τ + h e + Gᵀ Λ,    q⁺ = q_m ⊕ ½ h v⁺,

e and D from one iteration of an implicit step of the drives and of what the joints oppose, linear in v⁺: D joins the
rotor inertias in the sweeps, in the dynamics and in W. The impulses Λ follow from the law of contact. Velocities along
axes that turn with a body are along those of the middle within the step; forces that depend on velocities are taken at
the middle that the change of the step before leads to. Where no point is within reach there are no rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import NamedTuple

import numpy as np

from cosim.core import ops
from cosim.core.compile.routine import Routine, call_when
from cosim.core.types import Numeric, State
from cosim.mechanics.multibody.constrained_dynamics import Solution
from cosim.mechanics.multibody.contact import gaps
from cosim.mechanics.multibody.contact.near_contacts import NearContacts
from cosim.mechanics.multibody.contact_dynamics import ContactDynamics, GivenMotionAndEffort, MotionState
from cosim.mechanics.multibody.contact_set import ContactSet
from cosim.mechanics.multibody.kinematics import Placement
from cosim.simulation.plant.bristles import JointLoads
from cosim.simulation.plant.contact_impulses import ContactImpulses, SolvedContacts
from cosim.simulation.plant.dof_elasticity import DofElasticity
from cosim.simulation.plant.drive_bank import DriveBank, Iteration, JointDrives
from cosim.simulation.plant.joint_resistance import JointResistance
from cosim.simulation.plant.plant import Plant


class Middle(NamedTuple):
    """The step as it is known before its impulses."""

    clock: Numeric  # (2,) time of the middle, length [s]
    request: Numeric  # (nv,)
    state: Numeric  # the flat state at the start
    q: Numeric  # (nq,) in the middle
    v: Numeric  # (nv,) at the start, along the axes of the middle
    at: Numeric  # (nv,) in the middle, as the step before predicts


@dataclass
class ContactStep:
    """compiled: whether the parts are compiled as routines. for_slopes: a step whose derivative stands for the one of a
    step in which a contact begins or ends, see `law_rows`."""

    plant: Plant
    compiled: bool = True
    for_slopes: bool = False

    @property
    def _nv(self) -> int:
        return self.plant.model.nv

    @property
    def contacts(self) -> ContactSet:
        return self.plant.model.equations.constraints.contacts

    @cached_property
    def _drives(self) -> JointDrives:
        return JointDrives(self.plant)

    @cached_property
    def _driven(self) -> np.ndarray:
        """bool (nv,): the dofs whose position a drive may depend on."""
        return np.isin(self.plant.model.dof_names, list(self._drives.blocks))

    @cached_property
    def _resistance(self) -> JointResistance:
        return JointResistance(self.plant, self._drives)

    @cached_property
    def _elasticity(self) -> DofElasticity:
        return DofElasticity(self.plant.model.equations)

    @cached_property
    def bank(self) -> DriveBank:
        return DriveBank.of(self._drives, self.compiled)

    @cached_property
    def _impulses(self) -> ContactImpulses:
        return ContactImpulses(self.contacts, self.plant.contact_bounds, self.compiled, self.for_slopes)

    # --- the step ---

    def step(self, t: Numeric, x: Numeric, request: Numeric, h: Numeric) -> Numeric:
        """The flat state at t + h, before drift is corrected."""
        if not self.plant.modes.indicators:
            return self._step(t, x, request, h)
        # a step in which events at the very end of another one act takes no time
        takes_time = h > 0.0
        return ops.where(takes_time, self._step(t, x, request, ops.where(takes_time, h, 1.0)), x)

    def _step(self, t: Numeric, x: Numeric, request: Numeric, h: Numeric) -> Numeric:
        """The same where h > 0."""
        middle = self._middle(t, x, request, h)
        return self._with_contacts(middle) if self.contacts else self._fly(*middle)

    def without_contacts(self, t: Numeric, x: Numeric, request: Numeric, h: Numeric) -> Numeric:
        """As `step`, with all contacts open."""
        return self._fly(*self._middle(t, x, request, h))

    def _middle(self, t: Numeric, x: Numeric, request: Numeric, h: Numeric) -> Middle:
        plant, state = self.plant, self.plant.layout.unpack(x)
        at = t + 0.5 * h
        q, v, _ = plant.motion(t, state)
        way = 0.5 * h * v
        before = plant.turned(state, v, way)
        predicted = before + (0.5 * h) * state["contacts"]["acceleration"]
        moved = plant.with_motion(state, q + plant.model.equations.rate(q, way), predicted)
        q_middle, v_middle, _ = plant.motion(at, moved)
        return Middle(ops.array([at, h]), request, x, q_middle, before, v_middle)

    def _with_contacts(self, middle: Middle) -> Numeric:
        """The flat state after the step; without rows while all points are farther than they can come."""
        near = self._is_near(middle)
        flying = call_when(ops.logical_not(near), self._flying, middle, [middle.state])
        return call_when(near, self._touching, middle, [flying])

    def _is_near(self, middle: Middle) -> Numeric:
        """Whether a point presses or could come to touch in the step; gaps that are dear are measured only where they
        have to be."""
        (_, h), state = middle.clock, self.plant.layout.unpack(middle.state)["contacts"]
        presses = ops.sum(self.contacts.normals(state["force"])) > 0.0
        may = ops.logical_not(presses)
        if self.contacts.has_dear:
            distances = self.contacts.distances(self._placed(middle), h)
            may = ops.logical_and(reduce(ops.minimum, distances) - self._reserve(h) <= 0.0, may)
        return ops.logical_or(presses, call_when(may, self._measured, middle, [1.0]) <= 0.0)

    def _near_contacts(self, middle: Middle) -> NearContacts | None:
        """None where all contacts are as cheap as their bounds."""
        if not self.contacts.has_dear:
            return None
        _, h = middle.clock
        distances = self.contacts.distances(self._placed(middle), h)
        flags = [
            None if gaps.is_cheap(*contact.shapes) else distance - self._reserve(h) <= 0.0
            for contact, distance in zip(self.contacts.members, distances, strict=True)
        ]
        return NearContacts(flags, self.compiled)

    def _nearest(self, *parts: Numeric) -> Numeric:
        """The least distance of a point from where a step without impulses could bring it [m]."""
        middle = Middle(*parts)
        placed, (_, h) = self._placed(middle), middle.clock
        points = self.contacts.points(placed)
        rates = self.contacts.rates(placed, points)
        least: Numeric = np.inf
        for j, point in enumerate(points):
            least = ops.minimum(least, point.gap - h * ops.abs(self.contacts.normals(rates)[j]) - self._reserve(h))
        return least

    def _reserve(self, h: Numeric) -> Numeric:
        """What accelerations add to the way of a point in a step [m]: 100 g."""
        return 1000.0 * h * h

    def _placed(self, middle: Middle) -> list[Placement]:
        """The bodies in the middle, with the velocities at the start."""
        e = self.plant.model.equations
        return e.placements(e.q_map.positions(middle.q), e.v_map.expand(middle.v), middle.clock[0])[1]

    @cached_property
    def _shapes(self) -> list[tuple[int, ...]]:
        nv = (self._nv,)
        return [(2,), nv, (self.plant.layout.size,), (self.plant.model.nq,), nv, nv]

    def _part(self, fn: Callable[..., Numeric], name: str) -> Callable[..., Numeric]:
        return Routine(fn, self._shapes, name) if self.compiled else fn

    @cached_property
    def _measured(self) -> Callable[..., Numeric]:
        return self._part(self._nearest, "nearest_point")

    @cached_property
    def _flying(self) -> Callable[..., Numeric]:
        return self._part(self._fly, "flying")

    @cached_property
    def _touching(self) -> Callable[..., Numeric]:
        touching = self._part(self._touch, "touching")
        if isinstance(touching, Routine):
            touching.stand_in = lambda: replace(self, for_slopes=True)._touching_for_slopes
        return touching

    @cached_property
    def _touching_for_slopes(self) -> Routine:
        return Routine(self._touch, self._shapes, "touching_for_slopes")

    # --- without contact ---

    def _fly(self, *parts: Numeric) -> Numeric:
        middle = Middle(*parts)
        drives = self._iterated(middle)
        equations, motion, given = self._equations(middle, drives)
        t, q, v, active = motion
        if equations.is_plain_tree:
            acceleration, effort = equations.hybrid_dynamics(q, v, *given, t)
            found = Solution(acceleration, effort, np.zeros(0), 0.0)
        else:
            found = equations.constrained_dynamics(q, v, *given, t, active)
        before, kept = self.plant.layout.unpack(middle.state), self.plant.contacts
        ended = kept.none | (kept.carried(before["contacts"]) if kept else {})
        none = np.zeros(len(self.contacts.members))
        return self._end(middle, drives, found, SolvedContacts(ended, np.zeros(0), none, 1.0))

    # --- with contact ---

    def _touch(self, *parts: Numeric) -> Numeric:
        middle = Middle(*parts)
        (_, h), state = middle.clock, self.plant.layout.unpack(middle.state)["contacts"]
        drives = self._iterated(middle)
        equations, motion, given = self._equations(middle, drives)
        dynamics = ContactDynamics.of(equations, motion, given, self._near_contacts(middle))
        before = self.contacts.rates(self._placed(middle), dynamics.points)
        solved = self._impulses.solved(dynamics, before, state, h)
        ended = solved.state | self.plant.contacts.counted(state, solved.state, solved.slip, h)
        placing = None if solved.placing is None else dynamics.motion(solved.placing).acceleration
        return self._end(middle, drives, dynamics.motion(solved.forces), solved._replace(state=ended), placing)

    # --- the parts of both ---

    def _iterated(self, middle: Middle) -> _Implicit:
        """Drives and joints in an implicit step, linear in the change of the velocities."""
        plant, (at, h) = self.plant, middle.clock
        state = plant.layout.unpack(middle.state)
        chart = ops.where(self._driven, plant.model.equations.chart(plant.motion(at - 0.5 * h, state)[0]), 0.0)
        z = self.bank.start(self._drives.states(state), chart, middle.v)
        clock = ops.array([at + 0.5 * h, h])
        drives = self.bank.iterate(z, middle.request, clock, z)
        slope = h * self._resistance.damping(middle.v) - drives.efforts_by_velocity
        efforts = drives.efforts * (1.0 / h) - self._resistance.friction(middle.v)
        if self._elasticity:  # at the middle of the step, so that it keeps its energy
            motion = ops.concatenate([plant.model.equations.chart(middle.q), middle.v])
            stiffness, damping = self._elasticity.resistances(motion)
            slope = slope + 0.25 * h * h * stiffness + 0.5 * h * damping
            efforts = efforts + self._elasticity.effort(motion)
        slope = ops.where(plant.locked_or_imposed(state), 0.0, slope)
        return _Implicit(z, clock, drives, slope, efforts)

    def _equations(self, middle: Middle, drives: _Implicit) -> tuple:
        """(equations with what drives and joints add to the inertia, motion, given motion and efforts)."""
        plant, at = self.plant, middle.clock[0]
        state = plant.layout.unpack(middle.state)
        equations = self._elasticity.others.with_rotors(drives.slope)
        efforts = drives.efforts + plant.external_effort(at, state)
        if plant.modes.brakes:
            chart = equations.chart(middle.q)
            efforts = efforts + plant.modes.brakes.efforts(at, state["modes"], chart, middle.at)["braking_effort"]
        motion = MotionState(at, middle.q, middle.at, plant.active(state))
        given = GivenMotionAndEffort(plant.motion(at, state)[2], efforts, plant.locked_or_imposed(state))
        return equations, motion, given

    def _end(
        self,
        middle: Middle,
        drives: _Implicit,
        found: Solution,
        contacts: SolvedContacts,
        placing: Numeric | None = None,
    ) -> Numeric:
        """The flat state after the step. placing: (nv,) acceleration that leads to the places, by default the one of
        the motion."""
        plant, equations, bank = self.plant, self.plant.model.equations, self.bank
        (_, h), state = middle.clock, plant.layout.unpack(middle.state)
        standing = found.acceleration - plant.transport(state, middle.at)
        change = h * standing
        v = middle.v + change
        way = 0.5 * h * (v if placing is None else v + h * (placing - found.acceleration))
        q, after = middle.q + equations.rate(middle.q, way), plant.turned(state, v, way)
        z = drives.start + ops.concatenate([*drives.iteration.changes(change), h * v, change])
        blocks = self._drives.of_plant(bank.states(z))
        impulses = drives.iteration.efforts + drives.iteration.efforts_by_velocity * change
        haptic = plant.haptic_effort(middle.clock[0], middle.q, {"contacts": contacts.state})
        energy = self._energy(middle, drives, z, v, impulses, found, haptic)
        if self.contacts:
            energy["contacts"] = state["energy"]["contacts"] + contacts.taken
        own = contacts.state | {"acceleration": standing * contacts.continues}
        moved = plant.with_motion(state, q, after)
        return plant.layout.pack(moved | blocks | {"energy": energy, "contacts": own})

    def _energy(
        self,
        middle: Middle,
        drives: _Implicit,
        z: Numeric,
        v: Numeric,
        impulses: Numeric,
        solution: Solution,
        haptic: Numeric,
    ) -> State:
        """The integrals of power after the step; impulses (nv,): of the drives; haptic (nv,): what real drives exert
        for virtual contacts. In an impact velocities jump within the step, and an impulse does work at their mean, not
        at the end."""
        plant, equations, (at, h) = self.plant, self.plant.model.equations, middle.clock
        state = plant.layout.unpack(middle.state)
        mean = 0.5 * (middle.v + v)
        found = dict(state["energy"])
        work, loss = self.bank.powers(z, middle.request, drives.clock, drives.start)
        loss = loss + self._resistance.friction(v) @ mean + equations.damper_loss(middle.q, mean, at)
        if plant.modes.brakes:
            chart = equations.chart(middle.q)
            loss = loss - plant.modes.brakes.efforts(at, state["modes"], chart, mean)["braking_effort"] @ mean
        external, work = plant.external_effort(at, state), work + solution.power
        if plant.imposed.any():
            loads = JointLoads(np.zeros(self._nv), np.zeros(self._nv))
            bristles = plant.bristles.dry_efforts(middle.at, loads, state.get("bristles", np.zeros(0)))
            efforts = solution.effort + equations.friction_effort(middle.at, bristles) - external
            work = work + ops.sum(efforts[k] * mean[k] for k in np.flatnonzero(plant.imposed))
            if plant.real:
                real = [plant.model.dof_index(name) for name in plant.real]
                found["real"] = found["real"] + h * ops.array([(efforts[k] + haptic[k]) * mean[k] for k in real])
        found |= {"work": found["work"] + h * work + impulses @ (mean - v), "loss": found["loss"] + h * loss}
        if plant.coupled:
            found["external"] = found["external"] + h * ops.array([external[k] * mean[k] for k in plant.external.dofs])
        if "forces" in found:
            found["forces"] = found["forces"] + h * ops.sum(equations.force_powers(middle.q, mean, at).values())
        return found


class _Implicit(NamedTuple):
    """An implicit step of drives and joints. start: z before it; clock: time of its end, length [s]; slope (nv,): D;
    efforts (nv,): without a change of velocity."""

    start: Numeric
    clock: Numeric
    iteration: Iteration
    slope: Numeric
    efforts: Numeric
