"""The controller of a relay experiment: one joint is switched by the sign of its error, others are held.

It has the form of a plug-in, but no rig names it.
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
    amplitude: PerJoint = param(unit="joint effort", min=0, doc="of the relay, 0 for a joint that is held")
    hysteresis: PerJoint = param(unit="joint position", min=0, doc="error from which on the relay switches")
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
        return {"sign": np.ones(len(self._index))}

    def update(self, t: Numeric, p: Params, x: State, u: Mapping[str, Numeric]) -> tuple[State, dict[str, Numeric]]:
        amplitude, held = ops.array(p.amplitude), ops.where(ops.array(p.amplitude) > 0.0, 0.0, 1.0)
        error = u["reference_position"] - u["position"]
        hysteresis = ops.array(p.hysteresis)
        sign = ops.where(error >= hysteresis, 1.0, ops.where(error < -hysteresis, -1.0, x["sign"]))
        switched = amplitude * sign
        q, rest = self._model.coordinates(u["all_position"]), np.zeros(self._model.nv)
        held_effort = self._model.nonlinear_effects(q, rest)[self._index]
        return {"sign": sign}, {
            "position": u["reference_position"],
            "velocity": u["reference_velocity"],
            "effort": held_effort + switched,
            "kp": held * ops.array(p.kp),
            "kd": held * ops.array(p.kd),
        }


def load(params: Params, context: ControllerContext) -> Relay:
    return Relay(params, context)
