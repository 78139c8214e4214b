"""A load on an elastic rope that is wound on a drum: speed of the drum in, torque on it out."""

from cosim.plugin import Signal, ops, param, params

GRAVITY = 9.81  # m/s²


@params
class Params:
    mass: float = param(unit="kg", above=0, doc="of the load")
    radius: float = param(unit="m", above=0, doc="of the drum")
    stiffness: float = param(unit="N/m", above=0, doc="of the rope")
    damping: float = param(unit="N*s/m", min=0, default=0.0, doc="of the rope")


class HoistedLoad:
    """The rope can only pull. The load begins at rest, and the rope carries it."""

    positions = ("stretch", "height")

    def __init__(self, params):
        self.params = params
        self.inputs = {"speed": Signal((), "rad/s")}
        self.outputs = {
            "torque": Signal((), "N*m", "on the drum"),
            "height": Signal((), "m", "of the load"),
            "tension": Signal((), "N", "of the rope"),
        }

    def initial(self):
        return {"stretch": self.params.mass * GRAVITY / self.params.stiffness, "height": 0.0, "speed": 0.0}

    def flow(self, t, p, x, u):
        rate = p.radius * u["speed"] - x["speed"]
        tension = ops.maximum(p.stiffness * x["stretch"] + p.damping * rate, 0.0)
        dx = {"stretch": rate, "height": x["speed"], "speed": tension / p.mass - GRAVITY}
        return dx, {"torque": -p.radius * tension, "height": x["height"], "tension": tension}


def load(params):
    return HoistedLoad(params)
