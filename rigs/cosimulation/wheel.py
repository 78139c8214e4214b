"""A wheel on its tire: force of the suspension in, velocity out."""

from cosim.plugin import Signal, param, params


@params
class Params:
    mass: float = param(unit="kg", above=0, doc="of the wheel")
    stiffness: float = param(unit="N/m", above=0, doc="of the tire")
    road: float = param(unit="m", default=0.0, doc="height of the road from the start on")


class Wheel:
    """Positions are heights above those at rest on the flat road."""

    positions = ("height",)

    def __init__(self, params):
        self.params = params
        self.inputs = {"force": Signal((), "N")}
        self.outputs = {"velocity": Signal((), "m/s", "of the wheel"), "height": Signal((), "m", "of the wheel")}

    def initial(self):
        return {"height": 0.0, "velocity": 0.0}

    def flow(self, t, p, x, u):
        acceleration = (u["force"] + p.stiffness * (p.road - x["height"])) / p.mass
        return {"height": x["velocity"], "velocity": acceleration}, {"velocity": x["velocity"], "height": x["height"]}


def load(params):
    return Wheel(params)
