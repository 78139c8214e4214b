"""A field that turns without feedback: the reference of a drive that counts steps.

    q̇ = v,   v = v_s + K (q_s − q),   within a limit

with the setpoints q_s and v_s of the command (mode `position`), or v = v_s (mode `velocity`). v is held between
samples. The field of a step motor stands at the nearest whole microstep of q.
"""

from __future__ import annotations

import math
from typing import Literal

from cosim.core.types import param, params


@params
class Steps:
    """The steps of a step motor."""

    current: float = param(unit="A", above=0.0, doc="I, amplitude of a phase")
    microsteps: int = param(min=1, default=16, doc="of a full step; 1: full steps, one phase on")


@params
class OpenLoop:
    """A drive without feedback of the motion."""

    mode: Literal["velocity", "position"] = param(default="position", doc="the setpoint of the command that it follows")
    steps: Steps | None = param(default=None, doc="needed by a `stepper`")
    gain: float = param(unit="1/s", min=0.0, default=100.0, doc="K, velocity per position error of the reference")
    limit: float = param(unit="joint velocity", above=0.0, default=math.inf, doc="of the velocity")
    rate: float = param(unit="Hz", above=0.0, default=20e3, doc="of the samples")


# inputs of the graph of a motor: angle [rad] and speed [rad/s] of its field in turns of the shaft, and 1 where it is on
FIELD = {"field_angle": "rad", "field_speed": "rad/s", "on": ""}
