"""Velocity and acceleration of joints from sampled positions: a critically damped α-β-γ filter.

It is the fading-memory polynomial filter of degree 2 (N. Morrison, "Introduction to Sequential Smoothing and
Prediction", 1969; as "g-h-k" in E. Brookner, "Tracking and Kalman Filtering Made Easy", 1998, section 1.3): the
parabola through all samples so far that weighs the squared error of the k-th last by θᵏ. Its three poles are θ, so it
does not ring. Pure functions of numbers or symbols.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cosim import ops
from cosim.types import param, params
from cosim.units import TURN


@params
class ObserverParams:
    """bandwidth: the corner of each of the three poles. What is below half of it comes through within 3 dB; the
    acceleration is late by 3/(2π bandwidth), 10 ms at 50 Hz."""

    bandwidth: float = param(unit="Hz", above=0, default=50.0)


class JointMotion(NamedTuple):
    """Position, velocity, acceleration of n joints, (n,) each [rad or m, per s, per s²]."""

    position: Any
    velocity: Any
    acceleration: Any


class Gains(NamedTuple):
    """What a residual [rad or m] adds to each: α [1], β/h [1/s], 2γ/h² [1/s²]; scalars or (n,)."""

    position: Any
    velocity: Any
    acceleration: Any


def initial(position: Any, velocity: Any) -> JointMotion:
    """(n,) each: joints that move steadily."""
    return JointMotion(position, velocity, np.zeros(len(position)))


def gains(bandwidth: Any, period: Any) -> Gains:
    """For samples that come every `period` [s] > 0; bandwidth [Hz]; scalars or (n,).

    α = 1 − θ³, β = 3/2 (1 − θ²)(1 − θ), γ = 1/2 (1 − θ)³ with θ = exp(−2π bandwidth period). The period is the time
    since the sample before, also where that is many steps ago: gains for a shorter one let the estimate diverge.
    """
    theta = ops.exp(-TURN * bandwidth * period)
    rest = 1.0 - theta
    beta = 1.5 * (1.0 - theta * theta) * rest
    return Gains(1.0 - theta * theta * theta, beta / period, rest * rest * rest / (period * period))


def predict(x: JointMotion, h: Any) -> JointMotion:
    """x after h [s] at constant acceleration."""
    q, v, a = x
    return JointMotion(q + h * (v + 0.5 * h * a), v + h * a, a)


def correct(x: JointMotion, residual: Any, k: Gains) -> JointMotion:
    """x with what was measured: residual (n,) is the measured less the predicted position."""
    return JointMotion(*(value + gain * residual for value, gain in zip(x, k, strict=True)))


def observe(x: JointMotion, measured: Any, new: Any, h: Any, k: Gains) -> JointMotion:
    """x one step of h [s] later. measured (n,): the last sample; new: scalar or (n,) truth values, whether it was taken
    in this step. One that is not new is not looked at: the motion is only predicted."""
    predicted = predict(x, h)
    return correct(predicted, ops.where(new, measured - predicted.position, 0.0), k)
