"""Pneumatic components against closed forms, independent integrations, and their energy."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from cosim import Rig
from cosim.mechanics.bondgraph import BondGraph, I, Law, Se
from cosim.mechanics.bondgraph.components import (
    gas_chamber,
    gas_orifice,
    gas_supply,
    gas_valve,
    gas_variable_chamber,
    ideal_cylinder,
)
from cosim.mechanics.bondgraph.components._gas import C_P, C_V, GAMMA, GAS_CONSTANT
from tests.bondgraph.graphs import graph_of, refused_in_file
from tests.bondgraph.simulation import Simulation, moved
from tests.kit.messages import Said

BAR, T0 = 1e5, 293.15
VOLUME = 1e-3
C_ORIFICE, B_ORIFICE = 2e-8, 0.35  # m³/(s Pa)
VALVE_AREA = 5e-6


def filled(start: float = 0.02 * BAR, **more: Any) -> BondGraph:
    """A chamber behind an orifice on a supply of 6 bar."""
    chamber = gas_chamber.build(gas_chamber.Params(VOLUME, start, **more))
    orifice = gas_orifice.build(gas_orifice.Params(C_ORIFICE, B_ORIFICE))
    supply = gas_supply.build(gas_supply.Params(6.0 * BAR))
    return graph_of(
        *("supply.port -> orifice.a", "orifice.b -> chamber.port"), supply=supply, orifice=orifice, chamber=chamber
    )


def temperature(motion: Simulation) -> float:
    return float(motion.assembly.effort("chamber.inlet_enthalpy", motion.known()))


def pressure(motion: Simulation, name: str = "chamber.inlet") -> float:
    return float(motion.assembly.effort(name, motion.known()))


def mass_flow(p_up: float, p_down: float, t_up: float) -> float:
    """ISO 6358, written again."""
    r = p_down / p_up
    psi = 1.0 if r <= B_ORIFICE else math.sqrt(1.0 - ((r - B_ORIFICE) / (1.0 - B_ORIFICE)) ** 2)
    return C_ORIFICE * 1.185 * p_up * math.sqrt(293.15 / t_up) * psi


def test_an_adiabatic_filling_heats_the_air_to_gamma_times_its_temperature() -> None:
    """From a vacuum U = H = c_p m T0, so T = γ T0; with m0 in it at the start, U0 + c_p (m − m0) T0 = m c_v T."""
    motion = moved(filled(), 3.0, "Radau", rtol=1e-10)
    m0 = 0.02 * BAR * VOLUME / (GAS_CONSTANT * T0)
    m = float(motion["chamber.gas.displacement"][-1])
    assert pressure(motion) == pytest.approx(6.0 * BAR, rel=1e-3)
    assert temperature(motion) == pytest.approx((m0 * C_V + (m - m0) * C_P) * T0 / (m * C_V), rel=1e-8)
    assert temperature(motion) == pytest.approx(GAMMA * T0, rel=2e-3)
    assert motion.energy_gap() < 1e-9


def test_filling_is_what_an_independent_integration_gives() -> None:
    def rates(t: float, y: np.ndarray) -> list[float]:
        p = 0.4 * y[1] / VOLUME
        flow = mass_flow(6.0 * BAR, p, T0)
        return [flow, C_P * T0 * flow]

    end = 0.3  # before the pressures are equal
    p0 = BAR
    start = [p0 * VOLUME / (GAS_CONSTANT * T0), p0 * VOLUME / 0.4]
    found = solve_ivp(rates, (0.0, end), start, "DOP853", rtol=1e-12, atol=1e-14)
    motion = moved(filled(BAR), end, "DOP853", rtol=1e-12)
    assert motion["chamber.gas.displacement"][-1] == pytest.approx(found.y[0, -1], rel=1e-8)
    assert motion["chamber.energy.displacement"][-1] == pytest.approx(found.y[1, -1], rel=1e-8)


def emptied(end: float, isothermal: bool) -> Simulation:
    """A chamber of 8 bar that empties through an ideal nozzle into 0.1 bar."""
    graph = graph_of(
        *("chamber.port -> nozzle.a", "nozzle.b -> outside.port"),
        chamber=gas_chamber.build(gas_chamber.Params(VOLUME, 8.0 * BAR, isothermal=isothermal)),
        nozzle=gas_orifice.build(gas_orifice.Params(area=VALVE_AREA, discharge=0.8)),
        outside=gas_supply.build(gas_supply.Params(0.1 * BAR)),
    )
    return moved(graph, end, "DOP853", rtol=1e-11)


PSI_MAX = math.sqrt(GAMMA * (2.0 / (GAMMA + 1.0)) ** ((GAMMA + 1.0) / (GAMMA - 1.0)))


@pytest.mark.parametrize("isothermal", [False, True])
def test_a_choked_discharge_has_its_closed_form(isothermal: bool) -> None:
    """Isothermal p = p0 exp(−t / τ); adiabatic p = p0 (1 + (γ − 1) t / (2 τ))^(−2γ/(γ−1)); τ = V / (μ A ψ √(R T0))."""
    lag = VOLUME / (0.8 * VALVE_AREA * PSI_MAX * math.sqrt(GAS_CONSTANT * T0))
    end = 0.9 * lag
    if isothermal:
        expected = 8.0 * BAR * math.exp(-end / lag)
    else:
        expected = 8.0 * BAR * (1.0 + 0.5 * (GAMMA - 1.0) * end / lag) ** (-2.0 * GAMMA / (GAMMA - 1.0))
    assert expected > 2.0 * BAR  # choked
    motion = emptied(end, isothermal)
    assert pressure(motion) == pytest.approx(expected, rel=1e-8)
    if not isothermal:  # what stays has expanded without heat
        assert motion.energy_gap() < 1e-9
        assert temperature(motion) == pytest.approx(T0 * (expected / (8.0 * BAR)) ** (1.0 - 1.0 / GAMMA), rel=1e-8)


@pytest.mark.parametrize(("ratio", "flow"), [(0.0, 1.0), (0.3, 1.0), (0.35, 1.0), (0.675, math.sqrt(0.75)), (1.0, 0.0)])
def test_the_flow_of_an_orifice_by_iso_6358(ratio: float, flow: float) -> None:
    law = gas_orifice.build(gas_orifice.Params(C_ORIFICE, B_ORIFICE)).elements["edge"].value
    assert isinstance(law, Law)
    largest = C_ORIFICE * 1.185 * 5.0 * BAR
    for a, b, sign in ((5.0 * BAR, ratio * 5.0 * BAR, 1.0), (ratio * 5.0 * BAR, 5.0 * BAR, -1.0)):
        assert law.fn(a, b, T0, T0) == pytest.approx(sign * largest * flow, rel=1e-12, abs=1e-15)


def test_the_flow_of_a_nozzle_does_not_jump_where_it_is_choked() -> None:
    law = gas_orifice.build(gas_orifice.Params(area=VALVE_AREA, discharge=1.0)).elements["edge"].value
    assert isinstance(law, Law)
    choked = float(law.fn(BAR, 0.1 * BAR, T0, T0))
    assert choked == pytest.approx(VALVE_AREA * BAR / math.sqrt(GAS_CONSTANT * T0) * PSI_MAX, rel=1e-12)
    assert choked == pytest.approx(0.0404184 * VALVE_AREA * BAR / math.sqrt(T0), rel=1e-4)  # the usual figure of air
    critical = 0.5282818
    assert float(law.fn(BAR, critical * BAR, T0, T0)) == pytest.approx(choked, rel=1e-6)


def sprung(isothermal: bool, mass: float = 2.0) -> BondGraph:
    """A mass on a piston of a closed chamber of air."""
    chamber = gas_variable_chamber.Params(VOLUME, 5.0 * BAR, isothermal=isothermal)
    return graph_of(
        *("cylinder.a -> chamber.wall", "cylinder.rod -> mass", "load -> cylinder.rod", "cylinder.b -> outside"),
        chamber=gas_variable_chamber.build(chamber),
        cylinder=ideal_cylinder.build(ideal_cylinder.Params(1e-3, 1e-3)),
        mass=I("translational", mass),
        load=Se("translational", -(5.0 * BAR - 101325.0) * 1e-3 + 0.01),
        outside=Se("hydraulic", 0.0),
    )


@pytest.mark.parametrize(("isothermal", "n"), [(True, 1.0), (False, GAMMA)])
def test_a_closed_chamber_is_a_spring(isothermal: bool, n: float) -> None:
    """k = n p A² / V: half a period after a small force is added, the piston is 2 F / k away."""
    k = n * 5.0 * BAR * 1e-6 / VOLUME
    motion = moved(sprung(isothermal), math.pi * math.sqrt(2.0 / k), "DOP853", rtol=1e-11)
    # the load pushes inwards less by 0.01 N, so the chamber grows
    moved_by = -float(motion["chamber.wall.displacement"][-1]) / 1e-3
    assert moved_by == pytest.approx(2.0 * 0.01 / k, rel=2e-4)
    half_way = moved(sprung(isothermal), 0.5 * math.pi * math.sqrt(2.0 / k), "DOP853", rtol=1e-11)
    assert half_way.energy_gap() < 1e-7  # of 5e-6 J


def test_a_shell_lets_the_heat_out() -> None:
    """A closed chamber of fixed volume cools as exp(−t / (R m c_v)); the heat is counted."""
    chamber = gas_chamber.Params(VOLUME, 5.0 * BAR, 400.0, thermal_resistance=0.5)
    motion = moved(graph_of(chamber=gas_chamber.build(chamber)), 1.0, "DOP853", rtol=1e-11)
    m = 5.0 * BAR * VOLUME / (GAS_CONSTANT * 400.0)
    assert temperature(motion) == pytest.approx(T0 + (400.0 - T0) * math.exp(-1.0 / (0.5 * m * C_V)), rel=1e-8)
    assert motion.energy_gap() < 1e-9


def test_a_valve_opens_its_edges_by_the_sign_of_its_command() -> None:
    for command, open_edges in ((1.0, "pa br"), (-0.5, "pb ar"), (0.0, "")):
        valve = gas_valve.build(gas_valve.Params(Law(lambda c=command: c), C_ORIFICE, leakage=0.0))
        for name in ("pa", "br", "pb", "ar"):
            law = valve.elements[f"edge_{name[0]}_to_{name[1]}"].value
            assert isinstance(law, Law)
            expected = abs(command) * C_ORIFICE * 1.185 * 6.0 * BAR if name in open_edges.split() else 0.0
            assert law.fn(6.0 * BAR, BAR, T0, T0) == pytest.approx(expected, rel=1e-12)


def test_two_chambers_keep_their_mass_and_energy() -> None:
    """An adiabatic vessel of 9 bar and one of 1 bar, joined by an orifice through a junction of the graph: the total
    energy is kept, so the pressure is the mean."""
    graph = graph_of(
        *("first.port -> between -> orifice.a", "orifice.b -> last.port"),
        between="0",
        first=gas_chamber.build(gas_chamber.Params(VOLUME, 9.0 * BAR, 350.0)),
        last=gas_chamber.build(gas_chamber.Params(VOLUME, 1.0 * BAR, 280.0)),
        orifice=gas_orifice.build(gas_orifice.Params(C_ORIFICE, B_ORIFICE)),
    )
    motion = moved(graph, 10.0, "Radau", rtol=1e-10)
    for name in ("first", "last"):
        assert pressure(motion, f"{name}.inlet") == pytest.approx(5.0 * BAR, rel=1e-6)
    for state in ("gas", "energy"):
        total = motion[f"first.{state}.displacement"] + motion[f"last.{state}.displacement"]
        assert total[-1] == pytest.approx(total[0], rel=1e-12)


RIG = """
name: balancer
mechanism:
  gravity: [0, 0, -9.81]
  bodies: [{name: load, joint: lift, type: prismatic, axis: [0, 0, 1], mass: 20 kg}]
