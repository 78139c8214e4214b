"""A PD loop whose angle is that of the motor, that of a frame at the tip, or between both; its damping is the motor's.

The angle of the frame is that of the line from the joint to it, in the plane of the motion about z. The loop from motor
to tip is not minimum-phase: beyond some gain it is unstable, where the loop of the motor alone is stable with any.
"""

from __future__ import annotations

import math

from cosim.plugin import COMMAND, PerJoint, joint_signals, ops, param, params


@params
class Params:
    frame: str = param(doc="at the tip")
    kp: PerJoint = param(unit="joint stiffness", min=0, doc="effort per error of the angle")
    kd: PerJoint = param(unit="joint damping", min=0, doc="effort per error of the velocity of the motor")
    tip: float = param(min=0, default=1.0, doc="1: the angle of the frame, 0: that of the motor")


class TipFeedback:
    def __init__(self, params, context):
        own = ("position", "velocity", "reference_position", "reference_velocity")
        self.params, self.model = params, context.model
        self.inputs = {**joint_signals(own, 1), **joint_signals(("all_position",), context.model.nv)}
        self.outputs = joint_signals(COMMAND, 1)

    def initial(self):
        return {}

    def update(self, t, p, x, u):
        pose = self.model.frame_pose(self.model.coordinates(u["all_position"]), p.frame)
        turn = u["position"][0]
        # the angle of the frame from that of the motor, which has no jumps
        along, across = pose[:2, 3] @ direction(turn), pose[:2, 3] @ direction(turn + 0.5 * math.pi)
        angle = u["position"] + p.tip * ops.atan2(across, along)
        error, slower = u["reference_position"] - angle, u["reference_velocity"] - u["velocity"]
        effort = ops.array(p.kp) * error + ops.array(p.kd) * slower
        rest = 0.0 * effort
        return x, {
            "position": u["reference_position"],
            "velocity": u["reference_velocity"],
            "effort": effort,
            "kp": rest,
            "kd": rest,
        }


def direction(angle):
    return ops.array([ops.cos(angle), ops.sin(angle)])


def load(params, context):
    return TipFeedback(params, context)
