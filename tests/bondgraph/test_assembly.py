"""Assembled bond graphs against equations derived by hand: integral, derivative and mixed causality, loops."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from cosim.core import ops
from cosim.core.compile import ArrayPort, compile
from cosim.mechanics.bondgraph import GY, TF, Assembly, BondGraph, C, I, Law, R, Se, Sf, assemble
from cosim.mechanics.bondgraph.equations import Variable
from cosim.mechanics.bondgraph.expressions import FUNCTIONS, Names, law
from cosim.mechanics.multibody import Model
from cosim.mechanics.multibody.mechanism import Inertial, Joint, Link, Mechanism, Pose
from tests.bondgraph import graphs
from tests.bondgraph.graphs import E, M, T, given, graph_of
from tests.bondgraph.simulation import Simulation
from tests.kit.messages import Said
from tests.kit.refusals import raised

Signals = Mapping[str, float]
Derive = Callable[[Signals, Signals, float], Signals]


def motor_by_hand(x: Signals, u: Signals, t: float) -> Signals:
    i, w = x["winding.flow"], x["inertia.flow"]
    return {"winding.flow": (u["voltage"] - 0.5 * i - 0.1 * w) / 1e-3, "inertia.flow": (0.1 * i - 1e-4 * w) / 1e-3}


def geared_by_hand(x: Signals, u: Signals, t: float) -> Signals:
    rates = motor_by_hand(x, u, t)
    return {**rates, "inertia.flow": rates["inertia.flow"] * 1e-3 / (1e-3 + 0.1**2 * 2.0)}


def parallel_capacitors() -> BondGraph:
    """Two capacitors on one node behind a resistor: one is in derivative causality."""
    return graph_of(
        *("supply -> mesh -> node -> first", "mesh -> resistor", "node -> second"),
        inputs={"voltage": "V"},
        mesh="1",
        node="0",
        supply=Se(E, given("voltage")),
        resistor=R(E, 10.0),
        first=C(E, 1.0 / 2e-3),
        second=C(E, 1.0 / 3e-3),
    )


def capacitors_by_hand(x: Signals, u: Signals, t: float) -> Signals:
    current = (u["voltage"] - x["first.displacement"] / 2e-3) / 10.0
    return {"first.displacement": current * 2.0 / 5.0}


def divider() -> BondGraph:
    """Resistors in series and parallel before an inductor: an algebraic loop."""
    return graph_of(
        *("supply -> mesh -> node -> branch -> coil", "mesh -> series", "node -> shunt", "branch -> far"),
        inputs={"voltage": "V"},
        **{"mesh": "1", "node": "0", "branch": "1", "supply": Se(E, given("voltage")), "series": R(E, 2.0)},
        **{"shunt": R(E, 3.0), "far": R(E, 5.0), "coil": I(E, 0.1)},
    )


def divider_by_hand(x: Signals, u: Signals, t: float) -> Signals:
    i = x["coil.flow"]
    node = (u["voltage"] / 2.0 - i) / (1.0 / 2.0 + 1.0 / 3.0)
    return {"coil.flow": (node - 5.0 * i) / 0.1}


def gyrated_inertia() -> BondGraph:
    """An inertia behind a gyrator acts as a capacitor: here beside one, in derivative causality."""
    return graph_of(
        *("supply -> node -> capacitor", "node -> motor -> rotor -> inertia", "rotor -> load"),
        inputs={"current": "A"},
        **{"node": "0", "rotor": "1", "supply": Sf(E, given("current")), "capacitor": C(E, 1.0 / 0.02)},
        **{"motor": GY(E, M, 0.3), "inertia": I(M, 0.005), "load": R(M, 0.01)},
    )


def gyrated_by_hand(x: Signals, u: Signals, t: float) -> Signals:
    voltage = x["capacitor.displacement"] / 0.02
    speed = voltage / 0.3  # the gyrator imposes the flow
    # i_C + i_M = i, i_M = (J ẇ + b w)/k, ẇ = U̇/k, U̇ = i_C/C
    current = (u["current"] - 0.01 * speed / 0.3) / (1.0 + 0.005 / (0.3**2 * 0.02))
    return {"capacitor.displacement": current}


def swinging_ratio() -> BondGraph:
    """A mass behind a lever whose ratio changes with time, on a mass: derivative causality with a ratio's rate."""
    lever = TF(T, T, Law(lambda t: 1.0 + 0.5 * ops.sin(3.0 * t), ("t",)))
    parts = {"near": "1", "far": "1", "push": Se(T, given("force")), "mass": I(T, 2.0), "tip": I(T, 0.7)}
    return graph_of("push -> near -> mass", "near -> lever -> far -> tip", inputs={"force": "N"}, lever=lever, **parts)


