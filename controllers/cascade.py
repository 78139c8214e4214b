"""Cascaded control as servo drives have it: P control of the position over PI control of the velocity.

    v* = g v_r + K_p (r − q),                     within the velocity limit,
    M = K_v (v* − v) + I + J a_r + reference effort,   within the effort limit.

The effort goes to the drive, whose current loop is the innermost one. Per period T, I grows by (T / T_i) K_v (v* − v);
beyond the limit it is driven back by back-calculation with the time T_i. The loops come from
`cosim.core.servo.cascade`, which simulated and emulated drives run at their own rates.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from cosim.core import filters, ops
from cosim.core.servo.cascade import velocity_control, velocity_setpoint, within
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
from cosim.plugins.controllers._checks import (
    check_below_half_the_rate,
    check_effort_mode,
    check_no_shorter_than_a_period,
)


@params
class Params:
    position_gain: PerJoint = param(unit="1/s", min=0, doc="K_p, velocity per position error")
    velocity_gain: PerJoint = param(unit="joint damping", min=0, doc="K_v, effort per velocity error")
    integral_time: PerJoint = param(unit="s", above=0, default=math.inf, doc="T_i of the velocity loop; ∞: no integral")
    velocity_feedforward: PerJoint = param(min=0, max=1, default=1.0, doc="g, part of the reference velocity")
    inertia: PerJoint = param(unit="joint inertia", min=0, default=0.0, doc="J, effort per reference acceleration")
    velocity_limit: PerJoint = param(unit="joint velocity", above=0, default=math.inf, doc="of the velocity setpoint")
    effort_limit: PerJoint = param(unit="joint effort", above=0, default=math.inf, doc="of the effort setpoint")
    velocity_filter: PerJoint | None = param(unit="Hz", above=0, default=None, doc="cut-off of the measured velocity")


class Cascade:
    def __init__(self, params: Params, context: ControllerContext) -> None:
        """Raises InputError for drives with their own loops, and for times that are too short for the period."""
        check_effort_mode(context, "passthrough")
        check_no_shorter_than_a_period("integral_time", params.integral_time, context)
        check_below_half_the_rate("velocity_filter", params.velocity_filter, context)
        self._n = len(context.joints)
        self.params = params
        self.inputs = joint_signals(("position", "velocity", *REFERENCE), self._n)
        self.outputs = joint_signals(COMMAND, self._n)
        self.signals: Signals = {"integral": Signal((self._n,), "joint effort", "effort of the integral")}
        if params.velocity_filter is not None:
            self.signals |= {
                "filtered_velocity": Signal(
                    (self._n,), "joint velocity", "measured velocity after the filter", "measured", "velocity"
                )
            }
        self._period, self._limits = context.period, context.limits
        self._no_gain = np.zeros(self._n)

    def initial(self) -> State:
        state: State = {"integral": np.zeros(self._n)}
        if self.params.velocity_filter is not None:
            state["velocity"] = filters.initial(self._filter(self.params), self._n)
        return state

    def update(self, t: Numeric, p: Params, x: State, u: Mapping[str, Numeric]) -> tuple[State, dict[str, Numeric]]:
        position, velocity, acceleration, effort = (u[name] for name in REFERENCE)
        measured, after, signals = u["velocity"], dict(x), {"integral": x["integral"]}
        if p.velocity_filter is not None:
            measured, after["velocity"] = filters.filtered(self._filter(p), x["velocity"], measured)
            signals["filtered_velocity"] = measured
        fastest = ops.minimum(ops.array(p.velocity_limit), self._limits.velocity)
        largest = ops.minimum(ops.array(p.effort_limit), self._limits.effort)
        gains = ops.array(p.position_gain), ops.array(p.velocity_feedforward)
        setpoint = within(velocity_setpoint(*gains, position - u["position"], velocity), fastest)
        given, after["integral"] = velocity_control(
            ops.array(p.velocity_gain),
            self._period / ops.array(p.integral_time),
            setpoint - measured,
            x["integral"],
            ops.array(p.inertia) * acceleration + effort,
            largest,
        )
        gains = {"kp": self._no_gain, "kd": self._no_gain}
        return after, {"position": position, "velocity": setpoint, "effort": given, **gains, **signals}

    def _filter(self, p: Params) -> tuple[filters.Section, ...]:
        return filters.low_pass(ops.array(p.velocity_filter), 1, self._period)


def load(params: Params, context: ControllerContext) -> Cascade:
    return Cascade(params, context)
