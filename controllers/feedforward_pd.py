"""Feedforward and PD: the required effort of the reference by the model, and a PD loop in the drive for the error.

effort = τ(q_ref, v_ref, a_ref) + friction(v_ref) + reference effort, where τ is the inverse dynamics of the controlled
joints at the reference, see `_required_effort` (Spong et al., Robot Modeling and Control, §8.3). The friction adds up
the mechanism's and the drives', which the mechanism does not have.
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
from cosim.plugins.controllers._required_effort import RequiredEffort, drive_friction


@params
class Params:
    kp: PerJoint = param(unit="joint stiffness", min=0, doc="effort per position error")
    kd: PerJoint = param(unit="joint damping", min=0, doc="effort per velocity error")
    friction: bool = param(default=True, doc="compensate the joints' friction at the reference velocity")
    viscous: PerJoint = param(unit="joint damping", min=0, default=0.0, doc="of the drive, compensated likewise")
    coulomb: PerJoint = param(unit="joint effort", min=0, default=0.0, doc="of the drive, compensated likewise")


class FeedforwardPd:
    def __init__(self, params: Params, context: ControllerContext) -> None:
        n = len(context.joints)
        self.params = params
        self._required_effort = RequiredEffort(context)
        self.inputs = {**joint_signals(REFERENCE, n), **self._required_effort.inputs}
        self.outputs = joint_signals(COMMAND, n)

    def initial(self) -> State:
        return {}

    def update(self, t: Numeric, p: Params, x: State, u: Mapping[str, Numeric]) -> tuple[State, dict[str, Numeric]]:
        position, velocity, acceleration, effort = (u[name] for name in REFERENCE)
        friction_velocity = velocity if p.friction else None
        required = self._required_effort(t, u, acceleration, friction_velocity, position, velocity)
        return {}, {
            "position": position,
            "velocity": velocity,
            "effort": required + drive_friction(p.viscous, p.coulomb, velocity) + effort,
            "kp": ops.array(p.kp),
            "kd": ops.array(p.kd),
        }


def load(params: Params, context: ControllerContext) -> FeedforwardPd:
    return FeedforwardPd(params, context)
