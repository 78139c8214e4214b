"""Storages with several ports by their energy, and resistances whose law has an inverse."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cosim import Rig, load_rig, ops
from cosim.bondgraph import IC, BondGraph, I, Law, R, Se, assemble
from cosim.bondgraph.graph import GraphError
from cosim.compile import ArrayPort, compile
from cosim.errors import InputError
from tests.bondgraph.graphs import given
from tests.bondgraph.simulation import Simulation

AREA, GAP = 1e-8, 1e-3  # ε A [F m], distance of the plates [m]


def microphone(resistance: float = 1e7) -> BondGraph:
    """A capacitor whose plate moves: U = q² (gap + x) / (2 ε A) (Karnopp, Margolis, Rosenberg, System Dynamics, §8)."""
    graph = BondGraph(inputs={"voltage": "V", "force": "N"})
    graph.junction("mesh", "1")
    graph.junction("plate", "1")
    graph.add("supply", Se("electrical", given("voltage")))
    graph.add("resistor", R("electrical", resistance))
    graph.add("sound", Se("translational", given("force")))
    graph.add("mass", I("translational", 0.01))
    graph.add("damping", R("translational", 0.5))
    capacitor = IC(
        (("electrical", "displacement"), ("translational", "displacement")),
        lambda q, x: 0.5 * q * q * (GAP + x) / AREA,
        (0.0, 0.0),
    )
    graph.add("capacitor", capacitor)
    graph.chain("supply", "mesh", "capacitor")
    graph.chain("sound", "plate", "capacitor")
    graph.bond("mesh", "resistor")
    graph.bond("plate", "mass")
    graph.bond("plate", "damping")
    return graph


def solenoid() -> BondGraph:
    """A coil whose inductance L(x) = L0 / (1 + x / a) falls as its core moves out: a field of an I and a C port."""
    graph = BondGraph(inputs={"voltage": "V"})
    graph.junction("mesh", "1")
    graph.junction("core", "1")
    graph.add("supply", Se("electrical", given("voltage")))
    graph.add("resistor", R("electrical", 2.0))
    graph.add("mass", I("translational", 0.1))
    graph.add("damping", R("translational", 3.0))
    coil = IC(
        (("electrical", "momentum"), ("translational", "displacement")),
        lambda flux, x: 0.5 * flux * flux * (1.0 + x / 0.01) / 0.2,
        (0.1, 0.002),
    )
    graph.add("coil", coil)
    graph.chain("supply", "mesh", "coil")
    graph.bond("core", "coil")
    graph.bond("mesh", "resistor")
    graph.bond("core", "mass")
    graph.bond("core", "damping")
    return graph


def test_a_field_has_the_rates_derived_by_hand() -> None:
    assembly = assemble(microphone())
    x = {"mass.flow": 0.3, "capacitor.displacement_1": 2e-6, "capacitor.displacement_2": 1e-4}
    dx, _ = assembly.flow(0.0, x, {"voltage": 100.0, "force": 0.2})
    voltage = 2e-6 * (GAP + 1e-4) / AREA
    assert dx == pytest.approx(
        {
            "mass.flow": (0.2 - 0.5 * 0.3 - 0.5 * 2e-6**2 / AREA) / 0.01,
            "capacitor.displacement_1": (100.0 - voltage) / 1e7,
            "capacitor.displacement_2": 0.3,
        },
        rel=1e-12,
    )


def test_a_field_of_an_inertia_and_a_compliance_has_the_rates_derived_by_hand() -> None:
    assembly = assemble(solenoid())
    x = {"mass.flow": -0.2, "coil.momentum_1": 0.3, "coil.displacement_2": 0.004}
    dx, _ = assembly.flow(0.0, x, {"voltage": 5.0})
    current = 0.3 * (1.0 + 0.4) / 0.2
    assert dx == pytest.approx(
        {
            "mass.flow": (-3.0 * -0.2 - 0.5 * 0.3**2 / 0.01 / 0.2) / 0.1,
            "coil.momentum_1": 5.0 - 2.0 * current,
            "coil.displacement_2": -0.2,
        },
        rel=1e-12,
    )


@pytest.mark.parametrize(
    ("graph", "u", "duration"),
    [(microphone(), {"voltage": 100.0, "force": 0.2}, 0.02), (solenoid(), {"voltage": 5.0}, 0.05)],
    ids=["microphone", "solenoid"],
)
def test_a_field_closes_the_balance_of_energy(graph: BondGraph, u: dict[str, float], duration: float) -> None:
    times = np.linspace(0.0, duration, 2)
    motion = Simulation(assemble(graph), times, lambda t: u, method="DOP853", atol=1e-14)
    assert motion.energy_gap() < 1e-8


def test_a_field_in_machine_code() -> None:
    assembly = assemble(solenoid())
    names = [state.name for state in assembly.states]

    def rates(x: np.ndarray) -> np.ndarray:
        dx, _ = assembly.flow(0.0, {name: x[k] for k, name in enumerate(names)}, {"voltage": 5.0})
        return ops.array([dx[name] for name in names])

    x = np.array([-0.2, 0.3, 0.004])
    fast = compile(rates, [ArrayPort("x", (3,))])
    np.testing.assert_allclose(fast(x), rates(x).astype(float), rtol=1e-14)


def quadratic(supplied: str) -> BondGraph:
    """e = 4 f² of f > 0, on a source of one side and in series or parallel with an inertia or nothing."""
    inverse = Law(lambda flow: 4.0 * flow * flow, ("flow",))
    law = Law(lambda effort: 0.5 * ops.sqrt(effort), ("effort",))
    graph = BondGraph()
    graph.add("throttle", R("hydraulic", law, inverse))
    graph.junction("line", "1")
    graph.add("pump", Se("hydraulic", 100.0))
    graph.chain("pump", "line", "throttle")
    if supplied == "flow":
        graph.add("fluid", I("hydraulic", 2.0, initial=3.0))
        graph.bond("line", "fluid")
    return graph


def test_a_law_with_its_inverse_computes_either_side() -> None:
    free = assemble(quadratic("effort"))
    assert free.flow_of("throttle", free.solve(0.0, {}, {})) == 5.0
    driven = assemble(quadratic("flow"))
    dx, known = driven.flow(0.0, driven.initial(), {})
    assert driven.effort("throttle", known) == 36.0
    assert dx["fluid.flow"] == (100.0 - 36.0) / 2.0


def test_a_field_whose_effort_is_imposed() -> None:
    graph = microphone()
    del graph.elements["resistor"]
    graph.bonds = [bond for bond in graph.bonds if "resistor" not in bond]
    with pytest.raises(GraphError) as raised:
        assemble(graph)
    assert str(raised.value) == (
        "elements.capacitor: its effort is imposed (derivative causality), which its law cannot take; give it a"
        " constant value, or put a resistance between it and what imposes the effort"
    )


def test_a_field_with_a_free_port() -> None:
    graph = microphone()
    graph.bonds = [bond for bond in graph.bonds if bond != ("plate", "capacitor")]
    with pytest.raises(GraphError) as raised:
        assemble(graph)
    assert str(raised.value) == "elements.capacitor: this field has 2 bonds, not 1; bond each port once"


# --- in a file ---

RIG = """
mechanism:
  gravity: [0, 0, 0]
  bodies:
    - {{name: core, joint: slide, type: prismatic, axis: [1, 0, 0], mass: 0.1 kg}}
