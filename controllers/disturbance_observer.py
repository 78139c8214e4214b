"""Computed torque with a disturbance observer: what the model does not explain is estimated and subtracted.

    d = τ(q, v, v̇) + friction(v) − effort,   v̇ = (v − v⁻) / T,       d̂ = d̂⁻ + (1 − exp(−2π f T)) (d − d̂⁻)

τ is the inverse dynamics of the controlled joints, see `_required_effort`; `effort` is what was commanded a period
before, within the limit of the joint. Up to terms of order T, M (v − v⁻) is the change of the generalised momentum less
what centrifugal forces give it: d̂ is the residual of the momentum observer (De Luca and Mattone, ICRA 2003), a low-pass
filter of first order and bandwidth f on the disturbance (Ohnishi, Shibata and Murakami, IEEE/ASME Trans. Mechatronics
1(1), 1996). Disturbances below f are rejected, and with an exact model the loop of `computed_torque` is what it was.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from cosim.core import ops
from cosim.core.types import ControllerContext, Numeric, PerJoint, Signal, Signals, State, param, params
from cosim.plugins.controllers import computed_torque
from cosim.plugins.controllers._checks import check_below_half_the_rate
from cosim.plugins.controllers._required_effort import RequiredEffort, drive_friction

FOREIGN_KEYS = computed_torque.FOREIGN_KEYS


@params
class Params(computed_torque.Params):
    observer: PerJoint = param(unit="Hz", above=0, default=10.0, doc="f, bandwidth of the disturbance observer")
    disturbance_limit: PerJoint = param(unit="joint effort", min=0, default=math.inf, doc="bound of the estimate")


class DisturbanceObserver:
    def __init__(self, params: Params, context: ControllerContext) -> None:
        """Raises InputError as `computed_torque`, and for an observer that is too fast for the period."""
        check_below_half_the_rate("observer", params.observer, context)
        self.params = params
        self._loop = computed_torque.load(params, context)
        self._required_effort = RequiredEffort(context)
        self.inputs, self.outputs = self._loop.inputs, self._loop.outputs
        self._n, self._index = len(context.joints), context.index
        self.signals: Signals = {
            "disturbance": Signal((self._n,), "joint effort", "effort on the joint that the model lacks", "estimate")
        }
        self._period, self._effort_limit = context.period, context.limits.effort

    def initial(self) -> State:
        """The estimate; whether it was called before, the velocities and the efforts of the call before."""
        names = ("disturbance", "velocity", "effort")
        return {name: np.zeros(self._n) for name in names} | {"started": np.zeros(1)}

    def update(self, t: Numeric, p: Params, x: State, u: Mapping[str, Numeric]) -> tuple[State, dict[str, Numeric]]:
        _, command = self._loop.update(t, p, {}, u)
        disturbance = self._estimate(t, p, x, u)
        effort = command["effort"] - disturbance
        given = ops.clip(effort, -self._effort_limit, self._effort_limit)
        after = {"disturbance": disturbance, "velocity": u["velocity"], "effort": given, "started": np.ones(1)}
        return after, command | {"effort": effort, "disturbance": disturbance}

    def _estimate(self, t: Numeric, p: Params, x: State, u: Mapping[str, Numeric]) -> Numeric:
        velocity, bound = u["velocity"], ops.array(p.disturbance_limit)
        acceleration = (velocity - x["velocity"]) / self._period
        required = self._required_effort(t, u, acceleration, velocity if p.friction else None)
        required = required + drive_friction(p.viscous, p.coulomb, velocity)
        gain = 1.0 - ops.exp(-2.0 * math.pi * self._period * ops.array(p.observer))
        estimate = x["disturbance"] + gain * (required - x["effort"] - x["disturbance"])
        known = ops.logical_and(x["started"] > 0.5, u["all_locked"][self._index] < 0.5)
        return ops.clip(ops.where(known, estimate, x["disturbance"]), -bound, bound)


def load(params: Params, context: ControllerContext) -> DisturbanceObserver:
    return DisturbanceObserver(params, context)
