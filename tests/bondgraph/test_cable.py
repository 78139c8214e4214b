"""A cable before a machine adds its resistance and inductance."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from cosim.mechanics.bondgraph import Assembly, BondGraph, Law, R, Se, assemble
from cosim.mechanics.bondgraph.components import bldc, cable, dc_machine, induction_machine, linear_motor, pmsm, stepper
from tests.bondgraph.graphs import E, graph_of
from tests.bondgraph.simulation import Simulation, bench
from tests.bondgraph.test_flux_tables import machine, table, tables

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


# --- before each motor ---

LINE = cable.Params(25.0, 8e-3, 2e-6, temperature_rise=30.0)


def machines(more_r: float, more_l: float) -> dict[str, tuple[Any, Any, int]]:
    """Name -> module, parameters with so much more resistance and inductance in each winding, conductors."""
    shaft: dict[str, Any] = {"inertia": 2e-5, "viscous": 1e-5}
    of_teeth = {"teeth": 50, "torque_constant": 0.3}
    linear: dict[str, Any] = {"pole_pitch": 0.016, "force_constant": 40.0, "mass": 0.8}
    cage = {"rotor_resistance": 0.2, "magnetising_inductance": 8e-3, "rotor_leakage": 3e-4}
    r, ld, lq = 0.4 + more_r, 4e-4 + more_l, 7e-4 + more_l
    axes: dict[str, Any] = {"inductance_d": ld, "inductance_q": lq}
    return {
        "dc_machine": (dc_machine, dc_machine.Params(r, ld, torque_constant=0.06, **shaft), 2),
        "pmsm": (pmsm, pmsm.Params(4, r, ld, lq, 0.01, **shaft), 1),
        "linear_motor": (linear_motor, linear_motor.Params(resistance=r, **axes, **linear), 1),
        "bldc": (bldc, bldc.Params(4, r, ld, 0.03, **shaft), 1),
        "stepper": (stepper, stepper.Params(resistance=r, inductance=ld, **of_teeth, **shaft), 2),
        "induction_machine": (
            induction_machine, induction_machine.Params(2, r, stator_leakage=ld, **cage, **shaft), 1,
        ),
    }  # fmt: skip


def on_voltages(module: Any, params: Any, line: cable.Params | None, conductors: int) -> Assembly:
    """A machine on voltages of its windings and a load, behind the cable."""
    graph = module.build(params)
    ports = {port: mesh for port, mesh in graph.ports.items() if port != "shaft"}
    if line is not None:
        meshes = {mesh: mesh.replace("mesh", "winding") for mesh in ports.values()}
        cable.add_before(graph, line, meshes, conductors, getattr(params, "electrical_ratio", None))
    return bench(graph, {port: (f"u_{port}", "V") for port in ports})


def driven(assembly: Assembly, duration: float = 0.03) -> Simulation:
    t = np.linspace(0.0, duration, 13)

    def inputs(time: float) -> dict[str, float]:
        return {name: 9.0 * math.cos(250.0 * time - k) for k, name in enumerate(assembly.inputs)}

    return Simulation(assembly, t, inputs, **OPTIONS)


@pytest.mark.parametrize("name", machines(0.0, 0.0))
def test_before_each_motor_it_is_resistance_and_inductance_of_its_windings(name: str) -> None:
    """The same voltages give the same currents and motion, also in axes that turn; energy closes."""
    module, params, conductors = machines(0.0, 0.0)[name]
    found = driven(on_voltages(module, params, LINE, conductors))
    length = 25.0 * conductors
    _, alike, _ = machines(length * 8e-3 * (1.0 + 0.00393 * 30.0), length * 2e-6)[name]
    expected = driven(on_voltages(module, alike, None, conductors))
    assert set(found.names) == set(expected.names)
    for state in expected.names:
        size = np.ptp(expected[state])
        assert size > 0.0
        np.testing.assert_allclose(found[state], expected[state], atol=1e-8 * size, err_msg=state)
    assert found.energy_gap() < 1e-9
    assert found.dissipated[-1] == pytest.approx(expected.dissipated[-1], rel=1e-8)


def test_before_a_machine_by_flux_tables_it_is_in_series_with_its_fluxes() -> None:
    """By hand: (1 + L ∂i/∂ψ) ψ' = u − (R + R_c) i + ω J (ψ + L i), with the currents of the table."""
    motor = machine(tables(**table()))
    assert motor.flux_tables is not None
    energy, (more_r, more_l) = motor.flux_tables.energy(pmsm.SCALE), LINE.in_series()
    found = driven(on_voltages(pmsm, motor, LINE, 1))

    def by_hand(t: float, x: np.ndarray) -> list[float]:
        psi, speed, h = x[:2], x[2], 1e-6
        i = np.array(energy.currents(*psi), dtype=float)
        slopes = [
            (np.array(energy.currents(*(psi + e))) - np.array(energy.currents(*(psi - e)))) / (2 * h)
            for e in h * np.eye(2)
        ]
        u = np.array([9.0 * math.cos(250.0 * t - k) for k in range(2)])
        linked = psi + more_l * i
        turned = 4 * speed * np.array([linked[1], -linked[0]])
        over = u - (motor.resistance + more_r) * i + turned
        rate = np.linalg.solve(np.eye(2) + more_l * np.array(slopes, dtype=float).T, over)
        return [*rate, 4 * (psi[0] * i[1] - psi[1] * i[0]) / motor.inertia]

    start = [found[f"part.winding_{axis}.momentum"][0] for axis in "dq"]
    options: dict[str, Any] = {"method": "DOP853", "rtol": 1e-9, "atol": 1e-12}
    expected = solve_ivp(by_hand, (0.0, found.t[-1]), [*start, 0.0], t_eval=found.t, **options).y
    for k, state in enumerate(("winding_d.momentum", "winding_q.momentum", "inertia.flow")):
        np.testing.assert_allclose(found[f"part.{state}"], expected[k], atol=1e-7 * np.ptp(expected[k]), err_msg=state)
    assert found.energy_gap() < 1e-8
