"""The road under a car's axis: a plate that tilts about its near end, the height of its far end being a sine."""

from cosim.plugin import GeneralMotion, ops, param, params


@params
class Params:
    amplitude: float = param(unit="m", above=0, doc="of the height of the far end; less than the length")
    length: float = param(unit="m", above=0, doc="from the near end, which stays, to the far end")
    rate: float = param(unit="rad/s", above=0, doc="angular frequency of the height")


def load(params):
    def place(q, t):
        s = params.amplitude / params.length * ops.sin(params.rate * t)
        c = ops.sqrt(1.0 - s * s)
        return ops.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]]), ops.zeros(3)

    return GeneralMotion((), (), place, timed=True)
