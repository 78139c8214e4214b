"""A cable before a machine adds its resistance and inductance."""

from typing import Any

import numpy as np
import pytest

from cosim.mechanics.bondgraph import BondGraph, Law, R, Se, assemble
from cosim.mechanics.bondgraph.components import cable, dc_machine
from tests.bondgraph.graphs import E, graph_of
from tests.bondgraph.simulation import Simulation

OPTIONS: dict[str, Any] = {"method": "DOP853", "rtol": 1e-11, "atol": 1e-12}


def fed(machine: dc_machine.Params, line: cable.Params | None) -> BondGraph:
    """A DC machine on 12 V that swing, behind the cable."""
    supply = Se(E, Law(lambda t: 12.0 - 4.0 * (t > 0.02), ("t",)))
    parts: dict[str, Any] = {"supply": supply, "machine": dc_machine.build(machine)}
    if line is None:
        return graph_of("supply -> machine.armature", **parts)
    return graph_of("supply -> cable.conductor -> machine.armature", cable=cable.build(line), **parts)


@pytest.mark.parametrize("inductance", [0.0, 0.6e-6])
def test_it_is_in_series_with_the_machine(inductance: float) -> None:
    """The motion is the one of a machine that has R + 2 l R' (1 + α ΔT) and L + 2 l L' itself, and energy closes."""
    line = cable.Params(20.0, 7e-3, inductance, conductors=2, temperature_rise=40.0)
    t = np.linspace(0.0, 0.06, 13)
    shaft: dict[str, Any] = {"inertia": 1e-4, "torque_constant": 0.05, "viscous": 1e-4}
    found = Simulation(assemble(fed(dc_machine.Params(0.5, 1e-3, **shaft), line)), t, **OPTIONS)
    alike = dc_machine.Params(0.5 + 40.0 * 7e-3 * (1.0 + 0.00393 * 40.0), 1e-3 + 40.0 * inductance, **shaft)
    expected = Simulation(assemble(fed(alike, None)), t, **OPTIONS)
    np.testing.assert_allclose(found["machine.inertia.flow"], expected["machine.inertia.flow"], rtol=1e-8, atol=1e-10)
    assert found.energy_gap() < 1e-9
    assert found.dissipated[-1] == pytest.approx(expected.dissipated[-1], rel=1e-8)


def test_a_short_circuit_at_its_end_has_its_closed_form() -> None:
    """i = U / R (1 − exp(−t R / L)) of the cable alone."""
    line = cable.Params(50.0, 2e-3, 0.8e-6)
    graph = graph_of("supply -> line.conductor -> end", supply=Se(E, 10.0), end=R(E, 1e-9), line=cable.build(line))
    t = np.linspace(0.0, 2e-3, 7)
    found = Simulation(assemble(graph), t, **OPTIONS)
    expected = 100.0 * (1.0 - np.exp(-t * 0.1 / 40e-6))
    np.testing.assert_allclose(found["line.inductance.flow"], expected, rtol=1e-6)


def test_it_has_a_resistance() -> None:
    with pytest.raises(ValueError, match="so cold that its resistance is 0 or less"):
        cable.Params(1.0, 1e-3, temperature_rise=-300.0)