joints:
  lift:
    actuator:
      type: bond_graph
      graph:
        components:
          supply: {type: gas_supply, pressure: 7 bar}
          outside: {type: gas_supply}
          valve: {type: gas_valve, conductance: 1 l/s/bar, command: 0.12 * sin(9 * t)}
          cylinder: {type: gas_cylinder, area_a: 8 cm^2, area_b: 6 cm^2, stroke: 0.4 m, dead_volume: 20 cm^3,
                     extension: 0.2 m, pressure_a: 4.5 bar, pressure_b: 2 bar, viscous: 40 N*s/m, thermal_resistance: 2}
        bonds:
          - supply.port -> valve.p
          - valve.r -> outside.port
          - valve.a -> cylinder.a
          - valve.b -> cylinder.b
          - cylinder.rod -> joint
      signals: {pressure_a: cylinder.a.effort, temperature_a: cylinder.chamber_a.temperature.effort}
schedule: {step: STEP, duration: 1 s, integrator: METHOD}
"""


@pytest.mark.parametrize(
    "method",
    ["rk4", "rodas4, substeps: auto, tolerance: 1e-9", "rosenbrock"],
)
def test_the_energy_of_a_rig_closes(rig_of: Callable[..., Rig], method: str) -> None:
    """Both ways of the piston; work of the joint, enthalpy of supply and exhaust, heat of the shells."""
    step = "0.02 ms" if method == "rosenbrock" else "0.2 ms"
    run = rig_of(RIG.replace("STEP", step).replace("METHOD", method)).run()
    assert run["lift/position"].min() < -0.03 and run["lift/position"].max() > 0.05
    balance = run.summary["energy"]
    assert balance is not None and abs(balance["residual_relative"]) < 1e-9
    assert np.all(run["lift/temperature_a"] > 200.0)


LEAK = "elements: {leak: {type: R, domain: pneumatic, resistance: 1e9}}"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("type: gas_valve, conductance", "type: gas_valve, conduct"),
        ("pressure: 7 bar", "pressure: 0 bar"),
        ("thermal_resistance: 2", "thermal_resistance: 2, isothermal: true"),
        ("extension: 0.2 m", "extension: 2 m"),
        ("bonds:", f"{LEAK}\n        bonds:\n          - valve.a -> leak"),
        ("supply.port -> valve.p", "cylinder.rod -> valve.p"),
    ],
)  # fmt: skip
def test_mistakes_are_refused(rig_of: Callable[..., Rig], said: Said, before: str, after: str) -> None:
    refused_in_file(rig_of, RIG.replace("STEP", "1 ms").replace("METHOD", "rk4").replace(before, after), said)
