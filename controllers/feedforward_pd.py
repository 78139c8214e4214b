"""Feedforward and PD: the required effort of the reference by the model, and a PD loop in the drive for the error.

effort = τ(q_ref, v_ref, a_ref) + friction(v_ref) + reference effort, where τ comes from the hybrid dynamics:
the controlled joints follow the reference, prescribed ones their motion, and the others are passive at their
measured position and velocity (Featherstone, Rigid Body Dynamics Algorithms, §9.1; Spong et al., Robot
Modeling and Control, §8.3).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cosim import ops
from cosim.types import COMMAND, REFERENCE, ControllerContext, Numeric, PerJoint, State, joint_signals, param, params


@params
class Params:
    kp: PerJoint = param(unit="joint stiffness", min=0, doc="effort per position error")
    kd: PerJoint = param(unit="joint damping", min=0, doc="effort per velocity error")
    friction: bool = param(default=True, doc="compensate the joints' friction at the reference velocity")


class FeedforwardPd:
    def __init__(self, params: Params, context: ControllerContext) -> None:
        n, nv = len(context.joints), context.model.nv
        self.params = params
        self.inputs = {
            **joint_signals(REFERENCE, n),
            **joint_signals(("all_position", "all_velocity", "all_acceleration"), nv),
        }
        self.outputs = joint_signals(COMMAND, n)
        self._model = context.model
        self._index = context.index
        self._prescribed = np.isin(np.arange(nv), context.index) | context.prescribed

    def initial(self) -> State:
        return {}

    def update(self, t: Numeric, p: Params, x: State, u: Mapping[str, Numeric]) -> tuple[State, dict[str, Numeric]]:
        model, zero = self._model.equations, ops.zeros(len(self._prescribed))
        q = model.coordinates(ops.with_elements(u["all_position"], self._index, u["reference_position"]))
        v = ops.with_elements(u["all_velocity"], self._index, u["reference_velocity"])
        a = ops.with_elements(u["all_acceleration"], self._index, u["reference_acceleration"])
        _, effort = model.hybrid_dynamics(q, v, a, zero, self._prescribed, t)
        if p.friction:
            effort = effort + model.friction_effort(v)
        return {}, {
            "position": u["reference_position"],
            "velocity": u["reference_velocity"],
            "effort": effort[self._index] + u["reference_effort"],
            "kp": ops.array(p.kp),
            "kd": ops.array(p.kd),
        }


def load(params: Params, context: ControllerContext) -> FeedforwardPd:
    return FeedforwardPd(params, context)
