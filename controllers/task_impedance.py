"""Impedance control in task space: a frame is on springs with dampers about its reference (Hogan 1985; Khatib 1987).

F = K e + D ė,   effort = Jᵀ F + the effort of the reference, see `_tracking_effort`

e is the distance of the frame from where the reference of the joints takes it, in ground axes; of the orientation the
sine of the angle along its axis, the gradient of K (1 − cos), so that the springs store what is put into them. The
inertia is the natural one. D comes from the damping ratio ζ of each direction with the mass m = 1 / (J M⁻¹ Jᵀ)_ii that
the frame has along it: D = 2 ζ √(K m).
"""

from __future__ import annotations

from collections.abc import Mapping

from cosim.core import ops
from cosim.core.errors import InputError
from cosim.core.types import COMMAND, ControllerContext, Numeric, PerJoint, State, joint_signals, param, params
from cosim.plugins.controllers._required_effort import TrackingEffort
from cosim.plugins.controllers._task_space import TaskFrame, TaskState

Vector = tuple[float, float, float]


@params
class Params:
    frame: str = param(doc="a link of the mechanism")
    stiffness: Vector = param(unit="N/m", min=0, doc="K along x, y, z of the ground")
    rotational_stiffness: float = param(unit="N*m/rad", min=0, default=0.0, doc="K of the orientation; 0: it is free")
    damping_ratio: float = param(min=0, default=0.7, doc="ζ of each direction with its own mass")
    damping: Vector | None = param(unit="N*s/m", min=0, default=None, doc="D along x, y, z, instead of a ratio")
    rotational_damping: float | None = param(unit="N*m*s/rad", min=0, default=None, doc="instead of a ratio")
    joint_damping: PerJoint = param(unit="joint damping", min=0, default=0.0, doc="besides, for motions without effect")
    friction: bool = param(default=True, doc="compensate the joints' friction at the reference velocity")


class TaskImpedance:
    def __init__(self, params: Params, context: ControllerContext) -> None:
        n = len(context.joints)
        for name in context.drive_controlled:
            what = f"the drive of joint '{name}' closes a loop of its own"
            raise InputError(f"{what}; use mode: effort of the drive, or type: joint_admittance")
        self.params = params
        self._task, self._effort = TaskFrame(params.frame, context), TrackingEffort(context)
        self.inputs = {**self._task.inputs, **self._effort.inputs}
        self.outputs = joint_signals(COMMAND, n)
        self._no_gain = ops.zeros(n)

    def initial(self) -> State:
        return {}

    def update(self, t: Numeric, p: Params, x: State, u: Mapping[str, Numeric]) -> tuple[State, dict[str, Numeric]]:
        task = self._task.state(t, u)
        stiffness = ops.concatenate([ops.array(p.stiffness), *[ops.array([p.rotational_stiffness])] * 3])
        force = stiffness * task.error + self._damping(p, stiffness, task) * task.rate
        return {}, {
            "position": u["reference_position"],
            "velocity": u["reference_velocity"],
            "effort": task.jacobian.T @ force + self._effort(t, u, p.friction),
            "kp": self._no_gain,
            "kd": ops.array(p.joint_damping),
        }

    @staticmethod
    def _damping(p: Params, stiffness: Numeric, task: TaskState) -> Numeric:
        """(6,)"""
        by_ratio = 2.0 * p.damping_ratio * ops.sqrt(stiffness / task.mobility)
        linear = by_ratio[:3] if p.damping is None else ops.array(p.damping)
        if p.rotational_damping is None:
            return ops.concatenate([linear, by_ratio[3:]])
        return ops.concatenate([linear, *[ops.array([p.rotational_damping])] * 3])


def load(params: Params, context: ControllerContext) -> TaskImpedance:
    return TaskImpedance(params, context)
