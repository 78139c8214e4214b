"""Sines about the initial positions, faded in so that the motion can start at rest."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cosim.core import ops
from cosim.core.types import Array, Numeric, PerJoint, param, params
from cosim.core.units import TURN
from cosim.plugins.trajectories.quintic import minimum_jerk

Jet = tuple[Numeric, Numeric, Numeric]  # a function of time at one instant: value, first and second derivative


@params
class Params:
    amplitude: PerJoint = param(unit="joint position", doc="half of the peak-to-peak distance")
    frequency: PerJoint = param(unit="Hz", min=0, doc="periods per second")
    phase: PerJoint = param(unit="rad", default=0.0, doc="at time 0")
    offset: PerJoint = param(unit="joint position", default=0.0, doc="of the centre from the initial position")
    ramp: float = param(unit="s", min=0, default=0.0, doc="fade-in time of the amplitude")


def fade(t: Numeric, ramp: float) -> Jet:
    """From 0 at t = 0 to 1 at t = ramp along a quintic; 1 for a ramp of 0."""
    if ramp == 0:
        return 1.0, 0.0, 0.0
    value, rate, bend = minimum_jerk(t / ramp)
    return value, rate / ramp, bend / ramp**2


def fade_in_and_out(t: Numeric, end: float, ramp: float) -> Jet:
    """From 0 at t = 0 to 1 during the first ramp, back to 0 during the last one before the end; 1 for a ramp of 0."""
    value, rate, bend = fade(t, ramp)
    if ramp == 0:
        return value, rate, bend
    fade_out = fade(t - (end - ramp), ramp)
    return value - fade_out[0], rate - fade_out[1], bend - fade_out[2]


def modulated_sine(amplitude: Jet, angle: Jet) -> Jet:
    """a(t) sin φ(t) and its first two derivatives."""
    (a, da, dda), (phi, dphi, ddphi) = amplitude, angle
    sine, cosine = ops.sin(phi), ops.cos(phi)
    return (
        a * sine,
        da * sine + a * dphi * cosine,
        dda * sine + 2.0 * da * dphi * cosine + a * (ddphi * cosine - dphi**2 * sine),
    )


@dataclass(frozen=True, eq=False)
class Sine:
    """centre + fade(t) · amplitude · sin(ω t + phase)."""

    centre: Array  # (n,)
    amplitude: Array  # (n,)
    omega: Array  # (n,), rad/s
    phase: Array  # (n,)
    ramp: float
    end: float = math.inf

    @property
    def breaks(self) -> Array:
        return np.array([self.ramp] if self.ramp else [])

    def sample(self, t: Numeric) -> dict[str, Numeric]:
        growth = fade(t, self.ramp)
        angle = (self.omega * t + self.phase, self.omega, 0.0)
        value, rate, bend = modulated_sine(growth, angle)
        return {
            "position": self.centre + self.amplitude * value,
            "velocity": self.amplitude * rate,
            "acceleration": self.amplitude * bend,
            "effort": np.zeros(len(self.centre)),
        }


def load(params: Params, joints: tuple[str, ...], folder: Path, start: Array) -> Sine:
    return Sine(
        centre=start + np.array(params.offset),
        amplitude=np.array(params.amplitude),
        omega=TURN * np.array(params.frequency),
        phase=np.array(params.phase),
        ramp=params.ramp,
    )
