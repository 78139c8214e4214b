"""Velocity and acceleration of joints from sampled positions: a critically damped α-β-γ filter.

It is the fading-memory polynomial filter of degree 2 (N. Morrison, "Introduction to Sequential Smoothing and
Prediction", 1969; as "g-h-k" in E. Brookner, "Tracking and Kalman Filtering Made Easy", 1998, section 1.3): the
parabola through all samples so far whose squared error at the k-th last sample has the weight θᵏ. All three poles are
at θ, so its step response does not oscillate. Pure functions of numbers or symbols.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cosim import ops
from cosim.types import Numeric, param, params
from cosim.units import TURN


@params
class ObserverParams:
    """bandwidth: corner frequency of each of the three poles. Up to half of it the attenuation is below 3 dB; the
    acceleration lags by 3/(2π bandwidth), 10 ms at 50 Hz."""

    bandwidth: float = param(unit="Hz", above=0, default=50.0)


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


def initial(position: Numeric, velocity: Numeric) -> JointMotion:
    """The estimate for joints at constant velocity, (n,) each."""
    return JointMotion(position, velocity, np.zeros(len(position)))


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


def observe(x: JointMotion, measured: Numeric, new: Numeric, h: Numeric, k: Gains) -> JointMotion:
    """x one step of h [s] later, corrected where there is a new sample, predicted elsewhere.

    measured: (n,) the latest positions; new: bool, scalar or (n,), whether they were sampled in this step."""
    predicted = predict(x, h)
    return correct(predicted, ops.where(new, measured - predicted.position, 0.0), k)
