"""A motion whose speed is changed a little, so that it ends without vibration of elastic links.

Input shaping is exact for a linear mechanism. In a large motion the frequencies change, and centrifugal and Coriolis
forces bend the links too, so that some vibration is left. Here the path stays, and the time along it becomes

    τ(t) = t + sin²(π t / end) Σ (a cos ω t + b sin ω t)

with one pair of numbers a, b for each vibration ω. They are found by the Gauss–Newton method such that the modes are at
rest at the end of the motion, which is simulated with the equations of the whole mechanism.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cosim.control.elastic_modes import elastic_modes, implicit_step
from cosim.control.vibrations import Vibrations
from cosim.core import ops
from cosim.core.compile import ArrayPort, compile_for_batches
from cosim.core.types import Array, Numeric, Trajectory, TrajectoryContext, breaks_of

STEPS_PER_PERIOD = 60  # per period of the fastest vibration that is shaped for
MOST_STEPS = 20_000  # longer motions keep their speed
WEIGHT_DIFFERENCE = 1e-4  # s
ITERATIONS = 8
LEFT_VIBRATION = 1e-3  # of the vibration without a change of speed
REST_DEFLECTION = 1e-9  # m or rad; a deflection that counts as 0
UNRELATED = 1e-3  # of the largest singular value: vibrations that the motion does not reach
MOST_CHANGE = 0.2  # of the speed
STALLED_RATIO = 0.95
NEWTON_STEPS = 60  # to an instant of the path; each halves the error at least


@dataclass(frozen=True, eq=False)
class TimeWarp:
    """The time τ(t) along the path, which ends the motion without vibration. omegas: (k,) rad/s; weights: (2 k,) s, a
    and b of each."""

    end: float
    omegas: Array
    weights: Array

    def __call__(self, t: Numeric) -> tuple[Numeric, Numeric, Numeric]:
        """(τ, dτ/dt, d²τ/dt²)"""
        value, rate, change = (
            sum(weight * part for weight, part in zip(self.weights, parts, strict=True))
            for parts in _parts(ops.minimum(t, self.end), self.end, self.omegas)
        )
        return t + value, 1.0 + rate, change

    def inverse(self, time: float) -> float:
        """The t with τ(t) = time, by Newton's method: the speed is within 20 % of 1."""
        t = time
        for _ in range(NEWTON_STEPS):
            value, rate, _ = self(t)
            t = t - (value - time) / rate
        return float(t)


@dataclass(frozen=True, eq=False)
class RetimedTrajectory:
    """trajectory(τ(t)); change: the largest one of the speed, as a fraction of it"""

    trajectory: Trajectory
    warp: TimeWarp
    change: float

    @property
    def end(self) -> float:
        return self.trajectory.end

    @property
    def breaks(self) -> Array:
        """Those of the trajectory, at the times that the warp takes to them, and its end."""
        return np.array([*map(self.warp.inverse, breaks_of(self.trajectory)), self.warp.end])

    def sample(self, t: Numeric) -> dict[str, Numeric]:
        time, rate, change = self.warp(t)
        sample = dict(self.trajectory.sample(time))
        velocity, acceleration = sample["velocity"], sample["acceleration"]
        return sample | {"velocity": velocity * rate, "acceleration": acceleration * rate**2 + velocity * change}


def retimed(trajectory: Trajectory, found: Vibrations, context: TrajectoryContext) -> Trajectory:
    """The trajectory with a speed that leaves as little as possible of the vibrations `found` at its end; itself where
    it takes too many of their periods to be simulated."""
    omegas = np.array([2.0 * math.pi * mode.frequency for mode in found.modes])
    count = math.ceil(trajectory.end * omegas.max() / (2.0 * math.pi) * STEPS_PER_PERIOD)
    if count > MOST_STEPS:
        return trajectory
    left = SimulatedMotion(trajectory, found, context, omegas, count)
    weights = np.zeros(2 * len(omegas))
    missing, *moved = left(np.vstack([weights, WEIGHT_DIFFERENCE * np.eye(len(weights))]))
    slopes = (np.array(moved) - missing).T / WEIGHT_DIFFERENCE
    enough = LEFT_VIBRATION * np.linalg.norm(missing) + REST_DEFLECTION
    for _ in range(ITERATIONS):
        if np.linalg.norm(missing) <= enough:
            break
        better = weights - np.linalg.lstsq(slopes, missing, rcond=UNRELATED)[0]
        better = better * MOST_CHANGE / max(MOST_CHANGE, left.change_of_speed(better))
        (then,) = left(better[None, :])
        if np.linalg.norm(then) > STALLED_RATIO * np.linalg.norm(missing):
            break  # vibrations of one frequency in two directions, or the largest change
        weights, missing = better, then
    return RetimedTrajectory(trajectory, TimeWarp(trajectory.end, omegas, weights), left.change_of_speed(weights))


