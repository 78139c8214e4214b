"""A sine whose frequency sweeps linearly: the excitation of identification experiments."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from cosim.core import ops
from cosim.core.types import Array, Numeric, PerJoint, param, params
from cosim.core.units import TURN
from cosim.plugins.trajectories.sine import fade_in_and_out, modulated_sine


@params
class Params:
    amplitude: PerJoint = param(unit="1", doc="of the position or the effort, SI")
    f0: float = param(unit="Hz", min=0, doc="frequency at time 0")
    f1: float = param(unit="Hz", min=0, doc="frequency at the end")
    duration: float = param(unit="s", above=0, doc="time of the sweep")
    of: Literal["position", "effort"] = param(
        default="position", doc="quantity of the sweep; an effort is added to the controller's"
    )
    ramp: float = param(unit="s", min=0, default=0.0, doc="fade-in time, and fade-out time at the end")
    delay: float = param(unit="s", min=0, default=0.0, doc="time before the sweep")

    def __post_init__(self) -> None:
        if 2 * self.ramp > self.duration:
            raise ValueError(f"two ramps of {self.ramp:g} s do not fit in {self.duration:g} s; shorten ramp")
        if self.delay and not self.ramp and self.of == "position":
            raise ValueError("after a delay the velocity would jump; set ramp")


@dataclass(frozen=True, eq=False)
class Chirp:
    """start + amplitude · (faded in and out) · sin 2π (f0 t + (f1 − f0) t² / (2 duration)), t counted from the delay.

    Before and afterwards the position is constant and the effort is zero. All joints have the same phase.
    """

    start: Array  # (n,)
    amplitude: Array  # (n,)
    f0: float
    f1: float
    duration: float
    of: str
    ramp: float
    delay: float

    @property
    def end(self) -> float:
        return self.delay + self.duration

    @property
    def breaks(self) -> Array:
        return np.array([self.delay, self.delay + self.ramp, self.end - self.ramp, self.end])

    @property
    def is_excitation(self) -> bool:
        return self.of == "effort"

    def sample(self, t: Numeric) -> dict[str, Numeric]:
        time = ops.clip(t - self.delay, 0.0, self.duration)
        slope = (self.f1 - self.f0) / self.duration
        angle = (TURN * (self.f0 + 0.5 * slope * time) * time, TURN * (self.f0 + slope * time), TURN * slope)
        value, rate, bend = modulated_sine(fade_in_and_out(time, self.duration, self.ramp), angle)
        moving = ops.where(ops.logical_and(t >= self.delay, t < self.end), 1.0, 0.0)
        zero = np.zeros(len(self.start))
        if self.is_excitation:
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


def load(params: Params, joints: tuple[str, ...], folder: Path, start: Array) -> Chirp:
    amplitude = np.array(params.amplitude)
    return Chirp(start, amplitude, params.f0, params.f1, params.duration, params.of, params.ramp, params.delay)
