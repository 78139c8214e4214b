"""Impedance control in joint space: each joint is a spring with a damper about its reference (Hogan 1985).

effort = K (q_ref − q) + D (q̇_ref − q̇) + the effort of the reference, see `_tracking_effort`. The inertia is the
natural one, so that no measured force is needed, and about a constant reference the joints are passive: what is taken
out at them was put in before. K and D act in the drive. D comes from the damping ratio ζ of each joint with the inertia
M_ii(q) that it has while the others rest: D = 2 ζ √(K M_ii).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cosim.core import ops
from cosim.core.types import COMMAND, ControllerContext, Numeric, PerJoint, State, joint_signals, param, params
from cosim.plugins.controllers._required_effort import TrackingEffort


@params
class Params:
    stiffness: PerJoint = param(unit="joint stiffness", min=0, doc="K")
    damping_ratio: PerJoint = param(min=0, default=0.7, doc="ζ of each joint with its own inertia")
    damping: PerJoint | None = param(unit="joint damping", min=0, default=None, doc="D, instead of a ratio")
    friction: bool = param(default=True, doc="compensate the joints' friction at the reference velocity")


class JointImpedance:
    def __init__(self, params: Params, context: ControllerContext) -> None:
        n = len(context.joints)
        self.params = params
        self._effort, self._model, self._index = TrackingEffort(context), context.model, context.index
        self.inputs = {**joint_signals(("reference_position",), n), **self._effort.inputs}
        self.outputs = joint_signals(COMMAND, n)

    def initial(self) -> State:
        return {}

    def update(self, t: Numeric, p: Params, x: State, u: Mapping[str, Numeric]) -> tuple[State, dict[str, Numeric]]:
        stiffness = ops.array(p.stiffness)
        return {}, {
            "position": u["reference_position"],
            "velocity": u["reference_velocity"],
            "effort": self._effort(t, u, p.friction),
            "kp": stiffness,
            "kd": ops.array(p.damping) if p.damping is not None else self._damping(p, stiffness, u["all_position"], t),
        }

    def _damping(self, p: Params, stiffness: Numeric, chart: Numeric, t: Numeric) -> Numeric:
        """(n,) of the damping ratio."""
        mass = self._model.equations.mass_matrix(self._model.coordinates(chart), t)
        return 2.0 * ops.array(p.damping_ratio) * ops.sqrt(stiffness * np.diagonal(mass)[self._index])


def load(params: Params, context: ControllerContext) -> JointImpedance:
    return JointImpedance(params, context)