def lever_by_hand(x: Signals, u: Signals, t: float) -> Signals:
    ratio, rate, v = 1.0 + 0.5 * math.sin(3.0 * t), 1.5 * math.cos(3.0 * t), x["mass.flow"]
    # F = 2 v̇ + m · 0.7 d(m v)/dt
    return {"mass.flow": (u["force"] - ratio * 0.7 * rate * v) / (2.0 + 0.7 * ratio**2)}


def two_motors() -> BondGraph:
    """Two motors on one rigid load, through gears of unlike ratios: one state for three inertias."""
    torques = {"torque_1": "N*m", "torque_2": "N*m"}
    graph = graph_of("load -> table", "load -> bearing", inputs=torques, load="1", table=I(M, 5.0), bearing=R(M, 0.4))
    for k, ratio in ((1, 0.1), (2, -0.05)):
        graph.junction(f"rotor_{k}", "1")
        graph.add(f"drive_{k}", Se(M, given(f"torque_{k}")))
        graph.add(f"inertia_{k}", I(M, 0.01 * k))
        graph.add(f"gear_{k}", TF(M, M, ratio))
        graph.chain(f"drive_{k}", f"rotor_{k}", f"inertia_{k}")
        graph.chain(f"rotor_{k}", f"gear_{k}", "load")
    return graph


def two_motors_by_hand(x: Signals, u: Signals, t: float) -> Signals:
    w = x["table.flow"]
    torque = u["torque_1"] / 0.1 - u["torque_2"] / 0.05 - 0.4 * w
    return {"table.flow": torque / (5.0 + 0.01 / 0.1**2 + 0.02 / 0.05**2)}


def nonlinear() -> BondGraph:
    """A mass of relativistic momentum on a hardening spring with quadratic damping that depends on the spring."""
    damping = Law(lambda v, spring: v * ops.abs(v) * (1.0 + 0.1 * ops.abs(spring)), ("flow", "spring.effort"))
    return graph_of(
        *("push -> velocity -> mass", "velocity -> spring", "velocity -> damper"),
        inputs={"force": "N"},
        velocity="1",
        push=Se(T, given("force")),
        mass=I(T, Law(lambda p: p / ops.sqrt(1.0 + p * p), ("momentum",)), 0.2),
        spring=C(T, Law(lambda q: 4.0 * q + 9.0 * q * q * q, ("displacement",)), 0.1),
        damper=R(T, damping),
    )


def nonlinear_by_hand(x: Signals, u: Signals, t: float) -> Signals:
    p, q = x["mass.momentum"], x["spring.displacement"]
    v, spring = p / math.sqrt(1.0 + p * p), 4.0 * q + 9.0 * q**3
    force = u["force"] - spring - v * abs(v) * (1.0 + 0.1 * abs(spring))
    return {"mass.momentum": force, "spring.displacement": v, "mass.stored": force * v, "spring.stored": spring * v}


BY_HAND: dict[str, tuple[Callable[[], BondGraph], Derive]] = {
    "motor": (graphs.motor, motor_by_hand),
    "geared motor": (graphs.geared_motor, geared_by_hand),
    "parallel capacitors": (parallel_capacitors, capacitors_by_hand),
    "divider": (divider, divider_by_hand),
    "gyrated inertia": (gyrated_inertia, gyrated_by_hand),
    "swinging ratio": (swinging_ratio, lever_by_hand),
    "two motors": (two_motors, two_motors_by_hand),
    "nonlinear": (nonlinear, nonlinear_by_hand),
}


def draws(assembly: Assembly, count: int = 20) -> Any:
    """Random (t, x, u)."""
    rng = np.random.default_rng(3)
    for _ in range(count):
        x = {state.name: rng.normal() for state in assembly.states}
        yield rng.uniform(0.0, 5.0), x, {name: rng.normal() for name in assembly.inputs}


@pytest.mark.parametrize("name", BY_HAND)
def test_rates_are_those_derived_by_hand(name: str) -> None:
    build, by_hand = BY_HAND[name]
    assembly = assemble(build())
    for t, x, u in draws(assembly):
        rates, _ = assembly.flow(t, x, u)
        expected = by_hand(x, u, t)
        assert {state for state in rates if not state.endswith(".stored")} <= set(expected) <= set(rates)
        for state, value in expected.items():
            assert rates[state] == pytest.approx(value, rel=1e-12, abs=1e-12), state


