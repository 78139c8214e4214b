"""PID without a model: proportional and derivative loops in the drive, the integral term here.

The state is the integral in units of effort, so that a change of `ki` causes no jump. It is held while the
requested effort exceeds the effort limit and the error would increase it (conditional integration,
Åström and Hägglund, Advanced PID Control, §3.5).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from cosim import ops
from cosim.types import COMMAND, REFERENCE, ControllerContext, Numeric, PerJoint, State, joint_signals, param, params


@params
class Params:
    kp: PerJoint = param(unit="joint stiffness", min=0, doc="effort per position error")
    ki: PerJoint = param(unit="1", min=0, doc="integral gain: effort per position error and time, N·m/(rad·s)")
    kd: PerJoint = param(unit="joint damping", min=0, doc="effort per velocity error")
    integral_limit: PerJoint = param(unit="joint effort", min=0, default=math.inf, doc="bound of the integral")


class Pid:
    def __init__(self, params: Params, context: ControllerContext) -> None:
        self._n = len(context.joints)
        self.params = params
        self.inputs = joint_signals((*REFERENCE, "position", "velocity"), self._n)
        self.outputs = joint_signals(COMMAND, self._n)
        self._period = context.period
        self._effort_limit = context.limits.effort

    def initial(self) -> State:
        return {"integral": ops.zeros(self._n)}

    def update(self, t: Numeric, p: Params, x: State, u: Mapping[str, Numeric]) -> tuple[State, dict[str, Numeric]]:
        kp, ki, kd, bound = (ops.array(gain) for gain in (p.kp, p.ki, p.kd, p.integral_limit))
        error = u["reference_position"] - u["position"]
        effort = x["integral"] + u["reference_effort"]
        request = kp * error + kd * (u["reference_velocity"] - u["velocity"]) + effort
        saturated = ops.logical_and(ops.absolute(request) >= self._effort_limit, request * error > 0.0)
        step = ops.where(saturated, 0.0, ki * error * self._period)
        integral = ops.clip(x["integral"] + step, -bound, bound)
        return {"integral": integral}, {
            "position": u["reference_position"],
            "velocity": u["reference_velocity"],
            "effort": effort,
            "kp": kp,
            "kd": kd,
        }


def load(params: Params, context: ControllerContext) -> Pid:
    return Pid(params, context)
