"""A wall below a frame: a stiff spring with a damper that pushes and never pulls."""

from cosim.plugin import ForceLaw, ops, param, params


@params
class Params:
    height: float = param(unit="m", doc="of its surface")
    stiffness: float = param(unit="N/m", above=0)
    damping: float = param(unit="N*s/m", min=0, default=0.0)


def load(params):
    def wrenches(frames, q, v, t):
        depth, speed = params.height - frames[0].position[2], -frames[0].linear[2]
        push = ops.maximum(params.stiffness * depth + params.damping * speed, 0.0)
        return [ops.where(depth > 0.0, push, 0.0) * ops.array([0.0, 0.0, 1.0])]

    return ForceLaw(wrenches)
