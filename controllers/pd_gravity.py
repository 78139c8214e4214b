"""PD with gravity compensation: the drive's PD loop about the reference, the weight carried by the model.

effort = g(q) at the measured position + reference effort (Takegaki and Arimoto, 1981).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cosim import ops
from cosim.types import COMMAND, REFERENCE, ControllerContext, PerJoint, State, joint_signals, param, params


@params
class Params:
    kp: PerJoint = param(unit="joint stiffness", min=0, doc="effort per position error")
    kd: PerJoint = param(unit="joint damping", min=0, doc="effort per velocity error")


class PdGravity:
    def __init__(self, params: Params, context: ControllerContext) -> None:
        n = len(context.joints)
        self.params = params
        self.inputs = {**joint_signals(REFERENCE, n), **joint_signals(("all_position",), context.model.nv)}
        self.outputs = joint_signals(COMMAND, n)
        self._model = context.model
        self._index = context.index

    def initial(self) -> State:
        return {}

    def update(self, t: Any, p: Params, x: State, u: Mapping[str, Any]) -> tuple[State, dict[str, Any]]:
        rest = ops.zeros(self._model.nv)
        gravity = self._model.pure.inverse_dynamics(u["all_position"], rest, rest)
        return {}, {
            "position": u["reference_position"],
            "velocity": u["reference_velocity"],
            "effort": gravity[self._index] + u["reference_effort"],
            "kp": ops.array(p.kp),
            "kd": ops.array(p.kd),
        }


def load(params: Params, context: ControllerContext) -> PdGravity:
    return PdGravity(params, context)
