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
from cosim.core.compile.routine import Routine
from cosim.core.types import Numeric, State
from cosim.mechanics.multibody.constrained_dynamics import Solution
from cosim.simulation.plant.plant import Plant

IMPACT_ITERATIONS = 2  # in which stops that would pull are removed from an impact

Impulse = Callable[[Numeric], Solution]  # by which dofs are fixed (nv,); see `MechanismEquations.impulse`


@dataclass
class Impacts:
    """The impacts of a plant; compiled: whether the parts are compiled as routines."""

    plant: Plant
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
        result = equations.impulse(q, rate, jump, fixed > 0.5, t, self.plant.active(state))
        return result.acceleration, result.effort, ops.array([-0.5 * (result.multipliers @ rate)])

    def arrested(self, t: Numeric, x: State, arrested: Numeric, rebound: Numeric) -> tuple[State, Numeric]:
        """(state, energy [J] lost at every dof (nv,)): arrested dofs leave with −rebound times their velocity,
        the other velocities follow from momentum; latches hold, touched stops push, brakes slip.

        What the change of kinetic energy is besides the loss is work of the imposed motions.
        """
        plant, modes, s, flat = self.plant, self.plant.modes, x["modes"], self.plant.layout.pack(x)
        q, v, _ = plant.motion(t, x)
        stopping = ops.maximum(arrested, ops.where(plant.imposed, 1.0, 0.0))
        jump = ops.where(plant.imposed, 0.0, -(1.0 + rebound) * v)
        (change, impulse, constraint_loss), touched = self._with_stops(
            s, stopping, lambda fixed: self._arrest_routine(t, flat, jump, fixed)
        )
        s = modes.after_impact(s, touched, v + change)
        locked = ops.logical_and(~plant.imposed, modes.locked(s) > 0.5)
        after = ops.where(locked, 0.0, v + change)
        losses = ops.where(plant.imposed, 0.0, -0.5 * impulse * (v + after))
        loss = ops.sum(losses) + constraint_loss[0]
        energy = x["energy"] | {"loss": x["energy"]["loss"] + loss}
        if plant.imposed.any() or plant.model.equations.timed:
            before, afterwards = (plant.model.equations.kinetic_energy(q, speed, t) for speed in (v, after))
            energy["work"] = energy["work"] + (afterwards - before + loss)
        return plant.with_motion(x | {"modes": s, "energy": energy}, q, after), losses

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
        found = self.plant.model.equations.impulse_of_jump(q, v, jump, fixed > 0.5, (before, after), active)
        return found.acceleration, found.effort, found.multipliers

    def _jumped(self, before: Numeric, after: Numeric, x: Numeric) -> Numeric:
        """The flat state after the velocities of given motions jump between two times: the other velocities follow
        from momentum, as in `arrested`. The whole change of kinetic energy is work of the given motions."""
        plant, state, equations = self.plant, self.plant.layout.unpack(x), self.plant.model.equations
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
        work = equations.kinetic_energy(q, velocity, after) - equations.kinetic_energy(q, v, before)
        energy = state["energy"] | {"work": state["energy"]["work"] + work}
        return plant.layout.pack(plant.with_motion(state | {"energy": energy}, q, velocity))
