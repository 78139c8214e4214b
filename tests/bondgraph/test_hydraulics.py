"""Hydraulic components against closed forms."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad

from cosim.mechanics.bondgraph import BondGraph, C, I, Law, Se, Sf, assemble
from cosim.mechanics.bondgraph.components import (
    accumulator,
    chamber,
    flow_pump,
    fluid_column,
    hydraulic_motor,
    ideal_cylinder,
    laminar_restriction,
    line,
    orifice,
    relief_valve,
    spool_valve,
    variable_chamber,
)
from cosim.mechanics.bondgraph.components._fluid import AMBIENT, Fluid
from tests.bondgraph.graphs import graph_of
from tests.bondgraph.hydraulic_graphs import (
    AREA,
    FORCE,
    MASS,
    OPENING,
    SUPPLY,
    H,
    between,
    built,
    loaded_cylinder,
    pushed_cylinder,
    supplied,
    throttled,
    throttled_cylinder,
    valve_cylinder,
)
from tests.bondgraph.simulation import Simulation, moved

MU, RHO, ETA, BULK = 0.7, 900.0, 0.04, 1.75e9
CONDUCTANCE = MU * OPENING * math.sqrt(2.0 / RHO)  # Q / √Δp of an orifice


def flow_through(component: BondGraph, pressure: float) -> float:
    motion = moved(between(component, pressure), 1e-3)
    return float(motion.assembly.flow_of("item.through", motion.known()))


@pytest.mark.parametrize("pressure", [1e5, 1e7])
def test_the_flow_of_an_orifice(pressure: float) -> None:
    assert flow_through(built(orifice, area=OPENING), pressure) == pytest.approx(CONDUCTANCE * pressure**0.5, rel=1e-4)


def test_an_orifice_is_laminar_near_zero_and_passes_both_ways() -> None:
    """Q = K Δp / √Δp_t below the transition; at Δp_t the turbulent law has the Reynolds number of the transition."""
    diameter = math.sqrt(4.0 * OPENING / math.pi)
    transition = 0.5 * RHO * (100.0 * ETA / (RHO * MU * diameter)) ** 2
    turbulent = CONDUCTANCE * math.sqrt(transition)
    assert RHO * turbulent / OPENING * diameter / ETA == pytest.approx(100.0, rel=1e-12)
    item = built(orifice, area=OPENING)
    laminar = flow_through(item, 1e-3 * transition)
    assert laminar == pytest.approx(1e-3 * turbulent, rel=1e-6)
    law = item.elements["edge"].value
    assert isinstance(law, Law)
    assert law.fn(-2e4) == -law.fn(2e4)
    assert law.fn(0.0) == 0.0


@pytest.mark.parametrize("flow", [-2e-3, -1e-7, 0.0, 1e-9, 1e-5, 3e-3])
def test_the_pressure_drop_of_an_orifice_is_the_inverse_of_its_flow(flow: float) -> None:
    edge = built(orifice, area=OPENING).elements["edge"]
    assert isinstance(edge.value, Law) and edge.inverse is not None
    assert edge.value.fn(edge.inverse.fn(flow)) == pytest.approx(flow, rel=1e-12, abs=0.0)


def test_the_flow_of_a_laminar_restriction() -> None:
    """Hagen and Poiseuille."""
    flow = flow_through(built(laminar_restriction, length=2.0, diameter=0.01, viscosity=0.05), 3e5)
    assert flow == pytest.approx(3e5 * math.pi * 0.01**4 / (128.0 * 0.05 * 2.0), rel=1e-12)


def test_a_line_starts_with_its_inertia_and_ends_with_its_loss() -> None:
    graph = between(built(line, length=5.0, diameter=0.012, density=870.0, viscosity=0.03), 2e5)
    inertia = 870.0 * 5.0 / (0.25 * math.pi * 0.012**2)
    resistance = 128.0 * 0.03 * 5.0 / (math.pi * 0.012**4)
    lag = inertia / resistance
    flows = moved(graph, 2.0 * lag, steps=4)["item.inertia.flow"]
    times = np.linspace(0.0, 2.0 * lag, 5)
    assert flows == pytest.approx(2e5 / resistance * (1.0 - np.exp(-times / lag)), rel=1e-8, abs=1e-15)


RELIEF = {"cracking": 1e7, "flow": 1e-3, "override": 1e6}


def test_a_relief_valve_cracks_and_keeps_the_pressure() -> None:
    """Q0 = G p + Q_n (p − p_c) / Δp_o."""
    graph = graph_of(
        *("pump.port -> hose.port", "pump.port -> relief.a", "relief.b -> tank"),
        pump=built(flow_pump, flow=4e-4, leakage=1e-13),
        hose=built(chamber, volume=1e-3),
        relief=built(relief_valve, **RELIEF),
        tank=Se(H, 0.0),
    )
    motion = moved(graph, 0.2, "Radau")
    pressure = float(motion.assembly.effort("pump.outlet", motion.known()))
    assert pressure == pytest.approx((4e-4 + 1e-3 * 1e7 / 1e6) / (1e-13 + 1e-3 / 1e6), rel=1e-7)
    assert motion.energy_gap() < 1e-6


@pytest.mark.parametrize(("cracking", "pressure", "flow"), [(1e7, 9.99e6, 0.0), (1e7, 1.1e7, 1e-3), (0.0, 0.0, 0.0)])
def test_a_relief_valve_is_shut_below_the_cracking_pressure(cracking: float, pressure: float, flow: float) -> None:
    assert flow_through(built(relief_valve, **{**RELIEF, "cracking": cracking}), pressure) == pytest.approx(flow)


@pytest.mark.parametrize("exponent", [1.0, 1.4])
def test_an_accumulator_follows_its_polytrope(exponent: float) -> None:
    """1 l per s for 0.4 s into 1 l of gas: (p + p0) V^n is constant."""
    item = built(accumulator, volume=1e-3, precharge=5e6, inlet=1e-9, exponent=exponent, pressure=6e6)
    motion = moved(graph_of("pump -> gas.port", gas=item, pump=Sf(H, 1e-3)), 0.4)
    gas = 1e-3 * ((5e6 + AMBIENT) / (6e6 + AMBIENT)) ** (1.0 / exponent)
    expected = (6e6 + AMBIENT) * (gas / (gas - 4e-4)) ** exponent - AMBIENT
    assert motion.assembly.effort("gas.gas", motion.known()) == pytest.approx(expected, rel=1e-9)
    assert motion.energy_gap() < 1e-8


def test_an_empty_accumulator_gives_no_fluid() -> None:
    gas = built(accumulator, volume=1e-3, precharge=5e6, inlet=1e-9)
    motion = moved(graph_of("line -> gas.port", gas=gas, line=Se(H, 1e6)), 1.0, "Radau")
    assert -1e-6 < motion["gas.gas.displacement"][-1] < 0.0  # of 1 l, by the stiffness of its seat
    assert motion.energy_gap() < 1e-6


def test_the_speed_and_flow_of_a_motor() -> None:
    """w Δp = b ω + M_0 at the end, Q = w ω + G Δp."""
    w, leak = 20e-6 / (2.0 * math.pi), 1e-12
    graph = between(built(hydraulic_motor, displacement=w, leakage=leak, viscous=0.05, coulomb=3.0), 1e7)
    graph.ports["item.shaft"] = "item.shaft"
    graph.add("wheel", I("rotational", 0.01))
    graph.bond("item.shaft", "wheel")
    motion = moved(graph, 5.0)
    known = motion.known()
    speed = float(motion.assembly.flow_of("wheel", known))
    assert speed == pytest.approx((w * 1e7 - 3.0) / 0.05, rel=1e-6)
    assert -motion.assembly.flow_of("pump.pump", known) == pytest.approx(-(w * speed + leak * 1e7), rel=1e-9)
    assert motion.energy_gap() < 1e-8


@pytest.mark.parametrize(("area_b", "extension"), [(AREA, 0.5), (0.012, 0.5), (0.012, 0.2)])
def test_the_frequency_of_a_closed_cylinder(area_b: float, extension: float) -> None:
    """ω² = (E A_a² / V_a + E A_b² / V_b) / M"""
    dead = 1e-3
    graph = loaded_cylinder(BondGraph(), force=0.0, area_b=area_b, extension=extension, dead_volume=dead)
    assembly = assemble(graph)
    start = {name: float(value) for name, value in assembly.initial().items()}

    def rates(name: str, step: float) -> np.ndarray:
        dx, _ = assembly.flow(0.0, start | {name: start[name] + step}, {})
        return np.array([*dx.values()], dtype=float)

    slopes = [(rates(name, 1e-9) - rates(name, -1e-9)) / 2e-9 for name in start]
    frequency = np.abs(np.linalg.eigvals(np.array(slopes)).imag).max()
    stiffness = BULK * AREA**2 / (dead + AREA * extension) + BULK * area_b**2 / (dead + area_b * (1.0 - extension))
    assert frequency == pytest.approx(math.sqrt(stiffness / MASS), rel=1e-3)


def speed_of(motion: Simulation) -> float:
    """Of the rod at the end."""
    return float(motion["mass.flow"][-1])


def test_the_speed_of_the_rigid_cylinder_under_load() -> None:
    """Theory §10: each edge takes half of p − F / A."""
    graph = throttled(pushed_cylinder(supplied(), built(ideal_cylinder, area_a=AREA, area_b=AREA)))
    motion = moved(graph, 1.0, "Radau")
    assert speed_of(motion) == pytest.approx(CONDUCTANCE * math.sqrt(0.5 * (SUPPLY - FORCE / AREA)) / AREA, rel=1e-4)
    assert motion.energy_gap() < 1e-6


@pytest.mark.parametrize("area_b", [AREA, 0.012])
def test_the_speed_of_a_cylinder_under_load(area_b: float) -> None:
    """p_a = p − (A_a v / K)², p_b = (A_b v / K)², A_a p_a − A_b p_b = F."""
    speed = speed_of(moved(throttled_cylinder(area_b=area_b, pressure_a=FORCE / AREA), 1.0, "Radau"))
    known = CONDUCTANCE * math.sqrt((AREA * SUPPLY - FORCE) / (AREA**3 + area_b**3))
    assert speed == pytest.approx(known, rel=5e-4)  # p / 2E of compression beside


def test_a_leak_past_the_piston_lets_the_rod_creep() -> None:
    """Closed, against a force: Q = G (p_a − p_b) from side to side, v = Q / A."""
    graph = loaded_cylinder(BondGraph(), leakage=1e-12, viscous=1e6, pressure_a=FORCE / AREA)
    speed = speed_of(moved(graph, 1.0, "Radau"))
    drop = (FORCE + 1e6 * speed) / AREA
    assert speed == pytest.approx(-1e-12 * drop / AREA, rel=1e-3)


@pytest.mark.parametrize(("force", "extension", "end"), [(-FORCE, 0.005, 0.0), (FORCE, 0.995, 1.0)])
def test_a_piston_comes_to_rest_at_its_stop(force: float, extension: float, end: float) -> None:
    """Without fluid pressure: the ports are open to the tank."""
    graph = loaded_cylinder(BondGraph(), force=force, extension=extension, viscous=1e5, dead_volume=1e-3)
    graph.add("tank", Se(H, 0.0))
    graph.junction("return", "0")
    graph.bond("return", "tank")
    for name in "ab":
        graph.include(f"hose_{name}", built(orifice, area=2e-4))
        graph.chain(f"cylinder.{name}", f"hose_{name}.a")
        graph.chain(f"hose_{name}.b", "return")
    motion = moved(graph, 0.6, "Radau", steps=40)
    position = motion["cylinder.stops.displacement"]
    assert position[-1] == pytest.approx(end + force / 1e8, abs=1e-6)
    stops = ("cylinder.stops", "cylinder.damping")
    forces = np.array(
        [sum(float(motion.assembly.effort(s, known)) for s in stops) for known in map(motion.known, range(41))]
    )
    outside = np.sign(position - np.clip(position, 0.0, 1.0))
    assert (forces * outside >= 0.0).all()  # they push, and never pull
    assert (forces[outside == 0.0] == 0.0).all()
    assert motion.energy_gap() < 1e-5


def test_a_closed_cylinder_that_is_pulled_holds_by_the_ambient_pressure_alone() -> None:
    motion = moved(loaded_cylinder(BondGraph(), force=2e4, viscous=1e5), 0.02)
    pressure = float(motion.assembly.effort("cylinder.a", motion.known()))
    assert -AMBIENT < pressure < -0.9 * AMBIENT
    assert motion.energy_gap() < 1e-6


def opened(x: float, **keys: float) -> dict[str, float]:
    """By edge: its flow from 10 bar to tank, with both consumers at 5 bar."""
    graph = supplied()
    graph.include("valve", built(spool_valve, diameter=0.02, max_opening=0.002, command=Law(lambda: x), **keys))
    for name in "ab":
        graph.add(f"load_{name}", Se(H, 5e5))
    for ends in (("pump.port", "valve.p"), ("valve.t", "tank"), ("valve.a", "load_a"), ("valve.b", "load_b")):
        graph.bond(*ends)
    assembly = assemble(graph)
    known = assembly.solve(0.0, assembly.initial(), {})
    return {edge: float(assembly.flow_of(f"valve.{edge}", known)) for edge in ("p_to_a", "b_to_t", "p_to_b", "a_to_t")}


def test_the_spool_opens_two_edges_and_shuts_two() -> None:
    full = MU * math.pi * 0.02 * 0.001 * math.sqrt(2.0 * 5e5 / RHO)
    right, left = opened(0.001), opened(-0.001)
    assert [right[edge] for edge in ("p_to_a", "b_to_t")] == pytest.approx([full] * 2, rel=1e-4)
    assert [left[edge] for edge in ("p_to_b", "a_to_t")] == pytest.approx([full] * 2, rel=1e-4)
    assert max(right["p_to_b"], right["a_to_t"]) < 1e-5 * full
    assert opened(0.005)["p_to_a"] == pytest.approx(2.0 * full, rel=1e-4)  # the bound of the opening


def test_overlap_delays_the_opening_and_the_clearance_leaks() -> None:
    full = MU * math.pi * 0.02 * 0.001 * math.sqrt(2.0 * 5e5 / RHO)
    assert opened(0.001, overlap=0.0004)["p_to_a"] == pytest.approx(0.6 * full, rel=1e-3)
    assert opened(0.0, overlap=-0.0004) == pytest.approx(dict.fromkeys(opened(0.0), 0.4 * full), rel=1e-3)
    gap = 5e-6  # an edge at the end of its overlap is half the clearance high
    assert opened(0.0, clearance=gap)["p_to_a"] == pytest.approx(full * 0.5 * gap / 0.001, rel=1e-3)


@pytest.mark.parametrize("order", [1, 2])
def test_the_spool_follows_its_command_with_a_lag(order: int) -> None:
    lag = {"time_constant": 0.01} if order == 1 else {"natural_frequency": 300.0, "damping_ratio": 0.5}
    opening = moved(valve_cylinder(valve=lag), 0.01, steps=5)["valve.spring.displacement"]
    t = np.linspace(0.0, 0.01, 6)
    if order == 1:
        known = 1.0 - np.exp(-t / 0.01)
    else:
        w, z = 300.0, 0.5
        d = w * math.sqrt(1.0 - z * z)
        known = 1.0 - np.exp(-z * w * t) * (np.cos(d * t) + z * w / d * np.sin(d * t))
    assert opening == pytest.approx(0.002 * known, rel=1e-6, abs=1e-12)


AERATED: dict[str, Any] = {"air_content": 0.01, "pressure_a": FORCE / AREA}
LAG = {"time_constant": 0.02, "overlap": 1e-4}
AERATED |= {"leakage": 1e-12, "viscous": 500.0, "coulomb": 200.0}


BALANCED = {
    "orifices": (throttled_cylinder(pressure_a=FORCE / AREA), "DOP853"),
    "air, leakage and friction": (valve_cylinder(**AERATED), "Radau"),
    "second order spool": (valve_cylinder(-0.002, {"natural_frequency": 200.0}, **AERATED), "DOP853"),
    "first order spool": (valve_cylinder(0.002, LAG, area_b=0.012, dead_volume=1e-3, extension=0.995), "Radau"),
}


@pytest.mark.parametrize("case", BALANCED)
def test_energy_supplied_is_stored_or_dissipated(case: str) -> None:
    graph, method = BALANCED[case]
    assert moved(graph, 0.2, method, rtol=1e-8).energy_gap() < 1e-6


# --- fluids ---

E = 1.75e9
PRESSURES = (-0.9 * AMBIENT, -1e3, 0.0, 1.0, 1e5, 1e6, 2e7)
CONTENTS = (0.0, 1e-4, 0.01, 0.2)


@pytest.mark.parametrize("air", CONTENTS)
@pytest.mark.parametrize("p", PRESSURES)
def test_pressure_and_volume_are_inverse(p: float, air: float) -> None:
    fluid = Fluid(E, air)
    assert fluid.pressure(fluid.relative_volume(p)) == pytest.approx(p, abs=1e-5 if p < 0.0 else 1e-6, rel=1e-12)


@pytest.mark.parametrize("air", CONTENTS)
@pytest.mark.parametrize("p", [p for p in PRESSURES if p > 1.0])
def test_energy_and_mean_volume_are_integrals(p: float, air: float) -> None:
    fluid = Fluid(E, air)
    work = quad(lambda r: -fluid.pressure(r), 1.0, fluid.relative_volume(p), epsrel=1e-11)[0]
    assert fluid.specific_energy(fluid.relative_volume(p)) == pytest.approx(work, rel=1e-7)
    mean = quad(fluid.relative_volume, 0.0, p, epsrel=1e-12)[0] / p
    assert fluid.mean_volume(p) == pytest.approx(mean, rel=1e-9)


def test_the_mean_volume_is_smooth_at_ambient_pressure() -> None:
    fluid = Fluid(E, 0.2)
    assert fluid.mean_volume(0.0) == 1.0
    sides = [float(fluid.mean_volume(sign * 1e-3 * AMBIENT * (1.0 + d))) for sign in (-1.0, 1.0) for d in (-1e-9, 1e-9)]
    assert sides[0] == pytest.approx(sides[1], abs=1e-12)
    assert sides[2] == pytest.approx(sides[3], abs=1e-12)


@pytest.mark.parametrize("air", CONTENTS)
def test_the_effective_bulk_modulus_falls_with_air(air: float) -> None:
    """1 / K = −r' / r."""
    fluid, p = Fluid(E, air), 1e5
    d = 10.0
    slope = (fluid.relative_volume(p + d) - fluid.relative_volume(p - d)) / (2.0 * d)
    known = (1.0 - air) / E + air * AMBIENT / (AMBIENT + p) ** 2
    assert -slope == pytest.approx(known, rel=1e-4)


