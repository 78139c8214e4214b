"""A block as a part: every integrator against the exact motion, blocks that cannot be traced, states and works."""

from typing import Any

import numpy as np
import pytest

from benchmarks.rows_coupling import STEP, MassParams, MassWithSpring, PulledMass, native_steps
from cosim.core.errors import InputError
from cosim.core.types import Signal, param, params
from cosim.simulation.coupling import BlockPart, CoupledParts, EnergyControl, EnergyCorrection, PowerBond, Wire
from cosim.simulation.coupling.block_part import METHODS
from cosim.simulation.coupling.coupled_parts import MASTERS
from cosim.simulation.coupling.energy import MeasuresWork
from cosim.simulation.coupling.stepped_block import SteppedBlock, advance_in_python
from tests.kit.coupled import Factor, Lag, SampledGain
from tests.kit.refusals import raised


@pytest.mark.parametrize("method", METHODS)
def test_every_integrator_follows_an_input_that_is_a_polynomial(method):
    """ẏ = (u − y) / T with u = 1 + s + s²: y = u − T (1 + 2 s) + 2 T² + C exp(−s/T)."""
    part = BlockPart(Lag("N", "N", 0.1), 1e-4, method)
    _, y, _ = part.advance(0.0, 0.1, np.zeros(1), np.ones((3, 1)))
    time, s = 0.1, 0.1
    exact = 1.0 + s + s * s - time * (1.0 + 2.0 * s) + 2.0 * time**2
    exact -= (1.0 - time + 2.0 * time**2) * np.exp(-s / time)
    assert y[0] == pytest.approx(exact, rel=1e-3 if method == "semi_implicit_euler" else 2e-7)


class NotTraceable(Lag):
    """A lag with a Python `if` on its state."""

    def flow(self, t: Any, p: Any, x: Any, u: Any) -> Any:
        if x["y"] > 1e9:
            return {"y": np.zeros(())}, {"y": x["y"]}
        return super().flow(t, p, x, u)


def test_a_block_that_cannot_be_traced_runs_in_python_with_the_same_numbers():
    wires = [Wire("a.y", "b.u"), Wire("b.y", "a.u", 0.0)]
    runs = []
    for kind in (Lag, NotTraceable):
        parts = {"a": BlockPart(kind("N", "N", start=1.0), 1e-3), "b": BlockPart(Lag("N", "N"), 1e-3)}
        coupled = CoupledParts(parts, wires, "jacobi", 0, 2e-3)
        assert (coupled.compiled_master is None) == (kind is NotTraceable)
        runs.append(coupled.run(0.02))
    assert runs[1]["b.y"] == pytest.approx(runs[0]["b.y"], rel=1e-12)
    untraceable = BlockPart(NotTraceable("N", "N"), 1e-3)
    assert "a Python `if`" in untraceable.untraceable
    assert untraceable.feedthrough == {("u", "y")}  # nothing is known of it


def test_a_block_with_hidden_state_runs_in_python():
    class Counting(Lag):
        calls = 0

        def flow(self, t: Any, p: Any, x: Any, u: Any) -> Any:
            self.calls += 1
            rates, outputs = super().flow(t, p, x, u)
            return {"y": rates["y"] * self.calls}, outputs

    text = "does not compute the same at every call: it keeps hidden state, reads a clock or draws random numbers"
    assert text in BlockPart(Counting("N", "N"), 1e-3).untraceable
    assert not BlockPart(Lag("N", "N"), 1e-3).untraceable


def test_a_stepped_block_returns_to_what_it_saved():
    part = SteppedBlock(BlockPart(Lag("N", "N", 0.1, 1.0), 1e-3))
    part.measure([("u", "y")])
    assert isinstance(part, MeasuresWork)
    start = part.start(0.0, {"u": np.zeros(())})
    assert start["y"] == 1.0
    saved, steps = part.save(), []
    for _ in range(2):
        steps.append(float(part.step(0.0, 0.1, {"u": np.array([2.0])})["y"]))
        part.restore(saved)
    assert steps == pytest.approx([2.0 - np.exp(-1.0)] * 2)
    # ∫ 2 (2 − exp(−t/T)) dt
    assert part.work == pytest.approx([2.0 * (0.2 - 0.1 * (1.0 - np.exp(-1.0)))])


def test_the_work_of_a_held_output_is_exact():
    part = BlockPart(SampledGain("m/s", "N", 3.0), 0.5, ports=(("u", "y"),))
    x, _ = part.at_start(0.0, np.zeros(1))
    _, _, work = part.advance(0.0, 1.0, x, np.array([[1.0], [2.0], [3.0]]))
    u = np.polynomial.Polynomial([1.0, 2.0, 3.0])
    held = [3.0 * u(0.0), 3.0 * u(0.5)]
    area = u.integ()
    assert work[0] == pytest.approx(held[0] * (area(0.5) - area(0.0)) + held[1] * (area(1.0) - area(0.5)))


class Nothing:
    params, inputs, outputs = Factor(), {}, {}


PARTS = {name: BlockPart(Lag("N", "N"), 1e-3) for name in "ab"}
WIRES = [Wire("a.y", "b.u"), Wire("b.y", "a.u")]
WRONG = {
    "no equations": lambda: BlockPart(Nothing(), 1e-3, name="a"),  # type: ignore[arg-type]
    "period": lambda: CoupledParts(PARTS | {"a": BlockPart(SampledGain("N", "N"), 3e-3)}, WIRES, step=0.01),
    "step control without a bond": lambda: CoupledParts(PARTS, WIRES, control=EnergyControl(1e-4, 1e-2)),
}


@pytest.mark.parametrize("what", WRONG)
def test_blocks_and_steps_that_do_not_fit_are_named(what, said):
    said(raised(InputError, WRONG[what]))


# --- a block in Python ---


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


# --- in the native loop ---


@pytest.mark.parametrize("master", MASTERS)
@pytest.mark.parametrize("correction", [None, EnergyCorrection()])
def test_steps_in_one_loop_are_the_steps_of_a_run(master, correction):
    parts = {
        "left": BlockPart(MassWithSpring(MassParams()), STEP / 4),
        "right": BlockPart(PulledMass(MassParams()), STEP / 3),
    }
    bond = PowerBond(("left.force", "right.force"), ("right.velocity", "left.velocity"))
    coupled = CoupledParts(parts, [bond], master, 0, STEP, correction=correction)
    compiled = coupled.compiled_master
    assert compiled is not None
    memory = compiled.initial(0.0, STEP)
    native_steps(lambda m: compiled.step(m, STEP), memory)(300)
    run, found = coupled.run(300 * STEP), compiled.layout.unpack(memory)
    assert found["t"] == pytest.approx(run.t[-1])
    assert found["values"][0] == pytest.approx(np.array([run["left.force"][-1], run["right.velocity"][-1]]), rel=1e-12)
    assert found["energy"] == pytest.approx(run.residuals["left-right"][-1:], rel=1e-9)
