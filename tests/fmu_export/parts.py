"""A rig with parts for tests of their FMUs: a continuous one with arrays, and one that is sampled."""

from __future__ import annotations

PAIR = '''
from cosim.plugin import ops
from cosim.plugin import Signal, param, params


@params
class Params:
    stiffness: float = param(unit="N*m/rad", min=0, max=1e4, default=20.0, doc="of both springs")
    damping: tuple[float, ...] = param(unit="N*m*s/rad", above=0, default=(0.1, 0.4))
    power: float = param(default=3.0)
    offset: float = param(unit="rad", default=0.25, constant=True)


class Pair:
    """Two springs that get stiffer.

    Their ends are turned.
    """

    inputs = {"speed": Signal((2,), "rad/s"), "bias": Signal((), "N*m")}
    outputs = {"torque": Signal((2,), "N*m"), "turn": Signal((2,), "rad"), "total": Signal((), "N*m")}

    def __init__(self, params):
        self.params = params

    def initial(self):
        return {"twist": ops.array([self.params.offset, -self.params.offset]), "clock": 0.0}

    def flow(self, t, p, x, u):
        hard = 2.0 if p.power > 1.0 else 0.0  # on which the form of the code depends
        twist = x["twist"]
        torque = p.stiffness * (twist + hard * twist * twist * twist) + p.damping * u["speed"]
        dx = {"twist": u["speed"] - 40.0 * torque * ops.cos(t), "clock": 1.0}
        return dx, {"torque": torque, "turn": twist, "total": torque[0] + 2.0 * torque[1] + u["bias"]}


def load(params):
    return Pair(params)
'''

GOVERNOR = '''
from cosim.plugin import ops
from cosim.plugin import Signal, param, params


@params
class Params:
    gain: float = param(unit="1/s", min=0, default=5.0)


class Governor:
    """Speeds against turns."""

    inputs = {"turn": Signal((2,), "rad")}
    outputs = {"speed": Signal((2,), "rad/s"), "bias": Signal((), "N*m")}

    def __init__(self, params):
        self.params = params

    def initial(self):
        return {"count": 0.0, "sum": ops.zeros(2)}

    def update(self, t, p, x, u):
        total = x["sum"] + u["turn"]
        speed = -p.gain * (u["turn"] + 0.1 * total) + ops.sin(30.0 * t)
        return {"count": x["count"] + 1.0, "sum": total}, {"speed": speed, "bias": x["count"]}


def load(params):
    return Governor(params)
'''

RIG = """
name: pairs
mechanism:
  bodies: [{name: rotor, joint: shaft, axis: [0, 0, 1], mass: 1 kg, inertia: [0.02, 0.02, 0.02]}]
parts:
  - {name: governor, type: governor.py, step: 0.5 ms}
  - {name: pair, type: pair.py, step: 0.3 ms, integrator: rodas4}
couplings:
  order: 0
  wires:
    - {output: pair.turn, input: governor.turn}
    - {output: governor.speed, input: pair.speed}
    - {output: governor.bias, input: pair.bias}
schedule: {step: 1 ms, duration: 0.2 s}
"""
FILES = {"pair": PAIR, "governor": GOVERNOR}
