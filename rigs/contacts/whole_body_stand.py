"""A robot on legs stands, and trots: forces at its feet hold its trunk.

    W = (K (r_d − r) − D ṙ,  K_r θ − D_r ω)    a spring with a damper to place and orientation of the trunk
    A S f = h_b + J_bᵀ W,    A = (J_1ᵀ … J_n)_b    the smallest forces f of the feet that stand
    τ = (h − Σ J_kᵀ f_k)_a − posture

(virtual model control, Pratt and others 2001). Rows b are those of the joint of the trunk, which has no drive, rows a
the ones of the drives; h is the weight and what velocities take; S is 1 for a foot that stands. Forces are kept within
friction. A foot that swings is drawn along a raised path to its place under its hip. In a trot two opposite feet swing
at a time.
"""

import numpy as np

from cosim.plugin import COMMAND, joint_signals, ops, param, params

REGULAR = 1e-3  # beside A Aᵀ, which has lower rank on two feet
STEP_BACK = 0.1  # s, of the velocity that a step takes back


@params
class Params:
    trunk: str = param(doc="the link that is held")
    feet: tuple[str, ...] = param(doc="frames of the mechanism, the first and the last one swing together")
    stiffness: float = param(unit="N/m", min=0, default=1000.0, doc="K of the place of the trunk")
    damping: float = param(unit="N*s/m", min=0, default=120.0, doc="D of the place of the trunk")
    rotational_stiffness: float = param(unit="N*m/rad", min=0, default=120.0, doc="K of its orientation")
    rotational_damping: float = param(unit="N*m*s/rad", min=0, default=10.0, doc="D of its orientation")
    posture: float = param(unit="N*m*s/rad", min=0, default=0.2, doc="damping of each joint")
    friction: float = param(
        unit="1", above=0, default=0.5, doc="most force of a foot along the ground, per normal force"
    )
    speed: float = param(unit="m/s", default=0.0, doc="along x, of the place that the trunk is drawn to")
    begins: float = param(unit="s", min=0, default=0.5, doc="of the trot")
    stride: float = param(unit="s", min=0, default=0.0, doc="of two steps of a trot; 0: it stands")
    lift: float = param(unit="m", min=0, default=0.04, doc="height of a step")
    foot_stiffness: float = param(unit="N/m", min=0, default=600.0, doc="of a foot that swings")
    foot_damping: float = param(unit="N*s/m", min=0, default=25.0, doc="of a foot that swings")


class WholeBodyStand:
    def __init__(self, params, context):
        n, self.model, self.index = len(context.joints), context.model, context.index
        self.n, self.params, self.feet = n, params, params.feet
        self.base = np.setdiff1d(np.arange(context.model.nv), context.index)
        self.inputs = joint_signals(("all_position", "all_velocity"), context.model.nv)
        self.outputs = joint_signals(COMMAND, n)

    def initial(self):
        # whether the others are known; the pose of the trunk and the feet from it at the first call
        return {"known": np.zeros(1), "place": np.zeros(3), "feet": np.zeros((len(self.feet), 3))}

    def update(self, t, p, x, u):
        model, v = self.model, u["all_velocity"]
        q = model.coordinates(u["all_position"])
        pose, J_trunk = model.frame_pose(q, p.trunk), model.frame_jacobian(q, p.trunk)
        twist = J_trunk @ v
        places = [model.frame_pose(q, foot)[:3, 3] for foot in self.feet]
        jacobians = [model.frame_jacobian(q, foot)[:3] for foot in self.feet]
        known = x["known"][0] > 0.5
        place = ops.where(known, x["place"], pose[:3, 3])
        under = [ops.where(known, x["feet"][k], places[k] - pose[:3, 3]) for k in range(len(self.feet))]

        walks, weight = self._walks(t, p), model.nonlinear_effects(q, v)
        speed = ops.array([p.speed, 0.0, 0.0]) * ops.where(walks > 0.0, 1.0, 0.0)
        wrench = self._wrench(p, pose, twist, place + p.speed * walks * np.eye(3)[0], speed)
        swing = [self._swing(p, walks, k) for k in range(len(self.feet))]
        on_base = (weight + J_trunk.T @ wrench)[self.base]
        forces = self._forces(p, on_base, jacobians, [ops.where(s > 0.0, 0.0, 1.0) for s in swing])
        effort = weight - p.posture * v
        for k, J in enumerate(jacobians):
            target = self._target(p, swing[k], pose, twist, speed, place, under[k])
            along = ops.array([twist[0], twist[1], 0.0])
            drawn = p.foot_stiffness * (target - places[k]) + p.foot_damping * (along - J @ v)
            effort = effort + J.T @ ops.where(swing[k] > 0.0, drawn, -forces[k])
        rest = ops.zeros(self.n)
        command = {"position": rest, "velocity": rest, "effort": effort[self.index], "kp": rest, "kd": rest}
        return {"known": ops.array([1.0]), "place": place, "feet": ops.array(under)}, command

    def _walks(self, t, p):
        """For how long it has trotted [s]."""
        return ops.where(p.stride > 0.0, ops.maximum(t - p.begins, 0.0), 0.0)

    def _swing(self, p, walks, k):
        """How far foot k is on its step, 0 to 1; 0 while it stands."""
        late = 0.0 if k in (0, len(self.feet) - 1) else 0.5
        phase = walks / ops.maximum(p.stride, 1e-3) + late
        phase = phase - ops.floor(phase)
        return ops.where(ops.logical_and(walks > 0.0, phase < 0.5), 2.0 * phase, 0.0)

    def _wrench(self, p, pose, twist, goal, speed):
        """(6,) on the trunk [N, N m]."""
        rotation = 0.5 * sum(ops.cross(pose[:3, k], np.eye(3)[k]) for k in range(3))  # sine of the angle to upright
        force = p.stiffness * (goal - pose[:3, 3]) + p.damping * (speed - twist[:3])
        return ops.concatenate([force, p.rotational_stiffness * rotation - p.rotational_damping * twist[3:]])

    def _forces(self, p, on_base, jacobians, stands):
        """(3,) of the ground on each foot [N]."""
        A = ops.concatenate([s * J[:, self.base] for J, s in zip(jacobians, stands, strict=True)]).T
        smallest = A.T @ ops.solve(A @ A.T + REGULAR * np.eye(6), on_base)
        forces = []
        for k in range(len(jacobians)):
            f = smallest[3 * k : 3 * k + 3]
            normal = ops.maximum(f[2], 0.0)
            along = ops.sqrt(f[0] * f[0] + f[1] * f[1] + 1e-6)
            share = ops.minimum(1.0, p.friction * normal / along)
            forces.append(ops.array([share * f[0], share * f[1], normal]))
        return forces

    def _target(self, p, swing, pose, twist, speed, place, under):
        """Where a foot that swings should be: in the middle of its next stance it is under its hip."""
        ahead = 0.25 * p.stride * speed[:2] + STEP_BACK * (twist[:2] - speed[:2])
        height = place[2] + under[2] + p.lift * ops.sin(np.pi * swing)
        return ops.array([pose[0, 3] + under[0] + ahead[0], pose[1, 3] + under[1] + ahead[1], height])


def load(params, context):
    return WholeBodyStand(params, context)
