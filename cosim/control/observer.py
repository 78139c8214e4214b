"""Velocity and acceleration of joints from sampled positions: a critically damped α-β-γ filter.

It is the fading-memory polynomial filter of degree 2 (N. Morrison, "Introduction to Sequential Smoothing and
Prediction", 1969; as "g-h-k" in E. Brookner, "Tracking and Kalman Filtering Made Easy", 1998, section 1.3): the
parabola through all samples so far whose squared error at the k-th last sample has the weight θᵏ. All three poles are
at θ, so its step response does not oscillate. It runs from sample to sample; `extrapolate` continues it from the last
sample to the time of a tick, with a bound. Pure functions of numbers or symbols.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cosim.control import sample_times
from cosim.core import ops
from cosim.core.types import Numeric
from cosim.core.units import TURN

# time constants of the observer for which a velocity is held while the acceleration decays
HELD_TIME_CONSTANTS = 3.0
# largest relative difference of the way between two samples from the reported velocity's, where others may be queued
LARGEST_DEVIATION = 0.5


class JointMotion(NamedTuple):
    """Position, velocity, acceleration of n joints, (n,) each [rad or m, per s, per s²]."""

    position: Numeric
    velocity: Numeric
    acceleration: Numeric


class Gains(NamedTuple):
    """Gains of the residual [rad or m]: α [1], β/h [1/s], 2γ/h² [1/s²]; scalars or (n,)."""

    position: Numeric
    velocity: Numeric
    acceleration: Numeric


class Estimate(NamedTuple):
    """What is known of n joints by their last samples, (n,) each.

    The motion at the time of the last sample, by all samples so far; interval: from the sample before to it [s];
    horizon: its age [s] up to which the next sample is not overdue; queued: for how long [s] samples may still come
    that were queued during a gap, one after the other, so that their time stamps are later than their measurement."""

    position: Numeric
    velocity: Numeric
    acceleration: Numeric
    interval: Numeric
    horizon: Numeric
    queued: Numeric

    @property
    def motion(self) -> JointMotion:
        return JointMotion(*self[:3])


def initial(position: Numeric, velocity: Numeric) -> JointMotion:
    """The estimate for joints at constant velocity, (n,) each."""
    return JointMotion(position, velocity, np.zeros(len(position)))


def at_start(position: Numeric, velocity: Numeric) -> Estimate:
    """The estimate by a first sample, (n,) each; interval and horizon are not known yet (0)."""
    none = np.zeros(len(position))
    return Estimate(*initial(position, velocity), none, none, none)


def gains(bandwidth: Numeric, period: Numeric) -> Gains:
    """For samples at intervals of `period` [s] > 0; bandwidth [Hz]; scalars or (n,).

    α = 1 − θ³, β = 3/2 (1 − θ²)(1 − θ), γ = 1/2 (1 − θ)³ with θ = exp(−2π bandwidth period). The period is the time
    since the previous sample, also if that is many steps ago: with gains for a shorter one the estimate diverges.
    """
    theta = ops.exp(-TURN * bandwidth * period)
    rest = 1.0 - theta
    beta = 1.5 * (1.0 - theta * theta) * rest
    return Gains(1.0 - theta * theta * theta, beta / period, rest * rest * rest / (period * period))


def predict(x: JointMotion, h: Numeric) -> JointMotion:
    """x after h [s] at constant acceleration."""
    q, v, a = x
    return JointMotion(q + h * (v + 0.5 * h * a), v + h * a, a)


def correct(x: JointMotion, residual: Numeric, k: Gains) -> JointMotion:
    """x corrected by a measurement; residual (n,): measured minus predicted position."""
    return JointMotion(*(value + gain * residual for value, gain in zip(x, k, strict=True)))


def time_constant(bandwidth: Numeric) -> Numeric:
    """s, of each of the three poles; bandwidth [Hz]."""
    return 1.0 / (TURN * bandwidth)


def is_gap(x: Estimate, interval: Numeric, bandwidth: Numeric) -> Numeric:
    """Where a sample, `interval` [s] after the last one, comes after a gap: not before `extrapolate` has ceased to hold
    the velocity."""
    return sample_times.is_gap(interval, x.interval, x.horizon, HELD_TIME_CONSTANTS * time_constant(bandwidth))


def update(
    x: Estimate,
    position: Numeric,
    velocity: Numeric,
    interval: Numeric,
    delay: Numeric,
    bandwidth: Numeric,
    step: float,
) -> Estimate:
    """The estimate with the samples of this tick, unchanged where there is none.

    position, velocity (n,): measured; interval (n,): time since the last sample [s], 0 without a new one; delay (n,):
    age of the sample at the time of the tick [s]; bandwidth (n,) [Hz]; step [s]: of ticks. After a gap the estimate
    begins anew with the measured velocity: the parabola through the samples before it no longer describes the motion.
    So it does with samples that were queued during the gap and do not fit that velocity."""
    new = interval > 0.0
    predicted = predict(x.motion, interval)
    corrected = correct(predicted, position - predicted.position, gains(bandwidth, ops.maximum(interval, step)))
    begun, gap = initial(position, velocity), is_gap(x, interval, bandwidth)
    way = 0.5 * (x.velocity + velocity) * interval
    fits = ops.abs(position - x.position - way) <= LARGEST_DEVIATION * ops.abs(way)
    anew = ops.logical_or(gap, ops.logical_and(x.queued > 0.0, ops.logical_not(fits)))
    known = (ops.where(anew, *pair) for pair in zip(begun, corrected, strict=True))
    arrives = ops.clip(delay, 0.0, HELD_TIME_CONSTANTS * time_constant(bandwidth))
    horizon = sample_times.next_horizon(interval, x.interval, step) + arrives
    queued = ops.where(gap, interval, ops.maximum(x.queued - interval, 0.0))
    return Estimate(*(ops.where(new, *pair) for pair in zip((*known, interval, horizon, queued), x, strict=True)))


def extrapolate(x: Estimate, age: Numeric, bandwidth: Numeric) -> JointMotion:
    """The motion `age` [s] after the last sample, (n,) each; bandwidth (n,) [Hz].

    Up to the horizon h of the estimate the acceleration a is constant. At a time s after it, with T = 1/(2π bandwidth),

        a(s) = a e^(−s/T),    v(s) = v(0) + a T (1 − e^(−s/T))    for s ≤ 3T,
                              v(s) = v(3T) e^(−(s − 3T)/T)        beyond,

    and the position is the integral of v. So with the values at the sample, at every age

        |v(s)| ≤ V = |v| + |a| (h + T),    |q(s) − q| ≤ V (h + 4T).

    Before the sample (age < 0) it goes back by at most h at constant acceleration.
    """
    constant = time_constant(bandwidth)
    overdue = ops.maximum(age - x.horizon, 0.0)
    q, v, a = predict(x.motion, ops.clip(age, -x.horizon, x.horizon))
    held = ops.minimum(overdue, HELD_TIME_CONSTANTS * constant)
    left, stopped = ops.exp(-held / constant), ops.exp(-(overdue - held) / constant)
    gained = a * constant * (1.0 - left)
    q = q + held * (v + a * constant) - constant * gained
    v = v + gained
    return JointMotion(q + v * constant * (1.0 - stopped), v * stopped, a * left * stopped)
