"""A sine whose frequency sweeps linearly: the excitation of identification experiments."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from cosim import ops
from cosim.trajectories.sine import Jet, fade, modulated_sine
from cosim.types import Array, Numeric, PerJoint, param, params
from cosim.units import TURN


@params
class Params:
    amplitude: PerJoint = param(unit="1", doc="of the position or the effort, SI")
    f0: float = param(unit="Hz", min=0, doc="frequency at time 0")
    f1: float = param(unit="Hz", min=0, doc="frequency at the end")
    duration: float = param(unit="s", above=0, doc="time of the sweep")
    of: Literal["position", "effort"] = param(default="position", doc="quantity of the sweep")
    ramp: float = param(unit="s", min=0, default=0.0, doc="fade-in time, and fade-out time at the end")

    def __post_init__(self) -> None:
        if 2 * self.ramp > self.duration:
            raise ValueError(f"two ramps of {self.ramp:g} s do not fit in {self.duration:g} s; shorten ramp")


@dataclass(frozen=True, eq=False)
class Chirp:
    """start + amplitude · (faded in and out) · sin 2π (f0 t + (f1 − f0) t² / (2 duration)).

    Afterwards the position is constant and the effort is zero. All joints have the same phase.
    """

    start: Array  # (n,)
    amplitude: Array  # (n,)
    f0: float
    f1: float
    end: float
    of: str
    ramp: float

    def sample(self, t: Numeric) -> dict[str, Numeric]:
        time = ops.clip(t, 0.0, self.end)
        slope = (self.f1 - self.f0) / self.end
        angle = (TURN * (self.f0 + 0.5 * slope * time) * time, TURN * (self.f0 + slope * time), TURN * slope)
        value, rate, bend = modulated_sine(self._envelope(time), angle)
        moving = ops.where(t < self.end, 1.0, 0.0)
        zero = np.zeros(len(self.start))
        if self.of == "effort":
            return {
                "position": self.start,
                "velocity": zero,
                "acceleration": zero,
                "effort": self.amplitude * value * moving,
            }
        return {
            "position": self.start + self.amplitude * value,
            "velocity": self.amplitude * rate * moving,
            "acceleration": self.amplitude * bend * moving,
            "effort": zero,
        }

    def _envelope(self, time: Numeric) -> Jet:
        """The amplitude factor: from 0 to 1 during the first ramp, back to 0 during the last one."""
        value, rate, bend = fade(time, self.ramp)
        if self.ramp == 0:
            return value, rate, bend
        fade_out = fade(time - (self.end - self.ramp), self.ramp)
        return value - fade_out[0], rate - fade_out[1], bend - fade_out[2]


def load(params: Params, joints: tuple[str, ...], folder: Path, start: Array) -> Chirp:
    amplitude = np.array(params.amplitude)
    return Chirp(start, amplitude, params.f0, params.f1, params.duration, params.of, params.ramp)
