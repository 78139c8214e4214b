"""A chassis on its suspension: velocity of the wheel in, force on the wheel out."""

from cosim.plugin import Signal, param, params


@params
class Params:
    mass: float = param(unit="kg", above=0, doc="of the chassis")
    stiffness: float = param(unit="N/m", above=0, doc="of the suspension")
    damping: float = param(unit="N*s/m", min=0, doc="of the suspension")


class Chassis:
    """Positions are heights above those at rest on the flat road."""

    positions = ("height", "wheel_height")

    def __init__(self, params):
        self.params = params
        self.inputs = {"velocity": Signal((), "m/s")}
        self.outputs = {"force": Signal((), "N", "on the wheel"), "height": Signal((), "m", "of the chassis")}

    def initial(self):
        return {"height": 0.0, "wheel_height": 0.0, "velocity": 0.0}

    def flow(self, t, p, x, u):
        stretch = x["height"] - x["wheel_height"]
        force = p.stiffness * stretch + p.damping * (x["velocity"] - u["velocity"])
        dx = {"height": x["velocity"], "wheel_height": u["velocity"], "velocity": -force / p.mass}
        return dx, {"force": force, "height": x["height"]}


def load(params):
    return Chassis(params)
