"""Pushes a body on a planar joint (dofs x, y, angle) along its own x axis, and turns it."""

from cosim.plugin import COMMAND, joint_signals, ops, param, params


@params
class Params:
    force: float = param(unit="N", doc="along the body's x axis")
    moment: float = param(unit="N*m", doc="about the normal of the plane")


class Skater:
    def __init__(self, params, context):
        self.params = params
        self.inputs = joint_signals(("position",), 3)
        self.outputs = joint_signals(COMMAND, 3)

    def initial(self):
        return {}

    def update(self, t, p, x, u):
        heading, rest = u["position"][2], ops.zeros(3)
        effort = ops.array([p.force * ops.cos(heading), p.force * ops.sin(heading), p.moment])
        return {}, {"position": u["position"], "velocity": rest, "effort": effort, "kp": rest, "kd": rest}


def load(params, context):
    return Skater(params, context)
