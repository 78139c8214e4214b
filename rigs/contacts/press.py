"""A press by a crank: it follows its trajectory with no more torque than the force on the workpiece needs.

    z = r cos φ − √(l² − r² sin² φ),    τ = clip(k_p (φ_r − φ) + k_d φ̇_r, ±F |dz/dφ|) − k_d φ̇

φ is the angle of the crank from its top, z the height of the pin of the ram above its axis, and F the force. Where the
workpiece holds the ram back, the torque is at its limit: at rest the ram presses with F.
"""

from cosim.plugin import COMMAND, joint_signals, ops, param, params


@params
class Params:
    force: float = param(unit="N", above=0, doc="F, greatest force of the ram")
    crank: float = param(unit="m", above=0, doc="r, radius of the crank")
    rod: float = param(unit="m", above=0, doc="l, length of the rod")
    stiffness: float = param(unit="N*m/rad", min=0, doc="k_p of the crank")
    damping: float = param(unit="N*m*s/rad", min=0, doc="k_d of the crank")


class Press:
    def __init__(self, params, context):
        self.params, self.n = params, len(context.joints)
        self.inputs = joint_signals(("position", "velocity", "reference_position", "reference_velocity"), self.n)
        self.outputs = joint_signals(COMMAND, self.n)

    def initial(self):
        return {}

    def update(self, t, p, x, u):
        angle = u["position"]
        side = p.crank * ops.sin(angle)
        lever = ops.abs(side * (1.0 - p.crank * ops.cos(angle) / ops.sqrt(p.rod * p.rod - side * side)))
        drawn = p.stiffness * (u["reference_position"] - angle) + p.damping * u["reference_velocity"]
        effort = ops.clip(drawn, -p.force * lever, p.force * lever) - p.damping * u["velocity"]
        rest = ops.zeros(self.n)
        return x, {"position": rest, "velocity": rest, "effort": effort, "kp": rest, "kd": rest}


def load(params, context):
    return Press(params, context)
