"""A step of the plant in which the mechanism is evaluated once, and the drives take steps of their own.

In the equations of motion at the middle of the step, M v̇ = h + τ, inertia M and load h are constant. An implicit method
with steps of its own integrates them together with the drives, whose efforts τ(z, q, v) change faster. The middle is
found with the mean acceleration of the step before. Velocities along axes that turn with a body are along those of the
middle within the step.

The method is the diagonally implicit one of Alexander (SIAM J. Numer. Anal. 14, 1977) with two stages, L-stable and of
order 2; both stages are iterated by Newton's method, which follows backlash and friction that change within a step.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cosim.core import ops
from cosim.core.compile.elimination import Elimination
from cosim.core.compile.routine import Routine
from cosim.core.compile.trace import Shape, inlined, symbols
from cosim.core.compile.while_loop import repeated_while
from cosim.core.types import Numeric, State
from cosim.simulation.plant.bristles import JointLoads
from cosim.simulation.plant.drive_bank import DriveBank, JointDrives, beyond
from cosim.simulation.plant.joint_resistance import JointResistance
from cosim.simulation.plant.plant import Plant

GAMMA = 1.0 - 1.0 / math.sqrt(2.0)  # makes the method L-stable
MAX_ITERATIONS = 20  # of a stage
DAMPED_AFTER = 4  # iterations after which changes are halved
ACCOUNTS = 3  # before z: work, loss [J], stages that did not converge


@dataclass
class Multirate:
    """The step of a plant whose drives are integrated with shorter steps than the mechanism.

    substeps: of the drives in one step of the plant; compiled: whether the parts are compiled as routines.

    z: see `DriveBank`.
    """

    plant: Plant
    substeps: int
    compiled: bool = True

    @cached_property
    def bank(self) -> DriveBank:
        return DriveBank.of(self._drives, self.compiled)

    @cached_property
    def _drives(self) -> JointDrives:
        return JointDrives(self.plant)

    @cached_property
    def _resistance(self) -> JointResistance:
        return JointResistance(self.plant, self._drives)

    @property
    def _nv(self) -> int:
        return self.plant.model.nv

    def step(self, t: Numeric, x: Numeric, request: Numeric, h: Numeric) -> Numeric:
        """The flat state at t + h, before drift is corrected."""
        state = self.plant.layout.unpack(x)
        q, v, _ = self.plant.motion(t, state)
        half_way = v + (0.5 * h) * state["drive_steps"]["acceleration"]
        moved = self.plant.with_motion(state, q + (0.5 * h) * self.plant.model.equations.rate(q, half_way), half_way)
        frozen = self._frozen(t + 0.5 * h, moved)
        chart = self.plant.model.equations.chart(q)
        # the displacement from the axes of the start to those of the middle
        to_middle = (0.5 * h) * half_way
        along_middle = self.plant.turned(state, v, to_middle)
        ends = ops.concatenate([np.zeros(ACCOUNTS), self.bank.start(self._drives.states(state), chart, along_middle)])
        width = h / self.substeps
        for k in range(self.substeps):
            ends = self._substep(ops.array([t + k * width, width]), ends, frozen, request)
        return self.plant.layout.pack(self._end(t, state, moved, to_middle, ends, h))

    # --- the mechanism ---

    @cached_property
    def _coupled(self) -> np.ndarray:
        """bool (nv, nv): elements of the mass matrix that are not 0 in general, of dofs whose motion is not imposed."""
        _, q = symbols("q", (self.plant.model.nq,))
        with inlined():
            mass = self.plant.model.equations.mass_matrix(q, 0.0)
        found = np.array([[not ops.is_zero(value) for value in row] for row in mass], dtype=bool)
        free = ~self.plant.imposed
        return found & free[:, None] & free | np.eye(self._nv, dtype=bool)

    def _frozen(self, t: Numeric, state: State) -> Numeric:
        """The equations of motion of a state without its drives and joint springs: the `_coupled` elements of M, then h
        (nv,)."""
        plant, equations = self.plant, self.plant.model.equations
        q, v, a = plant.motion(t, state)
        known = plant.locked_or_imposed(state)
        given = a + plant.transport(state, v)  # where nothing accelerates
        load = plant.external_effort(t, state) - equations.without_joint_springs.inverse_dynamics(q, v, given, t)
        if plant.modes.brakes:
            braking = plant.modes.brakes.efforts(t, state["modes"], equations.chart(q), v)
            load = load + braking["braking_effort"]
        # rows of known accelerations are v̇ = a
        free = ops.where(known, 0.0, np.ones(self._nv))
        mass = ops.array(np.outer(free, free)) * equations.mass_matrix(q, t) + np.diag(1.0 - free)
        return ops.concatenate([mass[self._coupled], ops.where(known, a, load), free])

    @property
    def _frozen_shape(self) -> Shape:
        return (int(self._coupled.sum()) + 2 * self._nv,)

    def _mechanism(self, frozen: Numeric) -> tuple[Numeric, Numeric, Numeric]:
        """(M (nv, nv), h (nv,), 1 for dofs whose acceleration is not known (nv,)) of `_frozen`."""
        mass = np.zeros((self._nv, self._nv), dtype=object)
        mass[self._coupled] = list(frozen[: -2 * self._nv])
        return ops.array(mass.tolist()), frozen[-2 * self._nv : -self._nv], frozen[-self._nv :]

    # --- steps of the drives ---

    @cached_property
    def _substep(self) -> Callable[..., Numeric]:
        shapes = [(2,), (ACCOUNTS + self.bank.size,), self._frozen_shape, (self._nv,)]
        return Routine(self._one_substep, shapes, "substep") if self.compiled else self._one_substep

    def _one_substep(self, clock: Numeric, before: Numeric, frozen: Numeric, request: Numeric) -> Numeric:
        """(work, loss, stages that did not converge, z) one step later; clock: time and length of the step [s]."""
        t, h = clock[0], clock[1]
        accounts, z = before[:ACCOUNTS], before[ACCOUNTS:]
        width = GAMMA * h
        clocks = [ops.array([t + width, width]), ops.array([t + h, width])]
        first, more = self._solved(z, z, frozen, request, clocks[0])
        second = z + (1.0 - GAMMA) / GAMMA * (first - z)
        last, more_at_end = self._solved(z + (first - z) / GAMMA, second, frozen, request, clocks[1])
        powers = [self._powers(*of, request) for of in zip((first, last), clocks, (z, second), strict=True)]
        energies = h * ((1.0 - GAMMA) * powers[0] + GAMMA * powers[1])
        return ops.concatenate([accounts + ops.concatenate([energies, ops.array([more + more_at_end])]), last])

    def _powers(self, z: Numeric, clock: Numeric, base: Numeric, request: Numeric) -> Numeric:
        """(power supplied, lost) [W] (2,) of drives and friction."""
        v = self.bank.velocity(z)
        lost = self._resistance.friction(v) @ v
        return self.bank.powers(z, request, clock, base) + ops.array([0.0, lost])

    def _solved(
        self, guess: Numeric, base: Numeric, frozen: Numeric, request: Numeric, clock: Numeric
    ) -> tuple[Numeric, Numeric]:
        """(z = base + γh ż, 1 if the iterations from a guess did not converge); clock: time, γh [s]."""
        found, _, more = self._iterations(ops.concatenate([np.zeros(1), guess]), base, frozen, request, clock)
        return found[1:], more

    @cached_property
    def _iterations(self) -> Callable[..., Numeric]:
        shapes = [(1 + self.bank.size,), (self.bank.size,), self._frozen_shape, (self._nv,), (2,)]
        return repeated_while(self._iterate, shapes, "iterate", MAX_ITERATIONS, self.compiled, converges=True)

    def _iterate(
        self, iterate: Numeric, base: Numeric, frozen: Numeric, request: Numeric, clock: Numeric
    ) -> tuple[Numeric, Numeric]:
        """(the next iterate, 1 while another one is needed); iterate: number of iterations before, z."""
        bank, width, count, z = self.bank, clock[1], iterate[0], iterate[1:]
        mass, load, free = self._mechanism(frozen)
        drives, v, missing = bank.iterate(z, request, clock, base), bank.velocity(z), base - z
        motion = z[-2 * self._nv :]
        by_position, by_velocity = (width * slope for slope in self._resistance.slopes(motion))
        way = bank.position(missing) + width * v  # for δv = 0
        resistance = width * self._resistance.effort(motion) + by_position @ way
        by_velocity = by_velocity + width * by_position - np.eye(self._nv) * drives.efforts_by_velocity
        joined = Elimination(mass + free[:, None] * by_velocity, self._coupled)
        impulse = width * load + free * (drives.efforts - resistance)
        change = joined.solve(mass @ bank.velocity(missing) + impulse)
        more = ops.maximum(drives.excess, beyond(change, v)) > 0.0
        # iterations that go round between contact and none, or both directions of friction, meet half way
        fraction = ops.where(ops.logical_and(more, count >= DAMPED_AFTER), 0.5, 1.0)
        z = z + fraction * ops.concatenate([*drives.changes(change), way + width * change, change])
        return ops.concatenate([count + 1.0, z]), ops.where(more, 1.0, 0.0)

    # --- the end ---

    def _end(self, t: Numeric, state: State, middle: State, to_middle: Numeric, ends: Numeric, h: Numeric) -> State:
        """The state after the step, from the `ends` of drives and joints, and the energies of the mechanism."""
        plant, equations, bank = self.plant, self.plant.model.equations, self.bank
        q, before, _ = plant.motion(t, state)
        at = t + 0.5 * h
        q_half, v_half, a = plant.motion(at, middle)
        (work, loss, unconverged), z = ends[:ACCOUNTS], ends[ACCOUNTS:]
        along_middle = bank.position(z) - equations.chart(q)
        way, after = (plant.turned(state, part, -to_middle) for part in (along_middle, bank.velocity(z)))
        after = plant.turned(state, after, way)
        mean, acceleration = along_middle / h, (after - before) / h
        if plant.modes.indicators:  # a step in which events at the very end of another one act takes no time
            mean = ops.where(h > 0.0, mean, before)
            acceleration = ops.where(h > 0.0, acceleration, state["drive_steps"]["acceleration"])
        loss = loss + h * equations.damper_loss(q_half, mean, at)
        if plant.modes.brakes:
            loss = loss - h * (
                plant.modes.brakes.efforts(at, state["modes"], equations.chart(q_half), mean)["braking_effort"] @ mean
            )
        drives = self._drives.of_plant(bank.states(z))
        if equations.timed:  # what the motion of joints takes that depends on time alone
            moved_by, known = ops.where(plant.imposed, a, acceleration), np.ones(self._nv, dtype=bool)
            found = equations.constrained_dynamics(q_half, v_half, moved_by, np.zeros(self._nv), known, at)
            work = work + h * found.power
        taken: Numeric = np.zeros(0)
        if plant.imposed.any():
            loads = JointLoads(np.zeros(self._nv), np.zeros(self._nv))
            bristles = plant.bristles.dry_efforts(v_half, loads, drives.get("bristles", np.zeros(0)))
            load = equations.inverse_dynamics(q_half, v_half, ops.where(plant.imposed, a, acceleration), at)
            effort = load + equations.friction_effort(v_half, bristles) - plant.external_effort(at, state)
            work = work + h * ops.sum(effort[k] * v_half[k] for k in np.flatnonzero(plant.imposed))
            real = [plant.model.dof_index(name) for name in plant.real]
            taken = ops.array([h * effort[k] * v_half[k] for k in real])
        energy = {"work": state["energy"]["work"] + work, "loss": state["energy"]["loss"] + loss}
        if plant.real:
            energy["real"] = state["energy"]["real"] + taken
        if plant.coupled:
            efforts = plant.external_effort(at, state)
            supplied = ops.array([h * efforts[k] * mean[k] for k in plant.external.dofs])
            energy["external"] = state["energy"]["external"] + supplied
        if "forces" in state["energy"]:
            powers = ops.sum(equations.force_powers(q_half, mean, at).values())
            energy["forces"] = state["energy"]["forces"] + h * powers
        total = state["drive_steps"]["unconverged"] + unconverged
        steps = {"acceleration": acceleration, "unconverged": total}
        moved = plant.with_motion(state, q + equations.rate(q, way), after)
        return moved | drives | {"energy": energy, "drive_steps": steps}
