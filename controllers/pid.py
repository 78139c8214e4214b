"""PID without a model: proportional and derivative loops in the drive, the integral term here.

The state is the integral in units of effort, so that a change of `ki` causes no jump. Anti-windup against the effort
limit of the joint: the integral is held while the requested effort exceeds it and the error would increase it
(conditional integration), or driven back by the excess with a tracking time (back-calculation; both Åström and
Hägglund, Advanced PID Control, §3.5).

    effort = kp (r − q + (b − 1) (r − r₀)) + kd F (c v_r − v) + I + reference effort

b and c are the weights of the setpoint (§3.4 there), r₀ is the reference of the first call, F a low-pass filter of
first order. With a filter the derivative term is computed here, and the gain kd of the drive is 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from cosim.core import filters, ops
from cosim.core.servo.cascade import next_integral
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
from cosim.plugins.controllers._checks import check_below_half_the_rate, check_no_shorter_than_a_period


@params
class Params:
    kp: PerJoint = param(unit="joint stiffness", min=0, doc="effort per position error")
    ki: PerJoint = param(unit="joint stiffness rate", min=0, doc="integral gain: effort per position error and time")
    kd: PerJoint = param(unit="joint damping", min=0, doc="effort per velocity error")
    integral_limit: PerJoint = param(unit="joint effort", min=0, default=math.inf, doc="bound of the integral")
    tracking_time: PerJoint | None = param(unit="s", above=0, default=None, doc="of back-calculation; none: clamping")
    derivative_filter: PerJoint | None = param(unit="Hz", above=0, default=None, doc="cut-off of the derivative term")
    position_weight: PerJoint | None = param(min=0, max=1, default=None, doc="of the setpoint in the proportional term")
    velocity_weight: PerJoint | None = param(min=0, max=1, default=None, doc="of the setpoint in the derivative term")


class Pid:
    def __init__(self, params: Params, context: ControllerContext) -> None:
        """Raises InputError for a tracking time or a filter that is too fast for the period."""
        self._n = len(context.joints)
        self.params = params
        self.inputs = joint_signals((*REFERENCE, "position", "velocity"), self._n)
        self.outputs = joint_signals(COMMAND, self._n)
        self.signals: Signals = {"integral": Signal((self._n,), "joint effort", "effort of the integral")}
        if params.derivative_filter is not None:
            self.signals |= {
                "filtered_velocity_error": Signal((self._n,), "joint velocity", "velocity error after the filter")
            }
        self._period = context.period
        self._effort_limit = context.limits.effort
        check_no_shorter_than_a_period("tracking_time", params.tracking_time, context)
        check_below_half_the_rate("derivative_filter", params.derivative_filter, context)

    def initial(self) -> State:
        state: State = {"integral": ops.zeros(self._n)}
        if self.params.derivative_filter is not None:
            state["derivative"] = filters.initial(self._filter(self.params), self._n)
        if self.params.position_weight is not None:
            state["start"] = np.zeros((2, self._n))  # whether it was called before, and the reference at that time
        return state

    def update(self, t: Numeric, p: Params, x: State, u: Mapping[str, Numeric]) -> tuple[State, dict[str, Numeric]]:
        kp, kd = ops.array(p.kp), ops.array(p.kd)
        error = u["reference_position"] - u["position"]
        velocity, after, signals = u["reference_velocity"], dict(x), {"integral": x["integral"]}
        effort = x["integral"] + u["reference_effort"]
        if p.velocity_weight is not None:
            velocity = ops.array(p.velocity_weight) * velocity
        if p.position_weight is not None:
            start = ops.where(x["start"][0] > 0.5, x["start"][1], u["reference_position"])
            effort = effort + kp * (ops.array(p.position_weight) - 1.0) * (u["reference_position"] - start)
            after["start"] = ops.array([np.ones(self._n), start])
        if p.derivative_filter is not None:
            rate, after["derivative"] = filters.filtered(self._filter(p), x["derivative"], velocity - u["velocity"])
            effort, kd = effort + kd * rate, ops.zeros(self._n)
            signals["filtered_velocity_error"] = rate
        request = kp * error + kd * (velocity - u["velocity"]) + effort
        after["integral"] = self._next_integral(p, x["integral"], error, request)
        command = {"position": u["reference_position"], "velocity": velocity, "effort": effort, "kp": kp, "kd": kd}
        return after, command | signals

    def _next_integral(self, p: Params, integral: Numeric, error: Numeric, request: Numeric) -> Numeric:
        rate, bound, limit = ops.array(p.ki) * error, ops.array(p.integral_limit), self._effort_limit
        if p.tracking_time is None:
            saturated = ops.logical_and(ops.abs(request) >= limit, request * error > 0.0)
            integral = integral + ops.where(saturated, 0.0, rate * self._period)
        else:
            time, given = ops.array(p.tracking_time), ops.clip(request, -limit, limit)
            integral = next_integral(integral, self._period / time, rate * time, request, given)
        return ops.clip(integral, -bound, bound)

    def _filter(self, p: Params) -> tuple[filters.Section, ...]:
        return filters.low_pass(ops.array(p.derivative_filter), 1, self._period)


def load(params: Params, context: ControllerContext) -> Pid:
    return Pid(params, context)
