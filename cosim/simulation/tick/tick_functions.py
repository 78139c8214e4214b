"""The pure functions of a tick, on numbers and on symbols; times in seconds, arrays flat.

`sample_functions` has those of the samples; here are those of the command, after the guard, and of the step of the
plant.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np

from cosim.control import (
    energy_account,
    guard,
    load_emulation,
    shadow,
    standstill,
    virtual_walls,
)
from cosim.control.bumpless_start import BumplessStart
from cosim.control.cogging import Cogging, cogging_effort
from cosim.control.control_loop import ControlLoop
from cosim.control.controlled_stop import update_stop, while_stopping
from cosim.control.guard import Guard
from cosim.control.limits import NOT_FINITE
from cosim.control.load_emulation import LoadMotor, load_efforts
from cosim.control.sample_times import is_gap, next_horizon
from cosim.core import ops
from cosim.core.types import COMMAND, SETPOINTS, Limits, Numeric, State, requested_effort
from cosim.mechanics.integrators.methods import INTEGRATORS
from cosim.simulation.plant.event_stepper import EventStepper, PlantFault
from cosim.simulation.plant.integration import Integration
from cosim.simulation.plant.recorded_reactions import reaction_sizes
from cosim.simulation.plant.sampling import due, samples_per_tick
from cosim.simulation.tick.coupled_plant import CoupledStep, Coupling, PlantPart, plant_part
from cosim.simulation.tick.sample_functions import SampleFunctions

# added to a `CouplingFault`, to take precedence over faults of the guard and of the plant
FIRST_OF_PARTS = float(NOT_FINITE + len(PlantFault))
# what the guard reads of every joint
GUARD_INPUTS = (
    *("position", "velocity", "temperature", "age", "reference", "stalled_time", "unseen_motion"),
    *("residual_energy", "load_residual_energy"),
    *("shadow_effort", "shadow_drive", "shadow_position", "shadow_slip"),
)
# … what it asks of the model where a limit needs it
REACTION_INPUTS = ("reaction_force", "reaction_moment")
# … and in a rig with real joints
REAL_GUARD_INPUTS = ("judged_velocity", "unit_disagreement")
# … with virtual contacts
HAPTIC_GUARD_INPUTS = ("wall_energy", "wall_effort")


@dataclass(kw_only=True)
class TickFunctions(SampleFunctions):
    """A wired rig without drivers: its parts, and what a tick computes with them."""

    loops: Sequence[ControlLoop]
    guard: Guard  # (nv,)
    integrator: str
    substeps: int
    compiled: bool = True
    loads: Sequence[LoadMotor] = ()
    coupling: Coupling | None = None  # of the plant with parts that are integrated apart
    given_blend_acceleration: np.ndarray | None = None  # (nv,) where numbers of the plant are inputs
    coggings: Sequence[Cogging | None] = ()  # (nv,) of real joints; none: no joint has one
    deceleration: float | None = None  # rad/s² or m/s² of a controlled stop; None: every stop is immediate

    @property
    def limits(self) -> Limits:
        return self.guard.limits

    @property
    def has_controlled_stop(self) -> bool:
        return self.deceleration is not None

    @cached_property
    def blend_acceleration(self) -> np.ndarray:
        """(nv,) the acceleration that the effort limit of each joint gives the inertia of the mechanism about it in the
        initial state [per s²]; infinite without a limit or an inertia."""
        if self.given_blend_acceleration is not None:
            return self.given_blend_acceleration
        if not np.isfinite(self.limits.effort).any():
            return np.full(self.nv, np.inf)
        _, chart, _ = self._initial_motion
        equations = self.plant.model.equations
        inertia = np.asarray(equations.mass_diagonal(equations.coordinates(chart)), dtype=float)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(inertia > 0.0, self.limits.effort / inertia, np.inf)

    # --- command ---

    def reference_positions(self, t: Numeric, start: Numeric, *fallbacks: Numeric) -> Numeric:
        """(nv,) reference positions of the joints with a tracking limit.

        start: the flat BumplessStart; fallbacks: for each of these loops with a fallback in turn, whether it is active
        (1,), and the positions that it holds.
        """
        reference: Numeric = np.zeros(self.nv)
        remaining = iter(fallbacks)
        for loop in self._tracked:
            sample = BumplessStart.of(start, self.nv).at(loop.index).reference(loop.trajectory, t)["position"]
            if loop.fallback is not None:
                active, hold = next(remaining), next(remaining)
                sample = ops.where(active[0] > 0.5, hold, sample)
            reference = ops.set_at(reference, loop.index, sample)
        return reference

    @property
    def _tracked(self) -> list[ControlLoop]:
        """Loops of joints with a limit that checks reference positions."""
        bounded = self.guard.uses_reference
        return [loop for loop in self.loops if loop.needs_reference("position") and bounded[loop.index].any()]

    def watch_standstill(
        self,
        t: Numeric,
        start: Numeric,
        position: Numeric,
        velocity: Numeric,
        effort: Numeric,
        reference: Numeric,
        request: Numeric,
        stalled_time: Numeric,
        unseen_motion: Numeric,
        last_position: Numeric,
        last_reference: Numeric,
        *samples: Numeric,
    ) -> tuple[Numeric, ...]:
        """(stalled_time, unseen_motion, last_position, last_reference), (nv,) each, of this tick from the tick before;
        0 in the first tick after arming.

        start: the flat BumplessStart; effort: measured; request: effort requested in the tick before; samples: in a rig
        with real joints, interval and followed time of `follow_real`. Lack of feedback is no standstill: of a real
        joint only time counts over which its samples came.
        """
        limits, effort = self.limits, ops.maximum(ops.abs(effort), ops.abs(request))
        bounds, is_first = (limits.effort, limits.velocity), t <= start[0]
        passed, new = self._sampled_time(*samples)
        stalled = standstill.stalled_time(stalled_time, effort, velocity, bounds, passed)
        positions, references = (last_position, position), (last_reference, reference)
        unseen = standstill.unseen_motion(unseen_motion, positions, references, velocity, limits.velocity, passed)
        found = [ops.where(is_first, 0.0, stalled), ops.where(is_first, 0.0, unseen), position, reference]
        if new is None:
            return tuple(found)
        before, counts = (stalled_time, unseen_motion, last_position, last_reference), ops.logical_or(new, is_first)
        return tuple(ops.where(counts, *pair) for pair in zip(found, before, strict=True))

    def _sampled_time(self, *samples: Numeric) -> tuple[Numeric, Numeric]:
        """(time [s] over which motion was measured up to this tick, whether a new sample came), (nv,) each: of
        simulated joints the step, and always; (step, None) in a rig without real joints.

        samples: interval and followed time of `follow_real`, of a rig with real joints."""
        if not samples:
            return self.step, None
        real, (interval, followed) = np.isin(np.arange(self.nv), self._real), samples
        return ops.where(real, followed, self.step), ops.logical_or(~real, interval > 0.0)

    @property
    def guard_inputs(self) -> tuple[str, ...]:
        """What the guard reads of every joint of this rig."""
        real = REAL_GUARD_INPUTS if self.plant.real else ()
        return (*GUARD_INPUTS, *real, *(HAPTIC_GUARD_INPUTS if self.plant.haptic else ()))

    def feel_contacts(
        self, t: Numeric, x: Numeric, start: Numeric, measured: Numeric, *before: Numeric
    ) -> tuple[Numeric, ...]:
        """(energy, effort, held, position), (nv,) each, of this tick from the tick before; see `virtual_walls`.

        x (nx,): the state of the plant; start: the flat BumplessStart; measured (nv,): positions by the last samples;
        energy [J]: that virtual contacts have given to all joints whose drives exert them, the same at each of these;
        effort: that is to be exerted for them; held, position: effort and measured positions of the tick before. A
        drive answers a command with a sample of the time at which it begins to follow it, which is read in the next
        tick: the motion while an effort is held is known two ticks later."""
        energy, effort, held, position = before
        state = self.plant.layout.unpack(x)
        q, _, _ = self.plant.motion(t, state)
        felt, is_first = np.isin(self.plant.model.dof_names, self.plant.haptic), t <= start[0]
        given = ops.where(is_first, 0.0, energy + virtual_walls.work_of_held(held, measured - position))
        now = self.plant.haptic_effort(t, q, state)
        return ops.where(felt, given, 0.0), now, ops.where(is_first, 0.0, effort), measured

    def check_command(
        self, t: Numeric, x: Numeric, start: Numeric, request: Numeric, *inputs: Numeric
    ) -> tuple[Numeric, ...]:
        """(the fields of COMMAND (nv,), guard faults (nv,), warned (nv,), fault (), request before and now (nv,)): the
        commands of all controllers after the guard.

        inputs: `guard_inputs`, (nv,) each, in a rig with real joints interval and followed time of `follow_real`, then
        the fields of COMMAND of each loop in turn as one vector. fault is 0, or the largest fault of the guard or of
        the plant; nothing is written after a fault, and the request is then the one that would have been.
        """
        commands: list[Numeric] = [0.0] * (len(COMMAND) * self.nv)
        places = [self.nv * k + loop.index for loop in self.loops for k in range(len(COMMAND))]
        for place, value in zip(chain.from_iterable(places), inputs[-1], strict=True):
            commands[place] = value
        command: State = dict(zip(COMMAND, ops.array(commands).reshape(len(COMMAND), self.nv), strict=True))
        if self.drive_controlled is not None:
            command |= {gain: ops.where(self.drive_controlled, 0.0, command[gain]) for gain in ("kp", "kd")}
        known = dict(zip(self.guard_inputs, inputs, strict=False)) | {"request": request, "armed": t - start[0]}
        known["new"] = self._sampled_time(*inputs[len(self.guard_inputs) : -1])[1]
        if not self.plant.real:
            known |= {"judged_velocity": known["velocity"], "unit_disagreement": np.zeros(self.nv)}
        if self.plant.haptic:
            command["effort"] = command["effort"] + known["wall_effort"]
        else:
            known["wall_energy"] = np.zeros(self.nv)
        known |= dict.fromkeys(REACTION_INPUTS, np.zeros(self.nv))
        if self.guard.needs_reaction.any():
            known |= reaction_sizes(self.plant, t, self.plant.layout.unpack(x), request)
        if self.coggings:
            command["effort"] = command["effort"] + cogging_effort(self.coggings, known["position"])
        safe, guard_fault, warned = guard.check(self.guard, known, command)
        if self.has_controlled_stop:
            safe = guard.check(while_stopping(self.guard), known, command)[0]
        fault = self.plant_fault(t, x)
        for k in range(self.nv):
            fault = ops.maximum(fault, guard_fault[k])
        fields = tuple(safe[name] for name in COMMAND)
        requested = self.request(known["position"], known["velocity"], *fields)
        return *fields, guard_fault, warned, fault, request, ops.where(fault > 0.0, requested, request)

    def controlled_stop(
        self,
        t: Numeric,
        start: Numeric,
        v: Numeric,
        guard_fault: Numeric,
        fault: Numeric,
        requested: Numeric,
        reason: Numeric,
        first: Numeric,
    ) -> tuple[Numeric, ...]:
        """(start, reason (), first (nv,), fault ()) after the stops of this tick. A stop of category 1 slows the
        references down, and becomes the fault when the joints are at rest.

        start: the flat BumplessStart; v, guard_fault (nv,), fault: of this tick; requested: whether a stop is
        requested; reason, first: what started the stop in an earlier tick, and the guard faults (nv,) of that tick.
        """
        begun = BumplessStart.of(start, self.nv)
        assert self.deceleration is not None and begun.stop is not None
        position, velocity = np.zeros(self.nv), v
        for loop in self.loops:
            sample = begun.at(loop.index).reference(loop.trajectory, t)
            position = ops.set_at(position, loop.index, sample["position"])
            if loop.needs_reference("velocity"):
                velocity = ops.set_at(velocity, loop.index, sample["velocity"])
        flat, *result = update_stop(
            begun.stop,
            t,
            position,
            velocity,
            guard_fault,
            fault,
            requested,
            reason,
            first,
            self.deceleration,
            self.step,
        )
        return ops.concatenate([start[: BumplessStart.size(self.nv)], flat]), *result

    @staticmethod
    def request(q: Numeric, v: Numeric, *command: Numeric) -> Numeric:
        """(nv,) effort that the fields of COMMAND request of the drives at these positions and velocities."""
        return requested_effort(dict(zip(COMMAND, command, strict=True)), {"position": q, "velocity": v})

    def load_effort(
        self,
        t: Numeric,
        x: Numeric,
        start: Numeric,
        request: Numeric,
        before: Numeric,
        velocity: Numeric,
        reported: Numeric,
        interval: Numeric,
        last: Numeric,
        horizon: Numeric,
        silent: Numeric,
        powers: Numeric,
        works: Numeric,
        sums: Numeric,
        slow: Numeric,
        found: Numeric,
    ) -> tuple[Numeric, ...]:
        """(commands (m,) of the load motors, powers (2, m), works (2, m), residual energies (nv,), sums and slow
        signals of `load_tracking`, (m,) for each of its METRICS, then interval, horizon and silence (m,) of their
        samples). The account: of the commanded efforts, then of the efforts that the load motors exert. The tracking
        is judged once the estimated motion has settled, and while no sample of the load motor is overdue.

        start: the flat BumplessStart; before (m,): commands of the tick before; velocity, reported, interval (m,): by
        the last samples of the load motors; last, horizon, silent (m,): before, see `sample_times`, silent [s]: time of
        ticks without a sample; found (m,): error of the tick before; see `energy_account.accounted`."""
        efforts = self.plant.efforts(t, self.plant.layout.unpack(x), request)
        commands = load_efforts(self.loads, efforts["effort"], efforts["v"], efforts["a"])
        exerted = energy_account.effort_of_drive(reported, before)
        is_first, new = t <= start[0], interval > 0.0
        followed = ops.where(is_gap(interval, last, horizon), 0.0, interval)
        pairs = [
            energy_account.accounted(powers[k], works[k], effort * velocity, interval, followed, is_first)
            for k, effort in enumerate((commands, exerted))
        ]
        silent = ops.where(new, 0.0, silent + self.step)
        overdue = silent > horizon
        horizon = ops.where(new, next_horizon(interval, last, self.step), horizon)
        last = ops.where(new, interval, last)
        latest, done = (ops.array(rows) for rows in zip(*pairs, strict=True))
        joints = [load.joint for load in self.loads]
        settled = t >= start[0] + self._settling
        error, rate = ops.where(settled, exerted - commands, 0.0), (commands - before) / self.step
        now = ops.array([error, rate, efforts["a"][joints], efforts["v"][joints]])
        filtered = shadow.filtered(slow, now, load_emulation.TRACKING_BANDWIDTH, self.step)
        slow = ops.where(settled, ops.where(overdue, slow, filtered), 0.0)
        sums = ops.where(settled, ops.where(overdue, sums, load_emulation.summed(sums, slow)), 0.0)
        error = ops.where(overdue, found, error)
        figures = (error, load_emulation.delay(sums), *load_emulation.added_load(sums))
        residual = ops.set_at(np.zeros(self.nv), joints, done[1] - done[0])
        return commands, latest, done, residual, sums, slow, *figures, last, horizon, silent

    def check_coupling(self, values: Numeric, energy: Numeric, fault: Numeric) -> Numeric:
        """The fault () of a tick, of its parts too: FIRST_OF_PARTS + a `CouplingFault`; see `CoupledStep.fault`."""
        assert self.coupling is not None
        found = self.coupling.fault(values[0], energy)
        return ops.maximum(fault, ops.where(found > 0.0, FIRST_OF_PARTS + found, 0.0))

    # --- step ---

    @cached_property
    def integration(self) -> Integration:
        drive_steps = self.substeps // self.plant_steps
        return Integration(self.plant, self.integrator, self.compiled, drive_steps)

    @cached_property
    def plant_steps(self) -> int:
        """Of the whole plant in a tick; drives may take more."""
        multirate = INTEGRATORS[self.integrator].multirate
        return math.lcm(*self.samples.values()) if multirate else self.substeps

    @cached_property
    def stepping(self) -> EventStepper:
        length = self.step / self.plant_steps
        return EventStepper(self.plant, self.integration.advance, length, self.compiled, NOT_FINITE)

    def advance(self, t: Numeric, x: Numeric, request: Numeric, *setpoints: Numeric) -> Numeric:
        """The plant's state one step later. setpoints (nv,) each: SETPOINTS, of a plant with sampled actuators."""
        x = self.integration.at_start(x)
        for k in range(self.plant_steps):
            begin, sampled = t + k * self.stepping.length, due(k, self.plant_steps, self.samples)
            x = self.integration.sampled(begin, x, request, *setpoints, dofs=sampled)
            x = self.stepping.advance(begin, x, request)
        return x

    @property
    def held(self) -> int:
        """Numbers that are constant in a tick of the plant: the request to the drives and their setpoints."""
        return self.nv * (1 + (len(SETPOINTS) if self.plant.periods else 0))

    @cached_property
    def coupled_step(self) -> CoupledStep:
        """Of a rig whose parts are all compiled: a tick of the plant and of the parts."""
        assert self.coupling is not None
        return CoupledStep(self.coupling, self, self.held, self.compiled)

    @cached_property
    def plant_part(self) -> PlantPart:
        """The plant of a rig with parts as one of them."""
        assert self.coupling is not None
        return plant_part(self.coupling, self, self.held)

    @cached_property
    def samples(self) -> dict[str, int]:
        """Dof -> samples of its actuator per tick. Raises ValueError where that is no whole number."""
        counts = {name: samples_per_tick(period, self.step_ns) for name, period in self.plant.periods.items()}
        if None in counts.values():
            raise ValueError("a tick is a whole number of samples of each actuator")
        return {name: count for name, count in counts.items() if count}

    def plant_fault(self, t: Numeric, x: Numeric) -> Numeric:
        """0, or the fault code of the plant's state x: NOT_FINITE + a `PlantFault`."""
        return self.stepping.fault(t, x)
