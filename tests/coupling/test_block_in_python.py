"""Steps of a block in Python alone: equal to those of `BlockPart` on numbers, to the bit."""

import numpy as np
import pytest

from cosim.coupling import BlockPart
from cosim.coupling.block_in_python import advance_in_python
from cosim.types import Signal, param, params


@params
class NoParameters:
    gain: float = param(unit="1", default=0.7)


class Continuous:
    """With an array, a nested state and two power ports of different shapes."""

    positions = ("x",)

    def __init__(self):
        self.params = NoParameters()
        self.inputs = {"force": Signal((), "N"), "forces": Signal((2,), "N")}
        self.outputs = {"velocity": Signal((), "m/s"), "velocities": Signal((2,), "m/s")}

    def initial(self):
        return {"x": 0.3, "v": np.array([0.1, -0.2]), "inner": {"w": 0.5}}

    def flow(self, t, p, x, u):
        w = x["inner"]["w"]
        dx = {"x": w, "v": u["forces"] - p.gain * x["v"] * w, "inner": {"w": u["force"] - np.sin(x["x"] + t)}}
        return dx, {"velocity": w, "velocities": x["v"] + u["force"]}


class Scalars(Continuous):
    positions = ()

    def __init__(self):
        super().__init__()
        self.inputs, self.outputs = {"force": Signal((), "N")}, {"velocity": Signal((), "m/s")}

    def initial(self):
        return {"x": 0.3, "v": 0.1}

    def flow(self, t, p, x, u):
        return {"x": x["v"], "v": u["force"] - p.gain * np.sin(x["x"] * t)}, {"velocity": x["v"]}


class Discrete(Scalars):
    def update(self, t, p, x, u):
        v = x["v"] + 0.1 * (u["force"] - np.tanh(x["x"])) + 0.01 * t
        return {"x": x["x"] + 1e-3 * v, "v": v}, {"velocity": v}


PORTS = {"force": "velocity", "forces": "velocities"}


CASES = [  # block, integrator, step of the coupling, whether it has ports, rows of the polynomials
    (Continuous, "rk4", None, True, 3),
    (Continuous, "semi_implicit_euler", 4e-3, False, 2),
    (Scalars, "rk4", 4e-3, True, 1),
    (Scalars, "rk4", None, False, 3),
    (Discrete, "rk4", 4e-3, True, 2),
    (Discrete, "rk4", None, False, 1),
]


@pytest.mark.parametrize(("kind", "integrator", "coupling_step", "ported", "rows"), CASES)
def test_it_is_the_same_to_the_bit(kind, integrator, coupling_step, ported, rows):
    block = kind()
    ports = tuple((name, PORTS[name]) for name in block.inputs) if ported else ()
    part = BlockPart(block, 1e-3, integrator, ports=ports, compiled=False, coupling_step=coupling_step)
    coefficients = np.random.default_rng(rows).normal(size=(rows, part.input_layout.size))
    x, _ = part.at_start(0.2, coefficients[0])
    states = [x, x]
    for k in range(5):
        t, found = 0.2 + 4e-3 * k, []
        for j, advance in enumerate((part.advance, advance_in_python(part))):
            states[j], y, work = advance(t, 4e-3, states[j], coefficients)
            found.append([states[j].tolist(), y.tolist(), work.tolist()])
        assert found[0] == found[1]
