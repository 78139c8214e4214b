"""Computed torque: the joints follow their references as decoupled linear oscillators of chosen bandwidth and damping.

effort = M(q) (a_ref + 2 ζ ω ė + ω² e) + h(q, v), e = q_ref − q, at the measured state: the hybrid dynamics of the
controlled joints, see `_required_effort` (Spong et al., Robot Modeling and Control, §8.3). With an exact model the
error follows ë + 2 ζ ω ė + ω² e = 0. The controller closes the loop itself; the gains of the drives are 0.

A loop sampled with the period T is stable up to a bandwidth that T determines. For a double integrator whose
acceleration is held for one period and follows from the measurement of the period before,

    x⁺ = x + T v + T² a/2,   v⁺ = v + T a,   a = −ω² x⁻ − 2 ζ ω v⁻,

with w = ω T the characteristic polynomial is z³ − 2 z² + (1 + 2 ζ w + w²/2) z + w²/2 − 2 ζ w. Its value at 1 is w² > 0,
at −1 it is −4 − 4 ζ w < 0, so roots leave the unit circle as a complex pair, where Jury's criterion is an equality:

    w³/4 − 2 ζ w² + (3/2 + 4 ζ²) w − 2 ζ = 0.

The smallest positive root is the limit; w = 0.427 for ζ = 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from cosim.core import ops
from cosim.core.errors import InputError
from cosim.core.types import (
    COMMAND,
    REFERENCE,
    ControllerContext,
    Numeric,
    PerJoint,
    State,
    joint_signals,
    param,
    params,
)
from cosim.plugins.controllers._checks import check_effort_mode
from cosim.plugins.controllers._required_effort import RequiredEffort, drive_friction

# keys of another controller that once had this name
FOREIGN_KEYS = dict.fromkeys(
    ("kp", "kd"), "the controller with gains is now 'feedforward_pd'; computed_torque has 'bandwidth' and 'damping'"
)


@params
class Params:
    bandwidth: PerJoint = param(unit="Hz", above=0, doc="natural frequency of the error")
    damping: PerJoint = param(above=0, default=1.0, doc="damping ratio of the error")
    friction: bool = param(default=True, doc="compensate the joints' friction at the reference velocity")
    viscous: PerJoint = param(unit="joint damping", min=0, default=0.0, doc="of the drive, compensated likewise")
    coulomb: PerJoint = param(unit="joint effort", min=0, default=0.0, doc="of the drive, compensated likewise")


class ComputedTorque:
    def __init__(self, params: Params, context: ControllerContext) -> None:
        n = len(context.joints)
        check_effort_mode(context, "feedforward_pd")
        for name, bandwidth, damping in zip(context.joints, params.bandwidth, params.damping, strict=True):
            if bandwidth >= (limit := largest_bandwidth(damping, context.period)):
                what = f"bandwidth {bandwidth:g} Hz of joint '{name}' is unstable at a period of"
                largest = math.floor(limit * 10.0) / 10.0 if limit > 1.0 else limit * 0.999
                raise InputError(
                    f"{what} {context.period * 1e3:g} ms; use at most {largest:.4g} Hz or a shorter period"
                )
        self.params = params
        self._required_effort = RequiredEffort(context)
        self.inputs = {**joint_signals(("position", "velocity", *REFERENCE), n), **self._required_effort.inputs}
        self.outputs = joint_signals(COMMAND, n)
        self._no_gain = np.zeros(n)

    def initial(self) -> State:
        return {}

    def update(self, t: Numeric, p: Params, x: State, u: Mapping[str, Numeric]) -> tuple[State, dict[str, Numeric]]:
        position, velocity, acceleration, effort = (u[name] for name in REFERENCE)
        omega = 2.0 * math.pi * ops.array(p.bandwidth)
        acceleration = acceleration + 2.0 * ops.array(p.damping) * omega * (velocity - u["velocity"])
        acceleration = acceleration + omega * omega * (position - u["position"])
        friction_velocity = velocity if p.friction else None
        required = self._required_effort(t, u, acceleration, friction_velocity)
        return {}, {
            "position": position,
            "velocity": velocity,
            "effort": required + drive_friction(p.viscous, p.coulomb, velocity) + effort,
            "kp": self._no_gain,
            "kd": self._no_gain,
        }


def largest_bandwidth(damping: float, period: float) -> float:
    """The bandwidth [Hz] at which the loop sampled with this period [s] becomes unstable, see above."""
    roots = np.roots([0.25, -2.0 * damping, 1.5 + 4.0 * damping**2, -2.0 * damping])
    real = roots.real[abs(roots.imag) < 1e-9 * abs(roots)]
    return float(min(real[real > 0.0])) / (2.0 * math.pi * period)


def load(params: Params, context: ControllerContext) -> ComputedTorque:
    return ComputedTorque(params, context)
