"""Residuals of a real joint against its simulated twin: what the mechanism, its drive and its sensor have done that the
model does not explain.

The effort comes from the momentum observer of De Luca and Mattone (IEEE ICRA 2003 and 2005; Haddadin, De Luca and
Albu-Schäffer, IEEE Trans. Robotics 33, 2017),

    r = K (p − ∫ (τ + Cᵀv − g + r) dt),    p = M(q) v,

a first-order filter of the effort that acts on the joint beside τ. As ṗ − Cᵀv + g = M v̇ + C v + g, its sampled form is
r ← θ r + (1 − θ) (τ̂ − τ) with θ = exp(−K h) and the required effort τ̂ of the motion (q, v, Δv/h): only velocities are
differenced, and what their noise adds in one tick it takes back in the next.

Pure, (n,) each, SI; efforts are updated once per tick, position and slip once per sample.
"""

from __future__ import annotations

from typing import NamedTuple

from cosim.core import ops
from cosim.core.types import Numeric, Signal, Signals, param, params
from cosim.core.units import TURN

# the residuals of a joint, by name
RESIDUALS: Signals = {
    "effort": Signal((), "joint effort", "effort on the joint beside its twin's", role="estimate"),
    "drive": Signal((), "joint effort", "effort that the drive reports beside its twin's", role="estimate"),
    "position": Signal((), "joint position", "measured position − predicted position", role="estimate"),
    "slip": Signal(
        (),
        "joint position",
        "motion of the measured position beyond the integral of the measured velocity, of late",
        role="estimate",
    ),
}


@params
class ShadowParams:
    """The bandwidth and the memory of the residuals of real joints against their twins."""

    bandwidth: float = param(unit="Hz", above=0, default=2.0, doc="of the filter of the residuals of effort")
    window: float = param(unit="s", above=0, default=2.0, doc="time after which most of a slip is forgotten")


class EncoderSample(NamedTuple):
    """What a drive measured, (n,) each. time: of the tick that got it [s]; delay: its age at that time [s]."""

    position: Numeric
    velocity: Numeric
    time: Numeric
    delay: Numeric


def remaining(rate: float, interval: Numeric) -> Numeric:
    """What a filter of the first order keeps of its value after an interval [s]; rate [1/s]."""
    return ops.exp(-rate * interval)


def filtered(before: Numeric, value: Numeric, bandwidth: float, step: float) -> Numeric:
    """A residual of effort one step [s] later; bandwidth [Hz]. For value = τ̂ − τ this is the momentum observer."""
    kept = remaining(TURN * bandwidth, step)
    return kept * before + (1.0 - kept) * value


def clock_slip(last: EncoderSample, sample: EncoderSample, interval: Numeric) -> Numeric:
    """Time [s] between two samples, `interval` apart, that is no time of the ticks."""
    return interval + sample.delay - last.delay - (sample.time - last.time)


def slip(before: Numeric, last: EncoderSample, sample: EncoderSample, interval: Numeric, window: float) -> Numeric:
    """How far the measured position has moved beyond the integral of the measured velocity, by the trapezoidal rule,
    with the past forgotten at the time constant `window` [s]. interval [s]: between the samples, 0 without a new one.
    """
    moved = sample.position - last.position - 0.5 * (sample.velocity + last.velocity) * interval
    return remaining(1.0 / window, interval) * before + moved
