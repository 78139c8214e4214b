"""Impedance control of a frame in task space: the tool behaves like a mass on a spring with a damper (Hogan 1985).

    F = K (x_d − x) − D ẋ,   effort = Jᵀ F + h(q, v)

Position and orientation of the frame have a stiffness and a damping each. The reference is the pose at the first call,
moved by `displacement` along a smooth path.
"""

import numpy as np

from cosim.plugin import COMMAND, joint_signals, ops, param, params


@params
class Params:
    frame: str = param(doc="a link of the mechanism")
    stiffness: float = param(unit="N/m", min=0, doc="K of the position")
    damping: float = param(unit="N*s/m", min=0, doc="D of the position")
    rotational_stiffness: float = param(unit="N*m/rad", min=0, doc="K of the orientation")
    rotational_damping: float = param(unit="N*m*s/rad", min=0, doc="D of the orientation")
    displacement: tuple[float, float, float] = param(unit="m", default=(0.0, 0.0, 0.0), doc="in ground axes")
    duration: float = param(unit="s", above=0, default=1.0, doc="of the path")


class Impedance:
    def __init__(self, params, context):
        n, nv = len(context.joints), context.model.nv
        self.params, self.model, self.index, self.n = params, context.model, context.index, n
        self.inputs = joint_signals(("all_position", "all_velocity"), nv)
        self.outputs = joint_signals(COMMAND, n)

    def initial(self):
        return {"start": np.zeros((4, 4))}  # the pose at the first call

    def update(self, t, p, x, u):
        model, v = self.model, u["all_velocity"]
        q = model.coordinates(u["all_position"])
        pose, J = model.frame_pose(q, p.frame), model.frame_jacobian(q, p.frame)
        start = ops.where(x["start"][3, 3] > 0.5, x["start"], pose)
        s = ops.clip(t / p.duration, 0.0, 1.0)
        path = s * s * s * (10.0 + s * (6.0 * s - 15.0))
        error = start[:3, 3] + path * ops.array(p.displacement) - pose[:3, 3]
        # half the sum of the cross products of the axes: the sine of the angle along its axis
        rotation = 0.5 * sum(ops.cross(pose[:3, k], start[:3, k]) for k in range(3))
        twist = J @ v
        force = p.stiffness * error - p.damping * twist[:3]
        moment = p.rotational_stiffness * rotation - p.rotational_damping * twist[3:]
        effort = J.T @ ops.concatenate([force, moment]) + model.nonlinear_effects(q, v)
        rest = ops.zeros(self.n)
        command = {"position": rest, "velocity": rest, "effort": effort[self.index], "kp": rest, "kd": rest}
        return {"start": start}, command


def load(params, context):
    return Impedance(params, context)
