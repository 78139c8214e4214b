"""Admittance control in joint space: what pushes against a joint moves its setpoint like a mass on a spring.

M ẅ + D ẇ + K w = τ_ext,   setpoint = q_ref + w

τ_ext is the external effort, see `_external_effort`. A stiff loop in the drive follows the setpoint, with the effort
that the setpoint requires and −τ_ext, so that it does not give way itself. M, D and K may be any, unlike in an
impedance, which keeps the natural inertia; stability in contact with something stiff needs a large enough M or D.
"""

from __future__ import annotations

from collections.abc import Mapping

from cosim.core import ops
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
from cosim.plugins.controllers._external_effort import ExternalEffort, next_rate
from cosim.plugins.controllers._required_effort import RequiredEffort


@params
class Params:
    inertia: PerJoint = param(unit="joint inertia", above=0, doc="M")
    damping: PerJoint = param(unit="joint damping", min=0, doc="D")
    stiffness: PerJoint = param(unit="joint stiffness", min=0, doc="K; 0: the joint stays where it is pushed to")
    kp: PerJoint = param(unit="joint stiffness", min=0, doc="of the loop that follows the setpoint")
    kd: PerJoint = param(unit="joint damping", min=0, doc="of the same")
    bandwidth: float = param(unit="Hz", above=0, default=30.0, doc="of the external effort")
    friction: bool = param(default=True, doc="compensate the joints' friction at the velocity of the setpoint")


class JointAdmittance:
    def __init__(self, params: Params, context: ControllerContext) -> None:
        n = len(context.joints)
        self.params, self._period, self._n = params, context.period, n
        self._external = ExternalEffort(params.bandwidth, context)
        self._required = RequiredEffort(context)
        self.inputs = {**joint_signals(REFERENCE, n), **self._external.inputs, **self._required.inputs}
        self.outputs = joint_signals(COMMAND, n)

    def initial(self) -> State:
        rest = ops.zeros(self._n)
        return {"external": self._external.initial(), "offset": rest, "rate": rest}

    def update(self, t: Numeric, p: Params, x: State, u: Mapping[str, Numeric]) -> tuple[State, dict[str, Numeric]]:
        external_state, external = self._external(t, x["external"], u)
        inertia, damping, stiffness = (ops.array(values) for values in (p.inertia, p.damping, p.stiffness))
        rate = next_rate(x["offset"], x["rate"], external, inertia, damping, stiffness, self._period)
        offset = x["offset"] + self._period * rate
        acceleration = u["reference_acceleration"] + (rate - x["rate"]) / self._period
        velocity = u["reference_velocity"] + rate
        effort = self._required(t, u, acceleration, velocity if p.friction else None) - external
        return {"external": external_state, "offset": offset, "rate": rate}, {
            "position": u["reference_position"] + offset,
            "velocity": velocity,
            "effort": effort + u["reference_effort"],
            "kp": ops.array(p.kp),
            "kd": ops.array(p.kd),
        }


def load(params: Params, context: ControllerContext) -> JointAdmittance:
    return JointAdmittance(params, context)
