"""A motor that gives a constant effort, whatever its joint does."""

from cosim.plugin import COMMAND, joint_signals, ops, param, params


@params
class Params:
    effort: float = param(unit="joint effort", doc="of each joint")


class ConstantTorque:
    def __init__(self, params, context):
        self.params, self._n = params, len(context.joints)
        self.inputs = {}
        self.outputs = joint_signals(COMMAND, self._n)

    def initial(self):
        return {}

    def update(self, t, p, x, u):
        rest = ops.zeros(self._n)
        command = {"position": rest, "velocity": rest, "effort": rest + p.effort, "kp": rest, "kd": rest}
        return {}, command


def load(params, context):
    return ConstantTorque(params, context)
