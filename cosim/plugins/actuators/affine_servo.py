"""A servo drive whose effort is affine in its control, the position and the velocity of the joint:

    effort = (g + g_q q + g_v q̇) w + b + b_q q + b_v q̇, within its limits,

w: the control u, or the activation that follows it, ẇ = (u − w) / τ or ẇ = u. The actuators `general`, `position`,
`velocity`, `intvelocity`, `damper` and `cylinder` of MuJoCo are such drives.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

import numpy as np

from cosim.core import ops
from cosim.core.types import (
    ACTUATOR_INPUTS,
    ACTUATOR_OUTPUTS,
    EVERY_TICK,
    Numeric,
    Signal,
    Signals,
    State,
    param,
    params,
)

CONTROL = "control"  # its held state with a mode other than effort
ACTIVATION = "activation"
OUTPUTS: Signals = {**ACTUATOR_OUTPUTS, CONTROL: Signal((), "1", "control of the servo, in SI")}


@params
class Params:
    mode: Literal["effort", "velocity", "position"] = param(default="position", doc="the control u, of the command")
    gain: float = param(default=1.0, doc="g, effort per control, in SI")
    gain_position: float = param(default=0.0, doc="g_q, in SI")
    gain_velocity: float = param(default=0.0, doc="g_v, in SI")
    bias: float = param(unit="joint effort", default=0.0, doc="b")
    bias_position: float = param(unit="joint stiffness", default=0.0, doc="b_q")
    bias_velocity: float = param(unit="joint damping", default=0.0, doc="b_v")
    min_effort: float = param(unit="joint effort", default=-math.inf, doc="least effort")
    max_effort: float = param(unit="joint effort", default=math.inf, doc="greatest effort")
    min_control: float = param(default=-math.inf, doc="least u, in SI")
    max_control: float = param(default=math.inf, doc="greatest u, in SI")
    activation: Literal["none", "filter", "integrator"] = param(default="none", doc="how w follows u")
    time_constant: float = param(unit="s", above=0.0, default=0.01, doc="τ of the filter")
    min_activation: float = param(default=-math.inf, doc="least w, in SI")
    max_activation: float = param(default=math.inf, doc="greatest w, in SI")

    def __post_init__(self) -> None:
        for what in ("effort", "control", "activation"):
            lower, upper = getattr(self, f"min_{what}"), getattr(self, f"max_{what}")
            if not ops.is_symbolic(lower) and not ops.is_symbolic(upper) and lower > upper:
                raise ValueError(f"min_{what} {lower:.6g} is above max_{what} {upper:.6g}; swap them")


class AffineServo:
    """A servo whose control is the effort that is requested."""

    inputs, outputs = ACTUATOR_INPUTS, OUTPUTS
    reflected_inertia = 0.0
    positions = ()

    def __init__(self, params: Params) -> None:
        self.params = params

    def initial(self, position: Numeric, velocity: Numeric) -> State:
        if self.params.activation == "none":
            return {}
        return {ACTIVATION: ops.clip(np.zeros(()), self.params.min_activation, self.params.max_activation)}

    def flow(self, t: Numeric, p: Params, x: State, u: Mapping[str, Numeric]) -> tuple[State, dict[str, Numeric]]:
        control = limited(self._control(x, u), p.min_control, p.max_control)
        q, v, w = u["position"], u["velocity"], control
        if p.activation != "none":  # a step may end beyond the limit that it reaches
            w = limited(x[ACTIVATION], p.min_activation, p.max_activation)
        force = (p.gain + p.gain_position * q + p.gain_velocity * v) * w
        force = force + p.bias + p.bias_position * q + p.bias_velocity * v
        effort = self._switched(x) * limited(force, p.min_effort, p.max_effort)
        power = {"effort": effort, "power": effort * v, "loss": 0.0, "stored": 0.0}
        return self._rates(p, x, control), {**power, CONTROL: control}

    def _rates(self, p: Params, x: State, control: Numeric) -> State:
        if p.activation == "none":
            return {}
        w = x[ACTIVATION]
        rate = control if p.activation == "integrator" else (control - w) / p.time_constant
        if not ops.is_infinite(p.max_activation):
            rate = ops.where(ops.logical_and(w >= p.max_activation, rate > 0.0), 0.0, rate)
        if not ops.is_infinite(p.min_activation):
            rate = ops.where(ops.logical_and(w <= p.min_activation, rate < 0.0), 0.0, rate)
        return {ACTIVATION: rate}

    def _control(self, x: State, u: Mapping[str, Numeric]) -> Numeric:
        return u["request"]

    def _switched(self, x: State) -> Numeric:
        return 1.0


class FollowingServo(AffineServo):
    """A servo that follows the position or the velocity of the command of its joint, once per tick."""

    period = EVERY_TICK

    def __init__(self, params: Params) -> None:
        super().__init__(params)
        self.mode = params.mode

    def initial(self, position: Numeric, velocity: Numeric) -> State:
        held = position if self.mode == "position" else 0.0
        return {**super().initial(position, velocity), CONTROL: ops.array(held), "on": np.ones(())}

    def update(self, t: Numeric, p: Params, x: State, u: Mapping[str, Numeric]) -> State:
        return {CONTROL: u[f"setpoint_{self.mode}"], "on": ops.where(u["enabled"] > 0.5, 1.0, 0.0)}

    def _rates(self, p: Params, x: State, control: Numeric) -> State:
        return {**super()._rates(p, x, control), CONTROL: np.zeros(()), "on": np.zeros(())}

    def _control(self, x: State, u: Mapping[str, Numeric]) -> Numeric:
        return x[CONTROL]

    def _switched(self, x: State) -> Numeric:
        return x["on"]


def limited(value: Numeric, lower: float, upper: float) -> Numeric:
    """The value within its bounds, of which infinite ones leave no code."""
    value = value if ops.is_infinite(upper) else ops.minimum(value, upper)
    return value if ops.is_infinite(lower) else ops.maximum(value, lower)


def load(params: Params) -> AffineServo:
    return AffineServo(params) if params.mode == "effort" else FollowingServo(params)
