"""Storages with several ports by their energy, and resistances whose law has an inverse."""

from collections.abc import Callable

import numpy as np
import pytest

from cosim import Rig
from cosim.core import ops
from cosim.core.compile import ArrayPort, compile
from cosim.mechanics.bondgraph import IC, BondGraph, Element, I, Law, R, Se, assemble
from tests.bondgraph.graphs import E, T, given, graph_of, refused_in_file
from tests.bondgraph.simulation import Simulation
from tests.kit.messages import Said

AREA, GAP = 1e-8, 1e-3  # ε A [F m], distance of the plates [m]


def microphone(resistance: float = 1e7) -> BondGraph:
    """A capacitor whose plate moves: U = q² (gap + x) / (2 ε A) (Karnopp, Margolis, Rosenberg, System Dynamics, §8)."""
    stores = (E, "displacement"), (T, "displacement")
    return graph_of(
        *("supply -> mesh -> capacitor", "sound -> plate -> capacitor"),
        *("mesh -> resistor", "plate -> mass", "plate -> damping"),
        inputs={"voltage": "V", "force": "N"},
        **{"mesh": "1", "plate": "1", "supply": Se(E, given("voltage")), "resistor": R(E, resistance)},
        **{"sound": Se(T, given("force")), "mass": I(T, 0.01), "damping": R(T, 0.5)},
        capacitor=IC(stores, lambda q, x: 0.5 * q * q * (GAP + x) / AREA, (0.0, 0.0)),
    )


def solenoid() -> BondGraph:
    """A coil whose inductance L(x) = L0 / (1 + x / a) falls as its core moves out: a field of an I and a C port."""
    stores = (E, "momentum"), (T, "displacement")
    return graph_of(
        *("supply -> mesh -> coil", "core -> coil", "mesh -> resistor", "core -> mass", "core -> damping"),
        inputs={"voltage": "V"},
        **{"mesh": "1", "core": "1", "supply": Se(E, given("voltage")), "resistor": R(E, 2.0)},
        **{"mass": I(T, 0.1), "damping": R(T, 3.0)},
        coil=IC(stores, lambda flux, x: 0.5 * flux * flux * (1.0 + x / 0.01) / 0.2, (0.1, 0.002)),
    )


CURRENT = 0.3 * (1.0 + 0.4) / 0.2
BY_HAND: dict[str, tuple[BondGraph, dict[str, float], dict[str, tuple[float, float]], float]] = {
    # graph, inputs, by state its value and its rate, duration of a motion
    "microphone": (
        microphone(),
        {"voltage": 100.0, "force": 0.2},
        {
            "mass.flow": (0.3, (0.2 - 0.5 * 0.3 - 0.5 * 2e-6**2 / AREA) / 0.01),
            "capacitor.displacement_1": (2e-6, (100.0 - 2e-6 * (GAP + 1e-4) / AREA) / 1e7),
            "capacitor.displacement_2": (1e-4, 0.3),
        },
        0.02,
    ),
    "solenoid": (
        solenoid(),
        {"voltage": 5.0},
        {
            "mass.flow": (-0.2, (-3.0 * -0.2 - 0.5 * 0.3**2 / 0.01 / 0.2) / 0.1),
            "coil.momentum_1": (0.3, 5.0 - 2.0 * CURRENT),
            "coil.displacement_2": (0.004, -0.2),
        },
        0.05,
    ),
}


@pytest.mark.parametrize("case", BY_HAND)
def test_a_field_has_the_rates_derived_by_hand_and_closes_the_balance_of_energy(case: str) -> None:
    graph, u, states, duration = BY_HAND[case]
    assembly = assemble(graph)
    dx, _ = assembly.flow(0.0, {name: value for name, (value, _) in states.items()}, u)
    assert dx == pytest.approx({name: rate for name, (_, rate) in states.items()}, rel=1e-12)
    motion = Simulation(assembly, [0.0, duration], lambda t: u, method="DOP853", atol=1e-14)
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


def quadratic(**parts: Element) -> BondGraph:
    """e = 4 f² of f > 0, on a source of effort and in series with what is given."""
    inverse = Law(lambda flow: 4.0 * flow * flow, ("flow",))
    law = Law(lambda effort: 0.5 * ops.sqrt(effort), ("effort",))
    chains = ["pump -> line -> throttle", *(f"line -> {name}" for name in parts)]
    return graph_of(*chains, throttle=R("hydraulic", law, inverse), line="1", pump=Se("hydraulic", 100.0), **parts)


def test_a_law_with_its_inverse_computes_either_side() -> None:
    free = assemble(quadratic())
    assert free.flow_of("throttle", free.solve(0.0, {}, {})) == 5.0
    driven = assemble(quadratic(fluid=I("hydraulic", 2.0, initial=3.0)))
    dx, known = driven.flow(0.0, driven.initial(), {})
    assert driven.effort("throttle", known) == 36.0
    assert dx["fluid.flow"] == (100.0 - 36.0) / 2.0


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
      signals: {{flux: coil.flux}}
schedule: {{step: 1 ms, duration: 50 ms, integrator: rodas4, tolerance: 1e-10, substeps: auto}}
"""
RIGHT = {
    "flux": "{domain: electrical, stores: momentum, initial: 0.1 V*s}",
    "x": "{domain: translational, initial: 2 mm}",
    "energy": "0.5 * flux^2 * (1 + x / length) / 0.2",
    "bonds": "mesh -> coil.flux, core -> coil.x",
}


@pytest.mark.parametrize("bonds", [RIGHT["bonds"], "core -> coil.x, mesh -> coil.flux"])
def test_a_field_of_a_file_is_that_of_python(bonds: str, rig_of: Callable[..., Rig]) -> None:
    """Whatever the order of its bonds."""
    run = rig_of(RIG.format(**{**RIGHT, "bonds": bonds})).run()
    motion = Simulation(assemble(solenoid()), [0.0, 0.05], lambda t: {"voltage": 5.0}, method="DOP853")
    assert run["slide/position"][-1] == pytest.approx(motion["coil.displacement_2"][-1] - 0.002, rel=1e-6)
    assert run["slide/flux"][-1] == pytest.approx(motion["coil.momentum_1"][-1], rel=1e-6)  # a state by its port
    energy = run.summary["energy"]
    assert energy is not None and abs(energy["residual_relative"]) < 1e-8


WRONG: dict[str, dict[str, str]] = {
    "an unknown name in the energy": {"energy": "0.5 * flux^2 * (1 + y / length)"},
    "a port that the energy leaves out": {"energy": "flux^2"},
    "an energy that is not finite": {"energy": "flux^2 / (x - 0.002)"},
    "what it stores": {"flux": "{domain: electrical, stores: charge}"},
    "an unknown domain": {"flux": "{domain: magnetic}"},
    "an initial state of another unit": {"x": "{domain: translational, initial: 2 rad}"},
    "a bond without a port": {"bonds": "mesh -> coil, core -> coil.x"},
    "a port that is misspelt": {"bonds": "mesh -> coil.flx, core -> coil.x"},
    "a port without a bond": {"bonds": "mesh -> coil.flux, mesh -> core"},
    "a port with two bonds": {"bonds": "mesh -> coil.flux, core -> coil.x, core -> coil.x"},
    "a bond of another domain": {"bonds": "core -> coil.flux, mesh -> coil.x"},
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_field_in_a_file_is_one_line(case: str, rig_of: Callable[..., Rig], said: Said) -> None:
    refused_in_file(rig_of, RIG.format(**{**RIGHT, **WRONG[case]}), said)
