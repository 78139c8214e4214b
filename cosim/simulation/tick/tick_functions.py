"""The pure functions of a tick, on numbers and on symbols; times in seconds, arrays flat."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain

import numpy as np

from cosim.control import (
    differentiated,
    energy_account,
    guard,
    load_emulation,
    observer,
    shadow,
    standstill,
    unit_proof,
)
from cosim.control.bumpless_start import BumplessStart
from cosim.control.cogging import Cogging, cogging_effort
from cosim.control.control_loop import ControlLoop
from cosim.control.controlled_stop import update_stop, while_stopping
from cosim.control.differentiated import SampleTrack
from cosim.control.guard import Guard
from cosim.control.limits import NOT_FINITE
from cosim.control.load_emulation import LoadMotor, load_efforts
from cosim.control.observer import Estimate, predict
from cosim.control.sample_times import is_gap, next_horizon
from cosim.control.shadow import EncoderSample, ShadowParams
from cosim.control.unit_proof import UnitSample
from cosim.core import ops
from cosim.core.layout import Layout
from cosim.core.types import COMMAND, FEEDBACK, SETPOINTS, Limits, Numeric, State, requested_effort
from cosim.core.units import TURN
from cosim.mechanics.integrators.methods import INTEGRATORS
from cosim.simulation.plant.encoder import Encoders
from cosim.simulation.plant.event_stepper import EventStepper, PlantFault
from cosim.simulation.plant.integration import Integration
from cosim.simulation.plant.plant import Plant
from cosim.simulation.plant.sampling import due, samples_per_tick
from cosim.simulation.tick.coupled_plant import CoupledStep, Coupling, PlantPart, plant_part

# time constants in which the observer of a real joint settles
SETTLING = 10.0
# added to a `CouplingFault`, to take precedence over faults of the guard and of the plant
FIRST_OF_PARTS = float(NOT_FINITE + len(PlantFault))
# ticks after arming in which what is commanded may still jump
FIRST_TICKS = 1.5
# what the guard reads of every joint
GUARD_INPUTS = (
    *("position", "velocity", "temperature", "age", "reference", "stalled_time", "unseen_motion"),
    *("residual_energy", "load_residual_energy"),
    *("shadow_effort", "shadow_drive", "shadow_position", "shadow_slip"),
)
# … and in a rig with real joints
REAL_GUARD_INPUTS = ("judged_velocity", "unit_disagreement")


@dataclass
class TickFunctions:
    """A wired rig without drivers: its parts, and what a tick computes with them."""

    plant: Plant
    encoders: Encoders
    loops: Sequence[ControlLoop]
    guard: Guard  # (nv,)
    integrator: str
    step_ns: int
    substeps: int
    compiled: bool = True
    loads: Sequence[LoadMotor] = ()
    bandwidths: np.ndarray = field(default_factory=lambda: np.zeros(0))  # Hz, of the observers of real joints
    # (nv,) truth values: joints whose drives close their own loop; the gains of commands have no effect there
    drive_controlled: np.ndarray | None = None
    # (nv,) truth values: real joints that are commanded a velocity; none: no joint is
    velocity_controlled: np.ndarray | None = None
    coupling: Coupling | None = None  # of the plant with parts that are integrated apart
    shadow: ShadowParams | None = None  # of the twins of real joints, None without
    coggings: Sequence[Cogging | None] = ()  # (nv,) of real joints; none: no joint has one
    deceleration: float | None = None  # rad/s² or m/s² of a controlled stop; None: every stop is immediate

    @property
    def nv(self) -> int:
        return self.plant.model.nv

    @property
    def nx(self) -> int:
        """Size of the plant's state."""
        return self.plant.layout.size

    @property
    def limits(self) -> Limits:
        return self.guard.limits

    @property
    def has_controlled_stop(self) -> bool:
        return self.deceleration is not None

    @property
    def step(self) -> float:
        """s"""
        return self.step_ns * 1e-9

    @cached_property
    def turns_freely(self) -> np.ndarray:
        """(nv,) continuous joints with real motors, for which positions a whole turn apart are the same."""
        model, real = self.plant.model, self.plant.real
        return np.array([name in real and name in model.continuous for name in model.dof_names])

    @cached_property
    def blend_acceleration(self) -> np.ndarray:
        """(nv,) the acceleration that the effort limit of each joint gives the inertia of the mechanism about it in the
        initial state [per s²]; infinite without a limit or an inertia."""
        if not np.isfinite(self.limits.effort).any():
            return np.full(self.nv, np.inf)
        _, chart, _ = self._initial_motion
        equations = self.plant.model.equations
        inertia = np.asarray(equations.mass_diagonal(equations.coordinates(chart)), dtype=float)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(inertia > 0.0, self.limits.effort / inertia, np.inf)

    # --- measurement ---

    def measure(self, t: Numeric, x: Numeric, sensors: Numeric, request: Numeric) -> tuple[Numeric, ...]:
        """(next state of the sensors, then the fields of FEEDBACK (nv,)); x: of the plant; request: before."""
        state = self.plant.layout.unpack(x)
        q, v, effort = self.plant.feedback(t, state, request)
        true = {"position": q, "velocity": v, "effort": effort}
        x_next, sample = self.encoders.update(t, self.encoders.params, self.sensor_layout.unpack(sensors), true)
        return self.sensor_layout.pack(x_next), *(sample[name] for name in FEEDBACK)

    @cached_property
    def sensor_layout(self) -> Layout:
        _, q, v = self._initial_motion
        return Layout(self.encoders.initial(q, v))

    @cached_property
    def _initial_motion(self) -> tuple[State, np.ndarray, np.ndarray]:
        """(state of the plant, joint positions (nv,), velocities (nv,)) at t = 0."""
        state = self.plant.initial()
        q, v, _ = self.plant.motion(0.0, state)
        return state, self.plant.model.equations.chart(q), v

    def known_acceleration(self, t: Numeric, x: Numeric) -> Numeric:
        """(nv,) accelerations of prescribed and real joints, 0 elsewhere."""
        return self.plant.motion(t, self.plant.layout.unpack(x))[2]

    def locks(self, x: Numeric) -> Numeric:
        """(2, nv) which dofs are latched, and which are locked by a latch, brake or stop."""
        return self.plant.locks(self.plant.layout.unpack(x))

    def follow_real(
        self,
        t: Numeric,
        x: Numeric,
        position: Numeric,
        velocity: Numeric,
        interval: Numeric,
        delay: Numeric,
        sampled: Numeric,
        *estimate: Numeric,
    ) -> tuple[Numeric, ...]:
        """(the plant's state x (nx,) with its real joints where their last samples put them, followed time (nv,), time
        of the last sample (nv,), then the fields of `observer.Estimate` (m,)).

        position, velocity (nv,): by the last samples; interval (nv,): time [s] since the sample before, 0 where there
        is no new one; delay (nv,): age [s] of the sample at the time of the tick; sampled (nv,): times of the samples
        before; estimate: before. Followed time: from sample to sample [s], 0 where none came or where it came after a
        gap."""
        state, real, before = self.plant.layout.unpack(x), self._real, Estimate(*estimate)
        q, v, since, age = (values[real] for values in (position, velocity, interval, delay))
        after = observer.update(before, q, v, since, age, self.bandwidths, self.step)
        gap = observer.is_gap(before, since, self.bandwidths)
        followed = ops.where(ops.logical_and(since > 0.0, ops.logical_not(gap)), since, 0.0)
        latest = observer.extrapolate(after, age, self.bandwidths)
        return (
            self.plant.layout.pack(self.plant.with_real_motion(state, *latest)),
            ops.set_at(np.zeros(self.nv), real, followed),
            ops.where(interval > 0.0, t - delay, sampled),
            *after,
        )

    def account_for_drives(
        self,
        t: Numeric,
        x: Numeric,
        start: Numeric,
        velocity: Numeric,
        reported: Numeric,
        request: Numeric,
        interval: Numeric,
        followed: Numeric,
        power: Numeric,
        work: Numeric,
        residual: Numeric,
    ) -> tuple[Numeric, ...]:
        """(power, work, residual energy) of the drives of real joints, (nv,) each, 0 for others.

        x (nx,): the state of the plant; start: the flat BumplessStart; velocity, reported effort, interval (nv,): by
        the last samples; followed: see `follow_real`; request (nv,): of the tick before; power, work, residual:
        before; see `energy_account.accounted` and `energy_account.without_gap`."""
        exerted = energy_account.effort_of_drive(reported, request)
        real, is_first = np.isin(np.arange(self.nv), self._real), t <= start[0]
        sampled = ops.where(real, exerted * velocity, 0.0)
        latest, done = energy_account.accounted(power, work, sampled, interval, followed, is_first)
        taken = self.plant.work_taken(self.plant.layout.unpack(x))
        return latest, *energy_account.without_gap(taken, done, residual, interval, followed, is_first)

    # --- the simulated twins of real joints ---

    @cached_property
    def _real(self) -> list[int]:
        """The real dofs."""
        return [self.plant.model.dof_index(name) for name in self.plant.real]

    def shadow_motion(
        self,
        t: Numeric,
        start: Numeric,
        position: Numeric,
        velocity: Numeric,
        interval: Numeric,
        delay: Numeric,
        innovation: Numeric,
        slipped: Numeric,
        *before: Numeric,
    ) -> tuple[Numeric, ...]:
        """(innovation, slip, the fields of `shadow.EncoderSample`, time at which the estimated motion has settled),
        (nv,) each, before the estimate is updated; the first two are 0 for other joints.

        start: the flat BumplessStart; position, velocity: by the last samples; interval, delay: see `follow_real`; then
        the values of the tick before, and the estimate (m,) by the samples before."""
        assert self.shadow is not None
        real, n = self._real, len(Estimate._fields)
        before, estimate = before[:-n], Estimate(*before[-n:])
        then = predict(estimate.motion, interval[real])
        found = ops.set_at(np.zeros(self.nv), real, position[real] - then.position)
        last, settled = EncoderSample(*before[:-1]), before[-1]
        sample = EncoderSample(position, velocity, t + np.zeros(self.nv), delay)
        is_real, is_first, new = np.isin(np.arange(self.nv), real), t <= start[0], interval > 0.0
        # after time that the model has not seen, and in which nothing was measured
        slept = ops.abs(shadow.clock_slip(last, sample, interval)) > 0.5 * self.step
        horizon = ops.set_at(np.zeros(self.nv), real, estimate.horizon)
        late = ops.logical_and(new, ops.logical_or(slept, interval > horizon))
        settled = ops.where(ops.logical_or(is_first, late), t + self._settling, settled)
        moved = shadow.slip(slipped, last, sample, interval, self.shadow.window)
        judged, followed = ops.logical_and(new, t >= settled), ops.logical_and(new, ops.logical_not(late))
        residuals = ops.where(judged, found, innovation), ops.where(followed, moved, slipped)
        none = ops.logical_or(is_first, ~is_real)
        kept = (ops.where(ops.logical_or(new, is_first), *pair) for pair in zip(sample, last, strict=True))
        return *(ops.where(none, 0.0, residual) for residual in residuals), *kept, settled

    def shadow_efforts(
        self,
        t: Numeric,
        x: Numeric,
        start: Numeric,
        request: Numeric,
        reported: Numeric,
        delay: Numeric,
        horizon: Numeric,
        settled: Numeric,
        effort: Numeric,
        drive: Numeric,
        before: Numeric,
    ) -> tuple[Numeric, ...]:
        """(effort on the joint beyond its twin's, effort of the drive beyond it, estimated velocity), (nv,) each;
        the first two are 0 for other joints, and stay as they are until the estimated motion has settled and while the
        next sample is overdue.

        x (nx,): the state of the plant, at its last samples; start: the flat BumplessStart; request (nv,): of the tick
        before; reported (nv,): efforts by the last samples; delay (nv,): see `follow_real`; horizon (m,): of the
        estimate; settled: see `shadow_motion`; then the values of the tick before.
        """
        assert self.shadow is not None
        state, real = self.plant.layout.unpack(x), self._real
        _, velocity, _ = self.plant.real_motion(state)
        state = state | {"real": (velocity - before[real]) / self.step}
        solution = self.plant.efforts(t, state, request)
        twin = self._twin_efforts(solution["outputs"], request, reported)
        sampled = solution["effort"] - twin, energy_account.effort_of_drive(reported, twin) - twin
        none = ops.logical_or(~np.isin(np.arange(self.nv), real), t <= start[0])
        on_time = delay <= ops.set_at(np.zeros(self.nv), real, horizon)
        judged = ops.logical_and(t >= settled, on_time)
        residuals = (
            ops.where(judged, shadow.filtered(old, new, self.shadow.bandwidth, self.step), old)
            for old, new in zip((effort, drive), sampled, strict=True)
        )
        now = ops.set_at(np.zeros(self.nv), real, velocity)
        return *(ops.where(none, 0.0, residual) for residual in residuals), now

    @cached_property
    def _settling(self) -> float:
        """s, after which the observers of the motion have forgotten a wrong estimate."""
        return SETTLING / (TURN * float(np.min(self.bandwidths)))

    def _twin_efforts(self, outputs: Mapping[str, State], request: Numeric, reported: Numeric) -> Numeric:
        """(nv,) efforts of the twins of drives. Where the rig has no actuator, the requested effort; of a drive that
        closes a loop of its own, whose request is not known, the effort that it reports."""
        closed = np.zeros(self.nv, dtype=bool) if self.drive_controlled is None else self.drive_controlled
        twin = ops.where(closed, energy_account.effort_of_drive(reported, request), request)
        for name, k in zip(self.plant.real, self._real, strict=True):
            if name in self.plant.twins and not closed[k]:
                twin = ops.set_at(twin, [k], [outputs[name]["effort"]])
        return twin

    # --- units of real joints ---

    @property
    def unit_start(self) -> State:
        """What `watch_units` keeps, of the real joints in their order, before the first sample."""
        n = len(self._real)
        return {"track": differentiated.initial(n), "proofs": unit_proof.initial(n)}

    @cached_property
    def unit_layout(self) -> Layout:
        return Layout(self.unit_start)

    def unit_finding(self, parts: State, dof: int, least: int = unit_proof.BLOCKS) -> tuple[str, str]:
        """(which units of a dof disagree most, what to check), empty for a dof that is not real; parts: of the memory;
        least: blocks of samples that are enough for it."""
        if dof not in self._real:
            return "", ""
        k, state = self._real.index(dof), parts["unit_state"]["proofs"]
        proofs = [row[k] for row in unit_proof.proofs_of(self._chosen(self.drive_controlled))]
        return unit_proof.finding(proofs, least, state["sums"][..., k], state["proven"][:, k])

    def watch_units(
        self,
        t: Numeric,
        x: Numeric,
        start: Numeric,
        position: Numeric,
        velocity: Numeric,
        effort: Numeric,
        interval: Numeric,
        request: Numeric,
        commanded: Numeric,
        commanded_velocity: Numeric,
        kept: Numeric,
    ) -> tuple[Numeric, ...]:
        """(kept; judged velocity, disagreement of units, mask of the proofs that are done, (nv,) each): see
        `differentiated` and `unit_proof`. Of other joints the velocity is the measured one, and the rest 0.

        x (nx,): the state of the plant; start: the flat BumplessStart; position, velocity, effort, interval (nv,): by
        the last samples; request, commanded, commanded_velocity (nv,): of the tick before; kept: of `unit_layout`.
        """
        real, state = self._real, self.unit_layout.unpack(kept)
        track, proofs = SampleTrack(**state["track"]), state["proofs"]
        q, v, since = position[real], velocity[real], interval[real]
        track = differentiated.followed(track, q, since, self.step, t <= start[0])
        path = proofs["sample"]["commanded"] + commanded_velocity[real] * since
        work = self.plant.work_taken(self.plant.layout.unpack(x))[real]
        target = ops.where(self._chosen(self.velocity_controlled), path, commanded[real])
        sample = UnitSample(q, v, effort[real], target, request[real], work)
        closed, begins = self._chosen(self.drive_controlled), t <= start[0] + FIRST_TICKS * self.step
        proofs, disagreement = unit_proof.updated(proofs, sample, since, track.noise, self.step, closed, begins)
        judged = differentiated.larger(v, track.bound)
        mask: Numeric = sum(2.0**k * done for k, done in enumerate(proofs["proven"]))
        none = np.zeros(self.nv)
        return (
            self.unit_layout.pack({"track": track._asdict(), "proofs": proofs}),
            ops.set_at(velocity, real, judged),
            ops.set_at(none, real, disagreement),
            ops.set_at(none, real, mask),
        )

    def _chosen(self, dofs: np.ndarray | None) -> np.ndarray:
        """bool (m,): of the real joints, those among truth values (nv,) of all; None: none."""
        return np.zeros(len(self._real), dtype=bool) if dofs is None else dofs[self._real]

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
        return (*GUARD_INPUTS, *(REAL_GUARD_INPUTS if self.plant.real else ()))

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