joints:
  slide:
    actuator:
      type: bond_graph
      graph:
        constants: {{length: 10 mm}}
        junctions: {{mesh: 1, core: 1}}
        elements:
          supply: {{type: Se, domain: electrical, effort: 5 V}}
          resistor: {{type: R, domain: electrical, resistance: 2 ohm}}
          damping: {{type: R, domain: translational, resistance: 3 N*s/m}}
          coil:
            type: IC
            ports:
              flux: {flux}
              x: {x}
            energy: {energy}
        bonds: [supply -> mesh -> resistor, core -> damping, core -> joint, {bonds}]
schedule: {{step: 1 ms, duration: 50 ms, integrator: rodas4, tolerance: 1e-10, substeps: auto}}
"""
RIGHT = {
    "flux": "{domain: electrical, stores: momentum, initial: 0.1 V*s}",
    "x": "{domain: translational, initial: 2 mm}",
    "energy": "0.5 * flux^2 * (1 + x / length) / 0.2",
    "bonds": "mesh -> coil.flux, core -> coil.x",
}


def in_a_file(folder: Path, **changed: str) -> Rig:
    file = folder / "rig.yaml"
    file.write_text(RIG.format(**{**RIGHT, **changed}))
    return load_rig(file)


@pytest.mark.parametrize("bonds", [RIGHT["bonds"], "core -> coil.x, mesh -> coil.flux"])
def test_a_field_of_a_file_is_that_of_python(bonds: str, tmp_path: Path) -> None:
    """Whatever the order of its bonds."""
    run = in_a_file(tmp_path, bonds=bonds).run()
    motion = Simulation(assemble(solenoid()), [0.0, 0.05], lambda t: {"voltage": 5.0}, method="DOP853")
    assert run["slide/position"][-1] == pytest.approx(motion["coil.displacement_2"][-1] - 0.002, rel=1e-6)
    energy = run.summary["energy"]
    assert energy is not None and abs(energy["residual_relative"]) < 1e-8


WRONG: dict[str, tuple[dict[str, str], str]] = {
    "an unknown name in the energy": (
        {"energy": "0.5 * flux^2 * (1 + y / length)"},
        "22 {coil}.energy: uses 'y', which is no port of the field; known: flux, x",
    ),
    "a port that the energy leaves out": (
        {"energy": "flux^2"},
        "22 {coil}.energy: does not depend on 'x'; take this port out, or use it",
    ),
    "an energy that is not finite": (
        {"energy": "flux^2 / (x - 0.002)"},
        "22 {coil}.energy: is not finite at the initial state; give another one, or another energy",
    ),
    "what it stores": (
        {"flux": "{domain: electrical, stores: charge}"},
        "20 {coil}.ports.flux.stores: expected one of displacement, momentum; got 'charge'",
    ),
    "an unknown domain": (
        {"flux": "{domain: magnetic}"},
        "20 {coil}.ports.flux.domain: there is no domain 'magnetic'; known: electrical, translational, rotational,"
        " hydraulic, thermal, signal",
    ),
    "an initial state of another unit": (
        {"x": "{domain: translational, initial: 2 rad}"},
        "21 {coil}.ports.x.initial: unit 'rad' does not fit here; use m, cm, mm, um",
    ),
    "a bond without a port": (
        {"bonds": "mesh -> coil, core -> coil.x"},
        "17 {coil}: a bond names it without a port; name one of coil.flux, coil.x",
    ),
    "a port that is misspelt": (
        {"bonds": "mesh -> coil.flx, core -> coil.x"},
        "17 {coil}.flx: a bond names it, and there is no such element; did you mean 'coil.flux'?",
    ),
    "a port without a bond": (
        {"bonds": "mesh -> coil.flux, mesh -> core"},
        "17 {coil}: its port 'x' has no bond; bond one to coil.x",
    ),
    "a port with two bonds": (
        {"bonds": "mesh -> coil.flux, core -> coil.x, core -> coil.x"},
        "17 {coil}: its port 'x' has two bonds; put a junction between",
    ),
    "a bond of another domain": (
        {"bonds": "core -> coil.flux, mesh -> coil.x"},
        "16 {graph}.elements.damping: the bond of 'coil' (electrical) and 'damping' (translational) joins two domains;"
        " put a TF or GY between them",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_field_in_a_file_is_one_line(case: str, tmp_path: Path) -> None:
    changed, message = WRONG[case]
    with pytest.raises(InputError) as raised:
        in_a_file(tmp_path, **changed)
    graph = "joints.slide.actuator.graph"
    line = str(raised.value).splitlines()[0]
    assert line == f"{tmp_path / 'rig.yaml'}:{message.format(graph=graph, coil=f'{graph}.elements.coil')}"
