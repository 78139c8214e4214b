"""The controller of a relay experiment: one joint is switched by the sign of its error, the others are held.

It has the form of a plug-in, but no rig names it.
"""

from __future__ import annotations

from collections.abc import Mapping

from cosim import ops
from cosim.types import COMMAND, REFERENCE, ControllerContext, Numeric, PerJoint, State, joint_signals, param, params


@params
class Params:
    amplitude: PerJoint = param(unit="joint effort", min=0, doc="of the relay, 0 for a joint that is held")
    kp: PerJoint = param(unit="joint stiffness", min=0, doc="of joints that are held")
    kd: PerJoint = param(unit="joint damping", min=0, doc="of joints that are held")


class Relay:
    def __init__(self, params: Params, context: ControllerContext) -> None:
        n = len(context.joints)
        self.params = params
        self.inputs = {
            **joint_signals((*REFERENCE, "position"), n),
            **joint_signals(("all_position",), context.model.nv),
        }
        self.outputs = joint_signals(COMMAND, n)
        self._model, self._index = context.model, context.index

    def initial(self) -> State:
        return {}

    def update(self, t: Numeric, p: Params, x: State, u: Mapping[str, Numeric]) -> tuple[State, dict[str, Numeric]]:
        amplitude, held = ops.array(p.amplitude), ops.where(ops.array(p.amplitude) > 0.0, 0.0, 1.0)
        error = u["reference_position"] - u["position"]
        switched = amplitude * ops.where(error >= 0.0, 1.0, -1.0)
        gravity = self._model.gravity_effort(self._model.coordinates(u["all_position"]))[self._index]
        return {}, {
            "position": u["reference_position"],
            "velocity": u["reference_velocity"],
            "effort": gravity + switched,
            "kp": held * ops.array(p.kp),
            "kd": held * ops.array(p.kd),
        }


def load(params: Params, context: ControllerContext) -> Relay:
    return Relay(params, context)