def test_a_planar_manipulator_is_the_multibody_model_to_rounding() -> None:
    """The planar manipulator: its masses are in derivative causality behind ratios that depend on the angles."""
    assembly = assemble(graphs.manipulator())
    assert assembly.causality.coordinates == ["joint_1", "joint_2"]
    (l1, l2), (m1, m2) = graphs.LENGTHS, graphs.MASSES
    arm, rng = _arm(), np.random.default_rng(0)
    for _ in range(20):
        q, v, tau = rng.normal(size=(3, 2))
        x = {f"joint_{k + 1}.{what}": value[k] for what, value in (("flow", v), ("displacement", q)) for k in (0, 1)}
        rates, _ = assembly.flow(0.0, x, {"torque_1": tau[0], "torque_2": tau[1]})
        coupling = m2 * l1 * l2
        far = m2 * l2**2 + coupling * np.cos(q[1])
        mass = np.array(
            [[m1 * graphs.FIRST_MASS**2 + m2 * l1**2 + coupling * np.cos(q[1]) + far, far], [far, m2 * l2**2]]
        )
        bias = coupling * np.sin(q[1]) * np.array([-(2 * v[0] + v[1]) * v[1], v[0] ** 2])
        expected = np.linalg.solve(mass, tau - bias)
        assert [rates["joint_1.flow"], rates["joint_2.flow"]] == pytest.approx(expected, rel=1e-12)
        assert arm.forward_dynamics(q, v, tau) == pytest.approx(expected, rel=1e-11)


def _arm() -> Model:
    """The same masses as a mechanism, without gravity."""
    places = zip(graphs.MASSES, (graphs.FIRST_MASS, graphs.LENGTHS[1]), strict=True)
    inertials = [Inertial(mass, np.array([x, 0.0, 0.0]), np.zeros((3, 3))) for mass, x in places]
    links = [Link(f"link_{k}", inertial) for k, inertial in enumerate(inertials, 1)]
    joints = [
        Joint(f"joint_{k}", "revolute", parent, f"link_{k}", Pose(np.eye(3), np.array([x, 0.0, 0.0])), np.eye(3)[2])
        for k, (parent, x) in enumerate((("ground", 0.0), ("link_1", graphs.LENGTHS[0])), 1)
    ]
    return Model(Mechanism("arm", "ground", (Link("ground"), *links), tuple(joints)), gravity=(0.0, 0.0, 0.0))


@pytest.mark.parametrize(
    "build", [*(build for build, _ in BY_HAND.values()), graphs.manipulator], ids=lambda b: b.__name__
)
def test_power_is_conserved_at_every_junction_and_transducer(build: Callable[[], BondGraph]) -> None:
    """Σ e f = 0 over the junction structure, and supplied = stored + dissipated power."""
    assembly = assemble(build())
    graph = assembly.graph
    for t, x, u in draws(assembly):
        known = assembly.solve(t, x, u)
        power = np.array([known[Variable("e", b)] * known[Variable("f", b)] for b in range(len(graph.bonds))])
        balance = graph.incidence @ power
        for row, element in zip(balance, graph.elements.values(), strict=True):
            if element.row.ports != 1:
                assert row == pytest.approx(0.0, abs=1e-12 * np.abs(power).max())
        one_ports = [graph.incidence[k] @ power for k, e in enumerate(graph.elements.values()) if e.row.ports == 1]
        assert sum(one_ports) == pytest.approx(0.0, abs=1e-12 * np.abs(power).max())


@pytest.mark.parametrize("build", [graphs.motor, nonlinear, swinging_ratio], ids=lambda b: b.__name__)
def test_energy_supplied_is_stored_or_dissipated(build: Callable[[], BondGraph]) -> None:
    assembly = assemble(build())

    def inputs(t: float) -> dict[str, float]:
        return dict.fromkeys(assembly.inputs, math.sin(5.0 * t) + 0.3)

    found = Simulation(assembly, [0.0, 2.0], inputs, method="DOP853", atol=1e-12)
    assert found.energy_gap() < 1e-8
    assert found.dissipated[-1] >= 0.0 and abs(found.supplied[-1]) > 1e-3


