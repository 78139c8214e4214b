"""A push on a link: a constant force in ground axes for some time."""

from cosim.plugin import ForceLaw, ops, param, params


@params
class Params:
    force: tuple[float, float, float] = param(unit="N", doc="in ground axes")
    start: float = param(unit="s", min=0)
    duration: float = param(unit="s", above=0)


def load(params):
    def wrenches(frames, q, v, t):
        acts = ops.logical_and(t >= params.start, t < params.start + params.duration)
        return [ops.where(acts, 1.0, 0.0) * ops.array(params.force)]

    return ForceLaw(wrenches, timed=True)
