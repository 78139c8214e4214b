"""A sum of sines on a grid of frequencies: the periodic excitation of frequency responses.

Schroeder's phases keep the peak of the sum low: it sweeps the frequencies once in a period T, the k-th of N at the time
T k / N, so that φ(k + 1) = φ(k) − (ω(k + 1) − ω(k)) T k / N (Synthesis of low-peak-factor signals, IEEE Transactions on
Information Theory 16(1), 1970).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from cosim.core import ops
from cosim.core.types import Array, Numeric, PerJoint, param, params
from cosim.core.units import TURN
from cosim.plugins.trajectories.sine import fade_in_and_out

SAMPLES = 32  # of the fastest sine in a period, to find the peak


@params
class Params:
    amplitude: PerJoint = param(unit="1", doc="largest value of the sum, of the position or the effort, SI")
    f0: float = param(unit="Hz", above=0, doc="lowest frequency")
    f1: float = param(unit="Hz", above=0, doc="highest frequency")
    period: float = param(unit="s", above=0, doc="period of the sum; frequencies are multiples of its inverse")
    periods: int = param(min=3, default=5, doc="repetitions, the first and the last one faded in and out")
    count: int = param(min=1, max=200, default=40, doc="sines at most, evenly spaced on a logarithmic axis")
    of: Literal["position", "effort"] = param(
        default="position", doc="quantity of the sum; an effort is added to the controller's"
    )

    def __post_init__(self) -> None:
        if self.f1 < self.f0:
            raise ValueError(f"f1 {self.f1:g} Hz is below f0 {self.f0:g} Hz; exchange them")
        if self.f0 * self.period < 1.0 - 1e-9:
            raise ValueError(
                f"a period of {self.period:g} s has no sine of {self.f0:g} Hz; use {1 / self.f0:g} s or more"
            )


@dataclass(frozen=True, eq=False)
class Multisine:
    """start + amplitude · (faded in and out) · Σ sin(ω(k) t + φ(k)) / peak. Between the first and the last period it is
    periodic."""

    start: Array  # (n,)
    amplitude: Array  # (n,)
    omega: Array  # (N,), rad/s
    phase: Array  # (N,), rad
    size: float  # of a sine, so that the sum reaches 1
    period: float
    end: float
    of: str

    @property
    def breaks(self) -> Array:
        return np.array([0.0, self.period, self.end - self.period, self.end])

    @property
    def is_excitation(self) -> bool:
        return self.of == "effort"

    def sample(self, t: Numeric) -> dict[str, Numeric]:
        angle = self.omega * t + self.phase
        sine, cosine = ops.sin(angle), ops.cos(angle)
        grown, growth, bend = fade_in_and_out(ops.clip(t, 0.0, self.end), self.end, self.period)
        value, zero = self.size * ops.sum(sine), np.zeros(len(self.start))
        if self.is_excitation:
            effort = self.amplitude * (grown * value)
            return {"position": self.start, "velocity": zero, "acceleration": zero, "effort": effort}
        rate = self.size * ops.sum(self.omega * cosine)
        curve = -self.size * ops.sum(self.omega**2 * sine)
        return {
            "position": self.start + self.amplitude * (grown * value),
            "velocity": self.amplitude * (growth * value + grown * rate),
            "acceleration": self.amplitude * (bend * value + 2.0 * growth * rate + grown * curve),
            "effort": zero,
        }


def grid(f0: float, f1: float, period: float, count: int) -> Array:
    """The frequencies [Hz]: at most `count` multiples of 1/period from f0 to f1, evenly spaced in logarithm."""
    lowest, highest = math.ceil(f0 * period - 1e-9), math.floor(f1 * period + 1e-9)
    return np.unique(np.clip(np.rint(np.geomspace(f0, f1, count) * period), lowest, max(lowest, highest))) / period


def load(params: Params, joints: tuple[str, ...], folder: Path, start: Array) -> Multisine:
    omega = TURN * grid(params.f0, params.f1, params.period, params.count)
    delays = params.period * np.arange(len(omega)) / len(omega)
    phase = -np.cumsum(np.diff(omega, prepend=omega[0]) * delays)
    times = np.linspace(0.0, params.period, max(1000, round(SAMPLES * params.f1 * params.period)), endpoint=False)
    parts = np.array_split(times, 64)
    peak = max(float(np.abs(np.sin(np.outer(part, omega) + phase).sum(axis=1)).max()) for part in parts)
    end = params.periods * params.period
    return Multisine(start, np.array(params.amplitude), omega, phase, 1.0 / peak, params.period, end, params.of)
