"""The residual of a bond is the error of the energy of the whole, which its parts measure themselves."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from cosim.core.types import Numeric, Signal, Signals, State
from cosim.simulation.coupling import BlockPart, CoupledParts, EnergyControl, PowerBond
from cosim.simulation.coupling.stepped_block import SteppedBlock
from tests.kit.coupled import BOND, Factor, TwoMasses

LOSSLESS = TwoMasses()


class WithoutWork:
    """A part that is known by its contract only: its work follows the trapezoidal rule."""

    def __init__(self, part: BlockPart) -> None:
        inner = SteppedBlock(part)
        self.inputs, self.outputs, self.feedthrough = inner.inputs, inner.outputs, inner.feedthrough
        self.order, self.repeats, self.variable = inner.order, inner.repeats, inner.variable
        self.start, self.step, self.save, self.restore = inner.start, inner.step, inner.save, inner.restore
        self.close = inner.close


def energy_error(run: Any) -> np.ndarray:
    """Of the whole since the start [J]."""
    total = run["left.energy"] + run["right.energy"]
    return total - total[0]


@pytest.mark.parametrize(("master", "order"), [("jacobi", 0), ("jacobi", 2), ("gauss_seidel", 1)])
def test_the_residual_is_the_error_of_the_energy(master, order):
    run = CoupledParts(LOSSLESS.parts(1e-4), [BOND], master, order, 2e-3).run(2.0)
    error = energy_error(run)
    assert np.abs(error).max() > 1.0  # of 10 kJ
    assert run.residuals["left-right"] == pytest.approx(error, abs=1e-6)


@pytest.mark.parametrize("order", [0, 1])
def test_the_trapezoidal_rule_is_near_where_a_part_does_not_measure(order):
    parts = {name: WithoutWork(part) for name, part in LOSSLESS.parts(1e-4).items()}
    run = CoupledParts(parts, [BOND], "jacobi", order, 1e-3).run(0.5)
    error = energy_error(run)
    # of the works that go through the bond, some 1e5 J, the rule misses a part of the order of the step squared
    assert run.residuals["left-right"] == pytest.approx(error, abs=0.1 * np.abs(error).max() + 2.0)


class ReusingItsArrays(WithoutWork):
    """Its outputs are the same arrays at every step, as those of a program in C may be."""

    def __init__(self, part: BlockPart) -> None:
        super().__init__(part)
        inner, mine = self.step, {name: np.zeros(signal.shape) for name, signal in self.outputs.items()}

        def step(t: float, h: float, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
            for name, value in inner(t, h, inputs).items():
                mine[name][...] = value
            return mine

        self.step = step


@pytest.mark.parametrize("control", [None, EnergyControl(1e-4, 2e-3, repeats=True)], ids=["", "repeated"])
def test_a_part_may_reuse_the_arrays_of_its_outputs(control):
    first, second = (
        CoupledParts(
            {name: kind(part) for name, part in LOSSLESS.parts(1e-4).items()}, [BOND], step=1e-3, control=control
        ).run(0.05)
        for kind in (WithoutWork, ReusingItsArrays)
    )
    assert np.abs(first.residuals["left-right"]).max() > 0.0
    assert second.residuals["left-right"].tolist() == first.residuals["left-right"].tolist()
    assert second["left.force"].tolist() == first["left.force"].tolist()


def test_jacobi_without_extrapolation_creates_energy_in_a_spring():
    """The sign: what the coupling creates is positive."""
    run = CoupledParts(LOSSLESS.parts(1e-4), [BOND], "jacobi", 0, 1e-3).run(1.0)
    assert run.residuals["left-right"][-1] > 100.0
    assert energy_error(run)[-1] > 100.0


class Body:
    """A mass in three directions."""

    def __init__(self, velocity: Sequence[float]) -> None:
        self.params, self.velocity = Factor(), velocity
        self.inputs: Signals = {"force": Signal((3,), "N")}
        self.outputs: Signals = {"velocity": Signal((3,), "m/s"), "energy": Signal((), "J")}

    def initial(self) -> State:
        return {"v": np.array(self.velocity, dtype=float)}

    def flow(self, t: Numeric, p: Any, x: State, u: Mapping[str, Numeric]) -> tuple[State, dict[str, Numeric]]:
        return {"v": u["force"] / 2.0}, {"velocity": x["v"], "energy": x["v"] @ x["v"]}


class Spring:
    """A spring of 50 N/m in three directions."""

    def __init__(self) -> None:
        self.params = Factor()
        self.inputs: Signals = {"velocity": Signal((3,), "m/s")}
        self.outputs: Signals = {"force": Signal((3,), "N"), "energy": Signal((), "J")}

    def initial(self) -> State:
        return {"x": np.zeros(3)}

    def flow(self, t: Numeric, p: Any, x: State, u: Mapping[str, Numeric]) -> tuple[State, dict[str, Numeric]]:
        return {"x": u["velocity"]}, {"force": -50.0 * x["x"], "energy": 25.0 * (x["x"] @ x["x"])}


@pytest.mark.parametrize("compiled", [True, False])
def test_a_bond_of_three_directions(compiled):
    parts = {"spring": BlockPart(Spring(), 1e-3), "body": BlockPart(Body([1.0, -2.0, 0.5]), 1e-3)}
    bond = PowerBond(("spring.force", "body.force"), ("body.velocity", "spring.velocity"))
    run = CoupledParts(parts, [bond], "jacobi", 1, 5e-3, compiled=compiled).run(0.5)
    total = run["spring.energy"] + run["body.energy"]
    assert run["body.velocity"].shape == (101, 3)
    assert run["body.velocity"][-1] == pytest.approx(np.array([1.0, -2.0, 0.5]) * np.cos(2.5), abs=2e-3)
    assert run.residuals["spring-body"] == pytest.approx(total - total[0], abs=1e-9)
