"""Wires with a factor and an offset, in both masters."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from cosim.coupling import BlockPart, CoupledParts, Wire
from cosim.coupling.coupled_parts import MASTERS
from tests.kit.coupled import Gain, Lag

FACTOR, OFFSET = -3.0, 0.5


@pytest.mark.parametrize("master", MASTERS)
@pytest.mark.parametrize("compiled", [True, False])
def test_an_input_is_the_output_scaled_and_shifted(master, compiled):
    """Against scipy on the whole; units differ, and the slope is scaled too, without the offset."""
    parts = {"fast": BlockPart(Lag("N", "m", 0.01, 1.0), 1e-5), "slow": BlockPart(Lag("m", "m", 0.5, 2.0), 1e-3)}
    wires = [Wire("fast.y", "slow.u"), Wire("slow.y", "fast.u", None, FACTOR, OFFSET)]
    run = CoupledParts(parts, wires, master, 2, 2e-4, compiled=compiled).run(0.05)

    def flow(t: float, x: np.ndarray) -> list[float]:
        return [(FACTOR * x[1] + OFFSET - x[0]) / 0.01, (x[0] - x[1]) / 0.5]

    whole = solve_ivp(flow, (0.0, 0.05), [1.0, 2.0], "Radau", rtol=1e-10, atol=1e-12)
    assert [run["fast.y"][-1], run["slow.y"][-1]] == pytest.approx(whole.y[:, -1], abs=1e-6)


@pytest.mark.parametrize("compiled", [True, False])
def test_a_delayed_wire_begins_with_the_value_of_the_input(compiled):
    parts = {"lag": BlockPart(Lag("N", "N", 0.1, 1.0), 1e-3), "gain": BlockPart(Gain("N", "N"), 1e-3)}
    wires = [Wire("gain.y", "lag.u"), Wire("lag.y", "gain.u", 7.0, FACTOR, OFFSET)]
    run = CoupledParts(parts, wires, order=1, step=0.01, compiled=compiled).run(0.05)
    factor = parts["gain"].block.params.factor
    assert run["gain.y"][0] == factor * 7.0
    assert run["gain.y"][1:] == pytest.approx(factor * (FACTOR * run["lag.y"][:-1] + OFFSET), rel=1e-14)
