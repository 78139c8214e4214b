"""What a tick computes from the samples of its joints: pure functions, on numbers and on symbols; times in seconds,
arrays flat.

Simulated joints are measured by encoders. Of real joints the motion is estimated from their samples, the plant follows
it, and what their drives do is compared with simulated twins and with the units that they claim.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from cosim.control import differentiated, energy_account, observer, shadow, unit_proof
from cosim.control.differentiated import SampleTrack
from cosim.control.observer import Estimate, predict
from cosim.control.shadow import EncoderSample, ShadowParams
from cosim.control.unit_proof import UnitSample
from cosim.core import ops
from cosim.core.layout import Layout
from cosim.core.types import FEEDBACK, Numeric, State
from cosim.core.units import TURN
from cosim.simulation.plant.encoder import Encoders
from cosim.simulation.plant.plant import Plant

# time constants in which the observer of a real joint settles
SETTLING = 10.0
# ticks after arming in which what is commanded may still jump
FIRST_TICKS = 1.5


@dataclass(kw_only=True)
class SampleFunctions:
    """A wired rig without drivers as its samples show it: the plant, its encoders, what is known of its real joints."""

    plant: Plant
    encoders: Encoders
    step_ns: int
    bandwidths: np.ndarray = field(default_factory=lambda: np.zeros(0))  # Hz, of the observers of real joints
    # (nv,) truth values: joints whose drives close their own loop; the gains of commands have no effect there
    drive_controlled: np.ndarray | None = None
    # (nv,) truth values: real joints that are commanded a velocity; none: no joint is
    velocity_controlled: np.ndarray | None = None
    shadow: ShadowParams | None = None  # of the twins of real joints, None without

    @property
    def nv(self) -> int:
        return self.plant.model.nv

    @property
    def nx(self) -> int:
        """Size of the plant's state."""
        return self.plant.layout.size

    @property
    def step(self) -> float:
        """s"""
        return self.step_ns * 1e-9

    @cached_property
    def turns_freely(self) -> np.ndarray:
        """(nv,) continuous joints with real motors, for which positions a whole turn apart are the same."""
        model, real = self.plant.model, self.plant.real
        return np.array([name in real and name in model.continuous for name in model.dof_names])

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

    def unit_finding(self, parts: State, dof: int, least: int = unit_proof.FEWEST_BLOCKS) -> tuple[str, str]:
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
