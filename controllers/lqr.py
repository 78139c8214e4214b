"""Linear-quadratic regulator: state feedback with gains from the exact linear model, see `_linear_regulator`.

The gains follow when the controller is loaded (Franklin, Powell and Workman, Digital Control of Dynamic Systems, §9.2;
weights by Bryson and Ho, Applied Optimal Control, §5.2). The integral is held while the effort exceeds its limit and
the error would increase it. With a delay the error is first predicted over the period from measurement to effort.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np

from cosim.core import ops
from cosim.core.types import (
    COMMAND,
    REFERENCE,
    ControllerContext,
    Numeric,
    PerJoint,
    Signal,
    Signals,
    State,
    joint_signals,
    param,
    params,
)
from cosim.plugins.controllers._checks import check_effort_mode
from cosim.plugins.controllers._linear_regulator import AlongWeights, LinearRegulator


@params
class Params(AlongWeights):
    largest_integral: PerJoint | None = param(
        above=0, constant=True, default=None, doc="weight of the integral of the error, rad·s or m·s; none: no integral"
    )
    delay: Literal[0, 1] = param(default=0, doc="periods from the measurement to the effort")
    friction: bool = param(default=True, doc="compensate the joints' friction at the reference velocity")


class Lqr:
    def __init__(self, params: Params, context: ControllerContext) -> None:
        """Raises InputError for drives with their own loops, and as `LinearRegulator`."""
        check_effort_mode(context, "feedforward_pd")
        n = len(context.joints)
        self.params = params
        self.regulator = LinearRegulator(params, context, params.largest_integral)
        self.inputs = {**joint_signals(("position", *REFERENCE), n), **self.regulator.required_effort.inputs}
        self.outputs = joint_signals(COMMAND, n)
        self.signals: Signals = (
            {"integral": Signal((n,), "joint effort", "effort of the integral")} if params.largest_integral else {}
        )
        self._period, self._effort_limit = context.period, context.limits.effort
        self._no_gain = np.zeros(n)

    def initial(self) -> State:
        n = len(self._no_gain)
        state: State = {"integral": np.zeros(n)} if self.params.largest_integral else {}
        return state | ({"correction": np.zeros(n)} if self.params.delay else {})

    def update(self, t: Numeric, p: Params, x: State, u: Mapping[str, Numeric]) -> tuple[State, dict[str, Numeric]]:
        regulator, after, signals, error = self.regulator, {}, {}, self.regulator.error(u)
        now = regulator.table(t)
        if p.delay:
            error = now["a"] @ error + now["b"] @ x["correction"]
        correction = -(now["gains"] @ error)
        if "integral" in x:
            signals["integral"] = -(now["integral_gains"] @ x["integral"])
            correction = correction + signals["integral"]
        feedforward, limit = regulator.feedforward(t, u, p.friction), self._effort_limit
        effort = feedforward + correction
        if "integral" in x:
            miss = u["position"] - u["reference_position"]
            saturated = ops.logical_and(ops.abs(effort) >= limit, effort * miss < 0.0)
            after["integral"] = x["integral"] + ops.where(saturated, 0.0, self._period * miss)
        if p.delay:
            after["correction"] = ops.clip(effort, -limit, limit) - feedforward
        reference = {"position": u["reference_position"], "velocity": u["reference_velocity"]}
        return after, {**reference, "effort": effort, "kp": self._no_gain, "kd": self._no_gain, **signals}


def load(params: Params, context: ControllerContext) -> Lqr:
    return Lqr(params, context)