def test_machine_code_gives_the_same() -> None:
    assembly = assemble(graphs.manipulator())
    names = [state.name for state in assembly.states]

    def flow(x: Any, u: Any) -> Any:
        state = {name: x[k] for k, name in enumerate(names)}
        rates, _ = assembly.flow(0.0, state, {"torque_1": u[0], "torque_2": u[1]})
        return ops.array([rates[name] for name in names])

    ports = [ArrayPort("x", (len(names),)), ArrayPort("u", (2,))]
    compiled = compile(flow, ports, "flow", interpret=False)
    rng = np.random.default_rng(5)
    for _ in range(10):
        x, u = rng.normal(size=len(names)), rng.normal(size=2)
        assert compiled(x, u) == pytest.approx(np.array(flow(x, u), dtype=float), rel=1e-11)


def test_a_long_ladder_is_assembled_and_has_the_frequencies_of_its_matrices() -> None:
    """1 000 elements; a smaller one against M q̈ + K q = 0."""
    assert len(assemble(graphs.ladder(250)).states) == 500
    assembly = assemble(graphs.ladder(6))
    names = [state.name for state in assembly.states]
    zero = dict.fromkeys(names, 0.0)
    matrix = np.zeros((len(names), len(names)))
    for k, name in enumerate(names):
        rates, _ = assembly.flow(0.0, zero | {name: 1.0}, {"torque": 0.0})
        matrix[:, k] = [rates[state] for state in names]
    inertias, stiffness = np.arange(1.0, 7.0), np.arange(100.0, 106.0)
    # springs between neighbours, each in parallel with what follows: efforts act on the inertias before them
    speeds = [k for k, name in enumerate(names) if name.endswith(".flow")]
    twists = [k for k, name in enumerate(names) if name.endswith(".displacement")]
    for k in range(6):
        assert matrix[speeds[k], twists[k]] == pytest.approx(-stiffness[k] / inertias[k])
        assert matrix[twists[k], speeds[k]] == pytest.approx(1.0)
        if k < 5:
            assert matrix[speeds[k + 1], twists[k]] == pytest.approx(stiffness[k] / inertias[k + 1])
            assert matrix[twists[k], speeds[k + 1]] == pytest.approx(-1.0)


def test_a_state_without_power_takes_no_part_in_the_energy() -> None:
    """A filtered current, τ ẏ = i − y, beside the inductor that it measures."""
    graph = divider()
    graph.junction("filtered", "0")
    graph.add("rate", Sf("signal", Law(lambda i, y: (i - y) / 0.02, ("coil.flow", "state.effort"))))
    graph.add("state", C("signal", 1.0, 0.3))
    graph.chain("rate", "filtered", "state")
    assembly = assemble(graph)
    x = {"coil.flow": 2.0, "state.displacement": 0.5}
    dx, known = assembly.flow(0.0, x, {"voltage": 12.0})
    assert dx["state.displacement"] == pytest.approx(1.5 / 0.02, rel=1e-12)
    assert assembly.initial()["state.displacement"] == 0.3
    assert [state.unit for state in assembly.states] == ["A", "1"]
    assert set(assembly.supplied(known)) == {"supply"} and set(assembly.stored(known)) == {"coil"}


# --- expressions ---

VALUES = {
    "2 * flow + 1": 7.0,
    "-flow^2 / 2": -4.5,
    "flow**3 - flow^1": 24.0,
    "k * spring.effort": 2.5,
    "sin(pi / 2) * flow": 3.0,
    "where(flow > 2, 1, -1)": 1.0,
    "where(flow <= 2, 1, -1)": -1.0,
    "max(0, min(flow, 2))": 2.0,
    "clip(flow, -1, 1) + abs(-2)": 3.0,
    "2^0.5": math.sqrt(2.0),
    "+flow": 3.0,
}
REFUSED = [
    "flow +",
    "",
    "tanhh(flow)",
    "atan2(flow)",
    "__import__('os')",
    "flow.__class__()",
    "[flow]",
    "True",
    "flow " + "+ flow" * 2000,
    "(" * 900 + "flow" + ")" * 900,
]


@pytest.mark.parametrize("text", VALUES)
def test_values(text: str) -> None:
    signals = {"flow": 3.0, "spring.effort": 5.0}
    found = law(text, Names({"k": 0.5}))
    assert set(found.uses) <= set(signals)
    assert found.fn(*(signals[name] for name in found.uses)) == pytest.approx(VALUES[text], rel=1e-15)


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: text[:20])
def test_what_is_no_law_is_refused(text: str, said: Said) -> None:
    said(raised(ValueError, law, text))


def test_every_function_is_of_numbers() -> None:
    for name, (_, count) in FUNCTIONS.items():
        call = f"{name}({', '.join(['0.5', '0.25', '2'][: count % 4])})"
        assert math.isfinite(law(call).fn())
