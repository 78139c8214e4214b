"""The compressible fluid of chambers: state, energy and effective bulk modulus against quadrature and formulas."""

import pytest
from scipy.integrate import quad

from cosim.bondgraph import BondGraph, C, Se, Sf
from cosim.bondgraph.components import chamber, fluid_column, variable_chamber
from cosim.bondgraph.components._fluid import AMBIENT, Fluid
from tests.bondgraph.graphs import graph_of
from tests.bondgraph.hydraulic_graphs import H, built
from tests.bondgraph.simulation import moved

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
