"""Impacts: dofs that are arrested, and given motions whose velocity jumps, exchange impulses with the mechanism.

The momentum balance M Δv = Gᵀ Λ + impulse is solved by the sweep of the dynamics. An impulse does the work
impulse · (v⁻ + v⁺)/2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cosim.core import ops
from cosim.core.compile.routine import Routine, call_when
from cosim.core.types import Numeric, State
from cosim.mechanics.multibody.constrained_dynamics import Solution
from cosim.mechanics.multibody.equations import MechanismEquations
from cosim.simulation.plant.contact_impacts import ContactImpact, ContactImpacts
from cosim.simulation.plant.indicators import STANDSTILL
from cosim.simulation.plant.plant import Plant

IMPACT_ITERATIONS = 2  # in which stops that would pull are removed from an impact

Impulse = Callable[[Numeric], Solution]  # by which dofs are fixed (nv,); see `MechanismEquations.impulse`


@dataclass
class Impacts:
    """The impacts of a plant; length: of a step [s]; compiled: whether the parts are compiled as routines."""

    plant: Plant
    length: float
    compiled: bool = True

    # --- dofs that are arrested ---

    @cached_property
    def _arrest_routine(self) -> Callable[..., Numeric]:
        """(changes of velocity (nv,), impulses on the fixed dofs (nv,), energy lost in constraints (1,) [J])."""
        nv = self.plant.model.nv
        shapes = [(), (self.plant.layout.size,), (nv,), (nv,)]
        return Routine(self._arrest, shapes, "impulse") if self.compiled else self._arrest

    def _arrest(self, t: Numeric, x: Numeric, jump: Numeric, fixed: Numeric) -> tuple[Numeric, Numeric, Numeric]:
        state, equations = self.plant.layout.unpack(x), self.plant.model.equations
        q, v, _ = self.plant.motion(t, state)
        _, rate = equations.constraint_violation(q, v, t)

        def solve(equations: MechanismEquations, impulses: Numeric | None = None) -> Solution:
            return equations.impulse(q, rate, jump, fixed > 0.5, t, self.plant.active(state), impulses)

        result = self._balance(t, state, solve)
        return result.acceleration, result.effort, ops.array([-0.5 * (result.multipliers @ rate)])

    def _balance(self, t: Numeric, state: State, solve: Callable[..., Solution]) -> Solution:
        """The impulse balance of the mechanism, with the drives that follow its accelerations."""
        drives = self.plant.inertial_drives
        return drives.impulse(self.plant, t, state, solve) if drives else solve(self.plant.model.equations)

    def arrested(self, t: Numeric, x: State, arrested: Numeric, rebound: Numeric) -> tuple[State, Numeric]:
        """(state, energy [J] lost at every dof (nv,) and point of exact contacts): arrested dofs leave with −rebound
        times their velocity, the other velocities follow from momentum; latches hold, touched stops and contacts
        push, brakes slip.

        What the change of kinetic energy is besides the loss is work of the imposed motions.
        """
        plant, modes, s, flat = self.plant, self.plant.modes, x["modes"], self.plant.layout.pack(x)
        if self._share_impulses:
            return self._arrested_in_contact(t, x, arrested, rebound)
        _, v, _ = plant.motion(t, x)
        stopping = ops.maximum(arrested, ops.where(plant.imposed, 1.0, 0.0))
        jump = ops.where(plant.imposed, 0.0, -(1.0 + rebound) * v)
        (change, impulse, constraint_loss), touched = self._with_stops(
            s, stopping, lambda fixed: self._arrest_routine(t, flat, jump, fixed)
        )
        s = modes.after_impact(s, touched, v + change)
        end, losses = self._ended(t, x | {"modes": s}, change, impulse)
        return self._balanced(t, x, end, ops.sum(losses) + constraint_loss[0]), losses

    def _ended(self, t: Numeric, x: State, change: Numeric, impulse: Numeric) -> tuple[State, Numeric]:
        """(the state x, with the modes after an impact, after this change of velocities (nv,); energy [J] that dofs
        lose (nv,) by the impulses on them (nv,))."""
        plant = self.plant
        q, v, _ = plant.motion(t, x)
        locked = ops.logical_and(~plant.imposed, plant.modes.locked(x["modes"]) > 0.5)
        after = ops.where(locked, 0.0, v + change)
        return self._moved(t, x, q, after), ops.where(plant.imposed, 0.0, -0.5 * impulse * (v + after))

    def _balanced(self, t: Numeric, before: State, x: State, loss: Numeric, elsewhere: Numeric = 0.0) -> State:
        """The state x after an impact with the energy accounts of the one before it: loss [J], and what was lost
        elsewhere."""
        plant, account = self.plant, before["energy"]
        energy = x["energy"] | {"loss": account["loss"] + loss}
        if plant.imposed.any() or plant.model.equations.timed:
            energy["work"] = account["work"] + (self._kinetic(t, x) - self._kinetic(t, before) + loss + elsewhere)
        return x | {"energy": energy}

    # --- together with contacts ---

    @cached_property
    def _share_impulses(self) -> bool:
        """Whether rigid contacts take part in impacts."""
        rigid = any(contact.law.stiffness is None for contact in self._in_contact.contacts.members)
        return rigid and not self.plant.inertial_drives

    @cached_property
    def _in_contact(self) -> ContactImpacts:
        return ContactImpacts(self.plant, self.length, self.compiled)

    def _arrested_in_contact(self, t: Numeric, x: State, arrested: Numeric, rebound: Numeric) -> tuple[State, Numeric]:
        """As `arrested`, in one problem with the contacts."""
        plant, modes, s, flat = self.plant, self.plant.modes, x["modes"], self.plant.layout.pack(x)
        contacts = plant.contacts.contacts
        _, v, _ = plant.motion(t, x)
        nothing = ContactImpact(
            np.zeros(modes.nv),
            np.zeros(modes.nv),
            np.zeros(1),
            plant.exact_contacts.rates(t, x),
            np.zeros(contacts.size),
            np.zeros(len(contacts.of_points)),
            0.0,
            0.0,
        )
        hits = ops.sum(arrested) > 0.5
        found = ContactImpact(*call_when(hits, self._in_contact.impact, (t, flat, arrested, rebound), [*nothing]))
        s = modes.after_impact(s, np.zeros(len(modes.stops)), v + found.change)  # those that move leave their stops
        if plant.exact:
            s = modes.contacts.after_impact(s, found.rates, ops.where(hits, s["closed"], 0.0))
        end, losses = self._ended(t, x | {"modes": s}, found.change, found.impulse)
        normals, then = contacts.normals(found.of_points), contacts.normals(x["contacts"]["force"])
        own = [own for _, own in contacts.by_contact]
        taken = ops.array([ops.sum(found.work[j] for j in points) for points in own])
        end["energy"] = end["energy"] | {"contacts": x["energy"]["contacts"] + taken}
        of, coarse = x["contacts"], ops.logical_not(found.residual <= self.plant.contact_bounds.unconverged)
        end["contacts"] = of | {
            "impulse": of["impulse"] + ops.array([ops.sum(normals[j] for j in points) for points in own]),
            "total_passes": of["total_passes"] + found.passes,
            "unconverged": of["unconverged"] + ops.where(coarse, 1.0, 0.0),
        }
        if not plant.exact:  # those that stay are counted in the step that follows
            pushed = ops.where(ops.logical_and(normals > 0.0, contacts.normals(found.rates) > STANDSTILL), 1.0, 0.0)
            begun = [
                ops.logical_and(ops.sum(pushed[j] for j in points) > 0.5, ops.sum(then[j] for j in points) <= 0.0)
                for points in own
            ]
            end["contacts"]["touches"] = of["touches"] + ops.array([ops.where(each, 1.0, 0.0) for each in begun])
        end = self._balanced(t, x, end, ops.sum(losses) + found.lost[0], ops.sum(taken))
        return end, ops.concatenate([losses, found.work]) if plant.exact else losses

    def _moved(self, t: Numeric, x: State, q: Numeric, v: Numeric) -> State:
        """The state after velocities jumped to v (nv,), and states of drives with them."""
        plant = self.plant
        if plant.inertial_drives:
            x = plant.inertial_drives.after_jump(plant, t, x, v - plant.motion(t, x)[1])
        return plant.with_motion(x, q, v)

    def _kinetic(self, t: Numeric, x: State) -> Numeric:
        """The energy [J] that changes where velocities jump."""
        plant = self.plant
        q, v, _ = plant.motion(t, x)
        energy = plant.model.equations.kinetic_energy(q, v, t)
        return energy + plant.inertial_drives.stored(plant, t, x) if plant.inertial_drives else energy

    def _with_stops(
        self, s: State, stopping: Numeric, solve: Callable[[Numeric], tuple[Numeric, Numeric, Numeric]]
    ) -> tuple[tuple[Numeric, Numeric, Numeric], Numeric]:
        """(solution, touched stops (stops,)) of an impact that fixes the dofs `stopping` (nv,), and those that latches
        and pushing stops hold. solve: fixed dofs (nv,) -> (changes of velocity, impulses, …)."""
        modes, touched = self.plant.modes, s["stopped"]
        for _ in range(min(IMPACT_ITERATIONS, len(modes.stops))):
            _, impulse, _ = solve(ops.maximum(stopping, modes.rigidly_locked(s, touched)))
            # the impulse on a dof that is fixed anyway does not come from the stop
            fixed = ops.maximum(stopping, s["latched"]) > 0.5
            touched = modes.pushing_stops(touched, ops.where(fixed, 0.0, impulse))
        return solve(ops.maximum(stopping, modes.rigidly_locked(s, touched))), touched

    # --- given motions that jump ---

    @cached_property
    def jump_routine(self) -> Callable[..., Numeric]:
        """The flat state after a jump of given velocities, see `_jumped`."""
        shapes = [(), (), (self.plant.layout.size,)]
        return Routine(self._jumped, shapes, "jump") if self.compiled else self._jumped

    @cached_property
    def _jump_impulse(self) -> Callable[..., Numeric]:
        nv = self.plant.model.nv
        shapes = [(), (), (self.plant.layout.size,), (nv,), (nv,)]
        return Routine(self._solve_jump, shapes, "jump_impulse") if self.compiled else self._solve_jump

    def _solve_jump(
        self, before: Numeric, after: Numeric, x: Numeric, jump: Numeric, fixed: Numeric
    ) -> tuple[Numeric, Numeric, Numeric]:
        state = self.plant.layout.unpack(x)
        q, v, _ = self.plant.motion(before, state)
        active = self.plant.active(state)

        def solve(equations: MechanismEquations, impulses: Numeric | None = None) -> Solution:
            return equations.impulse_of_jump(q, v, jump, fixed > 0.5, (before, after), active, impulses)

        found = self._balance(before, state, solve)
        return found.acceleration, found.effort, found.multipliers

    def _jumped(self, before: Numeric, after: Numeric, x: Numeric) -> Numeric:
        """The flat state after the velocities of given motions jump between two times: the other velocities follow
        from momentum, as in `arrested`. The whole change of kinetic energy is work of the given motions."""
        plant, state = self.plant, self.plant.layout.unpack(x)
        q, v, _ = plant.motion(before, state)
        given = plant.motion(after, state)[1]
        jump = ops.where(~plant.unprescribed, given - v, 0.0)
        imposed = ops.where(plant.imposed, 1.0, np.zeros(len(plant.imposed)))

        def solve(fixed: Numeric) -> tuple[Numeric, Numeric, Numeric]:
            return self._jump_impulse(before, after, x, jump, fixed)

        if plant.modes:
            (change, _, _), touched = self._with_stops(state["modes"], imposed, solve)
            s = plant.modes.after_impact(state["modes"], touched, v + change)
            locked = ops.logical_and(~plant.imposed, plant.modes.locked(s) > 0.5)
            velocity, state = ops.where(locked, 0.0, v + change), state | {"modes": s}
        else:
            velocity = v + solve(imposed)[0]
        end = self._moved(before, state, q, velocity)
        work = self._kinetic(after, end) - self._kinetic(before, state)
        return plant.layout.pack(end | {"energy": state["energy"] | {"work": state["energy"]["work"] + work}})
