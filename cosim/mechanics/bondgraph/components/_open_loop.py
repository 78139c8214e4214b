"""A field that turns without feedback: the reference of a drive that counts steps, or gives a frequency.

    q̇ = v,   v = v_s + K (q_s − q),   within a limit

with the setpoints q_s and v_s of the command (mode `position`), or v = v_s (mode `velocity`). v is held between
samples. The field of a step motor stands at the nearest whole microstep of q, the field of an induction machine turns
by p q.
"""

from __future__ import annotations

import math
from typing import Literal

from cosim.core import ops
from cosim.core.types import Numeric, param, params


@params
class Steps:
    """The steps of a step motor."""

    current: float = param(unit="A", above=0.0, doc="I, amplitude of a phase")
    microsteps: int = param(min=1, default=16, doc="of a full step; 1: full steps, one phase on")


@params
class VoltsPerHertz:
    """The voltage of an induction machine over its frequency: U = U_0 + (U_r − U_0) |f| / f_r, at most U_r."""

    voltage: float = param(unit="V", above=0.0, doc="U_r, amplitude of a phase at the rated frequency and above")
    frequency: float = param(unit="Hz", above=0.0, doc="f_r")
    boost: float = param(unit="V", min=0.0, default=0.0, doc="U_0, against the resistance at low frequencies")

    def __post_init__(self) -> None:
        if self.boost > self.voltage:
            raise ValueError("boost is the voltage at standstill; give at most 'voltage'")

    def amplitude(self, frequency: Numeric) -> Numeric:
        """The voltage [V] at a frequency [Hz] that is at least 0."""
        return self.boost + (self.voltage - self.boost) * ops.minimum(frequency / self.frequency, 1.0)


@params
class OpenLoop:
    """A drive without feedback of the motion."""

    mode: Literal["velocity", "position"] = param(default="position", doc="the setpoint of the command that it follows")
    steps: Steps | None = param(default=None, doc="needed by a `stepper`")
    volts_per_hertz: VoltsPerHertz | None = param(default=None, doc="needed by an `induction_machine`")
    gain: float = param(unit="1/s", min=0.0, default=100.0, doc="K, velocity per position error of the reference")
    limit: float = param(unit="joint velocity", above=0.0, default=math.inf, doc="of the velocity")
    rate: float = param(unit="Hz", above=0.0, default=20e3, doc="of the samples")


# inputs of the graph of a motor: angle [rad] and speed [rad/s] of its field in turns of the shaft, and 1 where it is on
FIELD = {"field_angle": "rad", "field_speed": "rad/s", "on": ""}
