"""The encoder on the shaft of a drive's motor: whole counts, an offset, an index pulse, and the speed of the shaft.

An absolute encoder knows the angle when it is switched on. One with an index counts from 0 then, and knows the angle
from the first sample after its index pulse on, which it gives once per turn.

The speed is a difference of samples, or comes from a tracking observer: the straight line through all samples so far
whose squared error at the k-th last one has the weight θᵏ, θ = exp(−2π f T) (fading-memory filter of degree 1;
N. Morrison, "Introduction to Sequential Smoothing and Prediction", 1969). Both of its poles are at θ.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from cosim.core import ops
from cosim.core.types import Numeric, State, param, params
from cosim.core.units import TURN

MOST_ECCENTRIC = 0.2  # rad: the centre of a disc of 20 mm is 2 mm off


@params
class ShaftEncoder:
    cpr: int | None = param(min=1, default=None, doc="counts per revolution of the motor; none: exact")
    offset: float = param(unit="rad", default=0.0, doc="of the known angle, at the motor")
    reference: Literal["absolute", "index"] = param(default="absolute", doc="what makes the angle known")
    index: float = param(unit="rad", min=0.0, max=TURN, default=0.0, doc="angle of the index pulse, at the motor")
    velocity: Literal["difference", "observer"] = param(default="difference", doc="how the velocity is found")
    bandwidth: float = param(unit="Hz", above=0.0, default=300.0, doc="of the observer's two poles")
    resolution: float | None = param(
        unit="m", above=0.0, default=None, doc="a count of a linear motor, in place of cpr"
    )
    eccentricity: float = param(
        unit="rad", min=0.0, max=MOST_ECCENTRIC, default=0.0, doc="e of the disc, amplitude once per turn of the motor"
    )

    @property
    def turns(self) -> bool:
        """Whether a parameter of it is of turns."""
        return self.indexed or self.cpr is not None or self.offset != 0.0 or self.eccentricity > 0.0

    @property
    def indexed(self) -> bool:
        """Whether it needs its index pulse."""
        return self.reference == "index"

    @property
    def observes(self) -> bool:
        return self.velocity == "observer"


def counted(p: ShaftEncoder, angle: Numeric) -> Numeric:
    """The angle [rad] in whole counts, φ + e sin φ of an eccentric disc."""
    if p.eccentricity:
        angle = angle + p.eccentricity * ops.sin(angle)
    if p.resolution is not None:
        return ops.quantised(angle, p.resolution)
    if p.cpr is None:
        return angle
    return ops.quantised(angle, TURN / p.cpr)


def initial(p: ShaftEncoder, angle: Numeric, speed: Numeric) -> State:
    """The state when it is switched on, after a motion at constant speed [rad/s]."""
    first = ops.array(counted(p, angle))
    state = {"angle": first, "speed": ops.array(speed)}
    if p.observes:
        state["estimate"] = first
    return state | ({"start": first, "known": np.zeros(())} if p.indexed else {})


def sampled(p: ShaftEncoder, x: State, angle: Numeric, period: float) -> State:
    """The state after a sample of the angle [rad], `period` [s] after the last one."""
    now = counted(p, angle)
    state: State = {"angle": now}
    if p.observes:
        theta = float(np.exp(-TURN * p.bandwidth * period))
        predicted = x["estimate"] + period * x["speed"]
        state["estimate"] = predicted + (1.0 - theta * theta) * (now - predicted)
        state["speed"] = x["speed"] + (1.0 - theta) ** 2 / period * (now - predicted)
    else:
        state["speed"] = (now - x["angle"]) / period
    if p.indexed:
        turns, before = (ops.floor((value - p.index) / TURN) for value in (now, x["angle"]))
        passed = ops.abs(turns - before) > 0.5
        state |= {"start": x["start"], "known": ops.where(passed, 1.0, x["known"])}
    return state


def known(p: ShaftEncoder, x: State) -> Numeric:
    """Whether the angle is known: 1, else 0."""
    return x["known"] if p.indexed else 1.0


def read(p: ShaftEncoder, x: State) -> Numeric:
    """The angle [rad] that the drive uses."""
    if not p.indexed:
        return x["angle"] + p.offset
    return x["angle"] + ops.where(x["known"] > 0.5, p.offset, -x["start"])
