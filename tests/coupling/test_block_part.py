"""A block as a part: every integrator against the exact motion, blocks that cannot be traced, states and works."""

from typing import Any

import numpy as np
import pytest

from cosim.coupling import BlockPart, CoupledParts, EnergyControl, Wire
from cosim.coupling.block_part import METHODS
from cosim.coupling.energy import MeasuresWork
from cosim.coupling.stepped_block import SteppedBlock
from cosim.errors import InputError
from tests.kit.coupled import Factor, Lag, SampledGain


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
    with pytest.raises(InputError) as error:
        WRONG[what]()
    said(error.value)
