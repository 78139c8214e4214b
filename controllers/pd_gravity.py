"""PD with gravity compensation: a PD loop about the reference in the drive, gravity compensated by the model.

effort = g(q) at the measured position + reference effort (Takegaki and Arimoto, 1981). g(q) is the effort at rest, with
springs; in a mechanism with loops that of the commanded joints, with the reactions of the loops.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

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


@params
class Params:
    kp: PerJoint = param(unit="joint stiffness", min=0, doc="effort per position error")
    kd: PerJoint = param(unit="joint damping", min=0, doc="effort per velocity error")


class PdGravity:
    def __init__(self, params: Params, context: ControllerContext) -> None:
        n = len(context.joints)
        self.params = params
        self.inputs = {**joint_signals(REFERENCE, n), **joint_signals(("all_position", "all_locked"), context.model.nv)}
        self.outputs = joint_signals(COMMAND, n)
        self._model = context.model
        self._index = context.index
        self._prescribed = np.isin(np.arange(context.model.nv), context.index) | context.prescribed

    def initial(self) -> State:
        return {}

    def update(self, t: Numeric, p: Params, x: State, u: Mapping[str, Numeric]) -> tuple[State, dict[str, Numeric]]:
        model, rest = self._model.equations, ops.zeros(self._model.nv)
        q = model.coordinates(u["all_position"])
        if self._model.constraint_rows:
            known = ops.logical_or(self._prescribed, u["all_locked"] > 0.5)
            _, gravity = model.hybrid_dynamics(q, rest, rest, rest, known, t)
        else:
            gravity = model.inverse_dynamics(q, rest, rest, t)
        return {}, {
            "position": u["reference_position"],
            "velocity": u["reference_velocity"],
            "effort": gravity[self._index] + u["reference_effort"],
            "kp": ops.array(p.kp),
            "kd": ops.array(p.kd),
        }


def load(params: Params, context: ControllerContext) -> PdGravity:
    return PdGravity(params, context)
