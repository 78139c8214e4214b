"""Fingers that press with a force: it grows from nothing in half a second, so that they meet the box slowly."""

from cosim.plugin import COMMAND, joint_signals, ops, param, params

RISE = 0.5  # s


@params
class Params:
    force: float = param(unit="N", min=0, doc="of each finger")


class Squeeze:
    def __init__(self, params, context):
        self.params, self.n = params, len(context.joints)
        self.inputs = joint_signals(("position",), self.n)
        self.outputs = joint_signals(COMMAND, self.n)

    def initial(self):
        return {}

    def update(self, t, p, x, u):
        rest = ops.zeros(self.n)
        effort = p.force * ops.minimum(t / RISE, 1.0) + rest
        return x, {"position": rest, "velocity": rest, "effort": effort, "kp": rest, "kd": rest}


def load(params, context):
    return Squeeze(params, context)
