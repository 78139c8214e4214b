"""A part for tests: a flywheel behind a torsional spring, in a Python file."""

from __future__ import annotations

_TEXT = '''
from cosim.plugin import Signal, param, params
{imports}

@params
class Params:
    inertia: float = param(unit="kg*m^2", above=0)
    stiffness: float = param(unit="N*m/rad", above=0)


class Flywheel:
    """Behind a torsional spring."""

    inputs = {{"speed": Signal((), "rad/s")}}
    outputs = {{"torque": Signal((), "N*m"), "wheel_speed": Signal((), "rad/s")}}
    positions = ("twist",)

    def __init__(self, params):
        self.params = params

    def initial(self):
        return {{"twist": 0.0, "speed": 0.0}}

    def flow(self, t, p, x, u):
        {first}
        torque = p.stiffness * {twist}
        dx = {{"twist": u["speed"] - x["speed"], "speed": torque / p.inertia}}
        return dx, {{"torque": -torque, "wheel_speed": x["speed"]}}


def load(params):
    return Flywheel(params)
'''


def flywheel(twist: str = 'x["twist"]', first: str = "pass", imports: str = "") -> str:
    """The text of the file. twist: the expression of the twist [rad] in the torque; first: a statement before it."""
    return _TEXT.format(twist=twist, first=first, imports=imports)