def _parts(t: Numeric, end: float, omegas: Array) -> tuple[list[Numeric], list[Numeric], list[Numeric]]:
    """What the weights of a warp multiply, and its first and second derivative, 2 k each."""
    turn = math.pi / end
    sine, cosine = ops.sin(turn * t), ops.cos(turn * t)
    window, slope, bend = sine**2, 2.0 * turn * sine * cosine, 2.0 * turn**2 * (cosine**2 - sine**2)
    values, rates, changes = [], [], []
    for omega in omegas:
        c, s = ops.cos(omega * t), ops.sin(omega * t)
        for part, next_part in ((c, -s), (s, c)):
            values.append(window * part)
            rates.append(slope * part + omega * window * next_part)
            changes.append((bend - omega**2 * window) * part + 2.0 * omega * slope * next_part)
    return values, rates, changes


class SimulatedMotion:
    """The vibration that is left at the end of a motion: those dofs that neither a drive nor a trajectory moves are
    simulated, from rest."""

    def __init__(
        self, trajectory: Trajectory, found: Vibrations, context: TrajectoryContext, omegas: Array, count: int
    ) -> None:
        """count: of the steps"""
        self._trajectory, self._found, self._context = trajectory, found, context
        model, self._free = context.model, found.dofs
        self._count, self._period = count, trajectory.end / count
        self._times = (np.arange(count) + 0.5) * self._period
        self._parts = np.array(_parts(self._times, trajectory.end, omegas))  # (3, 2 k, count)
        self._start = context.positions_at(0.0)
        start = elastic_modes(model, self._start)
        self._start[start.modes] = start.position
        gain, kept = implicit_step(start.own_mass(context.passive), start.damping, start.stiffness, self._period)
        m, free = len(start.modes), len(self._free)
        self._gain, self._kept = np.eye(free), np.eye(free)
        self._gain[:m, :m], self._kept[:m, :m] = gain, kept
        n, vector = len(context.index), (model.nv,)
        motion = [ArrayPort(name, vector) for name in ("position", "velocity", "acceleration")]
        state = [ArrayPort("q", (model.nq,)), ArrayPort("v", (free,))]
        # never in plain Python: every step of it would take as long as thousands here
        self._step = compile_for_batches(
            self._stepped, [*state, *motion, ArrayPort("t", ())], "step_of_elastic_links", interpret=False
        )
        self._sample = compile_for_batches(
            lambda t: tuple(trajectory.sample(t)[name] for name in ("position", "velocity", "acceleration")),
            [ArrayPort("t", ())],
            f"motion_of_{n}_joints",
            interpret=False,
        )

    def change_of_speed(self, weights: Array) -> float:
        return float(np.abs(weights @ self._parts[1]).max())

    def __call__(self, weights: Array) -> Array:
        """(b, 2 k) of b warps with these weights (b, 2 k)."""
        model, context, b = self._context.model, self._context, len(weights)
        shift, rate, change = (part.T @ weights.T for part in self._parts)  # (count, b)
        x, v, a = (
            np.reshape(part, (self._count, b, -1)) for part in self._sample((self._times[:, None] + shift).ravel())
        )
        rate, change = 1.0 + rate[:, :, None], change[:, :, None]
        x, v, a = x, v * rate, a * rate**2 + v * change
        position, velocity, acceleration = (
            np.tile(self._start, (b, 1)),
            np.zeros((b, model.nv)),
            np.zeros((b, model.nv)),
        )
        q = np.tile(np.asarray(model.coordinates(self._start), dtype=float), (b, 1))
        speed = np.zeros((b, len(self._free)))
        for k, time in enumerate(self._times):
            position[:, context.index], velocity[:, context.index] = x[k], v[k]
            acceleration[:, context.index] = a[k]
            for dof, other in context.prescribed.items():
                sample = other.sample(float(time))
                position[:, dof], velocity[:, dof] = sample["position"][0], sample["velocity"][0]
                acceleration[:, dof] = sample["acceleration"][0]
            q, speed = self._step(q, speed, position, velocity, acceleration, np.full(b, time))
        ends = np.array([np.asarray(model.chart(row), dtype=float)[self._free] for row in q])
        return np.hstack([ends - self._found.rest, speed]) @ self._found.deflection.T

    def _stepped(
        self, q: Numeric, speed: Numeric, position: Numeric, velocity: Numeric, acceleration: Numeric, t: Numeric
    ) -> tuple[Numeric, Numeric]:
        """The coordinates and the velocities of the free dofs a period later; the motion of the others is that in the
        middle of it."""
        equations, half, free = self._context.model.equations, 0.5 * self._period, self._free
        known = ~np.isin(np.arange(self._context.model.nv), free)
        v = ops.set_at(velocity, free, speed)
        chart = equations.chart(q + half * equations.rate(q, v))
        middle = equations.coordinates(ops.set_at(position, free, chart[free]))
        applied = -equations.friction_effort(v)
        found, _ = equations.hybrid_dynamics(middle, v, acceleration, applied, known, t)
        change = self._gain @ found[free]
        mean = ops.set_at(v, free, speed + half * change)
        return q + self._period * equations.rate(middle, mean), self._kept @ (speed + self._period * change)