def test_a_fluid_that_is_pulled_opens_a_cavity() -> None:
    fluid = Fluid(E, 0.0)
    assert fluid.pressure(1.01) == pytest.approx(-AMBIENT, abs=0.1)
    assert fluid.pressure(1.01) > -AMBIENT


def pumped(air: float, flow: float = 1e-4, volume: float = 1e-2) -> BondGraph:
    item = built(chamber, volume=volume, air_content=air)
    return graph_of("pump -> chamber.port", chamber=item, pump=Sf(H, flow))


def test_the_pressure_of_a_chamber_rises_by_its_stiffness() -> None:
    motion = moved(pumped(0.0), 1.0)
    pressure = float(motion.assembly.effort("chamber.inlet", motion.known()))
    assert pressure == pytest.approx(E / 1e-2 * 1e-4, rel=pressure / E)  # dp/dt = E Q / V
    assert motion.energy_gap() < 1e-9


@pytest.mark.parametrize("air", [1e-3, 0.05])
def test_the_energy_in_a_chamber_is_the_work_of_its_pump(air: float) -> None:
    assert moved(pumped(air), 5.0, rtol=1e-9).energy_gap() < 1e-8


def test_both_chambers_agree_where_the_wall_rests() -> None:
    known = []
    for component in (chamber, variable_chamber):
        item = built(component, volume=1e-2, pressure=2e5, air_content=0.01)
        chains = ["pump -> chamber.port", "wall -> chamber.wall"][: 1 + (component is variable_chamber)]
        wall = {"wall": Sf(H, 0.0)} if len(chains) > 1 else {}
        motion = moved(graph_of(*chains, chamber=item, pump=Sf(H, 1e-4), **wall), 0.5)
        pressures = [float(motion.assembly.effort("chamber.inlet", motion.known(k))) for k in (0, 1)]
        assert pressures[0] == pytest.approx(2e5, rel=1e-9)
        known.append(pressures[1])
    assert known[0] == pytest.approx(known[1], rel=1e-9)


def test_a_column_of_fluid_presses_on_the_wall_with_its_dynamic_pressure() -> None:
    """A column that speeds up between two pressures, while its wall moves in."""
    item = built(fluid_column, volume=0.01, area=0.02, density=900.0)
    parts = {"column": item, "supply": Se(H, 1e4), "wall": Sf(H, 1e-3), "air": C(H, 1e5)}
    motion = moved(graph_of("supply -> column.a", "column.b -> air", "wall -> column.wall", **parts), 0.5)
    known = motion.known()
    flow = float(motion.assembly.flow_of("column.through", known))
    momentum = motion["column.column.momentum_1"][-1]
    assert flow == pytest.approx(momentum / (900.0 * (0.01 - 5e-4) / 0.02**2), rel=1e-9)
    assert motion.assembly.effort("column.wall", known) == pytest.approx(0.5 * 900.0 * (flow / 0.02) ** 2, rel=1e-9)
    assert motion.energy_gap() < 1e-8
