"""Thermal networks of machines: closed forms of one and two nodes, SciPy for more, and the time to a limit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

from cosim import Rig
from cosim.core.errors import InputErrors
from cosim.mechanics.bondgraph.components._heated_network import NEVER, HeatedNetwork
from cosim.mechanics.bondgraph.components._thermal_network import Thermal, ThermalCoupling, ThermalNode
from tests.kit.messages import Said
from tests.kit.refusals import raised

ONE = Thermal(nodes=(ThermalNode("winding", 50.0, 80.0),), couplings=(ThermalCoupling(("winding", "ambient"), 2.0),))
TWO = Thermal(30.0, 200.0, 0.8, 1.5, winding_limit=100.0)
FOUR = Thermal(
    nodes=(
        ThermalNode("winding", 30.0, 110.0),
        ThermalNode("iron", 120.0),
        ThermalNode("housing", 400.0, 60.0),
        ThermalNode("flange", 250.0),
    ),
    couplings=(
        ThermalCoupling(("winding", "iron"), 0.4),
        ThermalCoupling(("iron", "housing"), 0.3),
        ThermalCoupling(("housing", "ambient"), 1.2),
        ThermalCoupling(("flange", "housing"), 0.5),
        ThermalCoupling(("ambient", "flange"), 2.0),
    ),
)


CONDUCTING = replace(FOUR, couplings=tuple(
    ThermalCoupling(c.between, conductance=1.0 / c.resistance) for c in FOUR.couplings if c.resistance
))  # fmt: skip


def test_a_conductance_is_an_inverse_resistance() -> None:
    given = (30.0, 20.0, 12.0, 8.0, 90.0, 20.0)
    times = [HeatedNetwork(of, ("winding", "iron")).time_to_limit(*given) for of in (FOUR, CONDUCTING)]
    assert times[0] == pytest.approx(times[1], rel=1e-12)


def rates_of(thermal: Thermal, power: np.ndarray, rises: np.ndarray, air: float = 0.0) -> np.ndarray:
    """Heat flows by hand, coupling by coupling."""
    names = [node.name for node in thermal.network_nodes]
    heat = power.astype(float).copy()
    for coupling in thermal.network_couplings:
        level = [air if name == "ambient" else rises[names.index(name)] for name in coupling.between]
        assert coupling.resistance is not None
        flow = (level[0] - level[1]) / coupling.resistance
        for name, sign in zip(coupling.between, (-1.0, 1.0), strict=True):
            if name != "ambient":
                heat[names.index(name)] += sign * flow
    return heat / [node.capacity for node in thermal.network_nodes]


@pytest.mark.parametrize(("loss", "rise"), [(60.0, 0.0), (45.0, 30.0), (200.0, 79.0)])
def test_the_time_of_one_node_has_its_closed_form(loss: float, rise: float) -> None:
    """t = −τ ln((T_∞ − T_l) / (T_∞ − T)) with τ = R C and T_∞ = R P."""
    expected = -100.0 * np.log((2.0 * loss - 80.0) / (2.0 * loss - rise))
    assert HeatedNetwork(ONE, ("winding",)).time_to_limit(rise, loss) == pytest.approx(expected, rel=1e-9)


def test_a_limit_that_is_exceeded_or_never_reached() -> None:
    network = HeatedNetwork(ONE, ("winding",))
    assert float(network.time_to_limit(80.5, 10.0)) == 0.0
    assert float(network.time_to_limit(20.0, 39.0)) == NEVER


def test_the_time_of_two_nodes_has_its_closed_form() -> None:
    """Eigenvalues of the two-body network by its characteristic polynomial."""
    loss, rises = 70.0, np.array([10.0, 4.0])
    a, b, d = 1.0 / (0.8 * 30.0), 1.0 / (0.8 * 200.0), 1.0 / (1.5 * 200.0)
    roots = np.roots([1.0, a + b + d, a * d])  # λ² + (a + b + d) λ + a d
    final = loss * np.array([2.3, 1.5])
    # T_w − T_∞ = c_1 e^{λ_1 t} + c_2 e^{λ_2 t}, with Ṫ_w(0) = P / C_w − a (T_w − T_h)
    slope = loss / 30.0 - a * (rises[0] - rises[1])
    c = np.linalg.solve([[1.0, 1.0], roots], [rises[0] - final[0], slope])
    expected = brentq(lambda t: final[0] + c @ np.exp(roots * t) - 100.0, 0.0, 1e4)
    assert HeatedNetwork(TWO, ("winding",)).time_to_limit(*rises, loss) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("losses", [(90.0, 20.0), (20.0, 75.0), (300.0, 0.0)])
def test_the_time_of_four_nodes_is_where_scipy_meets_a_limit(losses: tuple[float, float]) -> None:
    start, power = np.array([30.0, 20.0, 12.0, 8.0]), np.array([*losses, 0.0, 0.0])

    def met(_: float, x: Any) -> float:
        return float(max(x[0] - 110.0, x[2] - 60.0))

    met.terminal = True  # type: ignore[attr-defined]
    found = solve_ivp(
        lambda _, x: rates_of(FOUR, power, x), (0.0, 1e5), start, events=met, rtol=1e-10, atol=1e-10, method="LSODA"
    )
    assert found.status == 1
    network = HeatedNetwork(FOUR, ("winding", "iron"))
    assert network.time_to_limit(*start, *losses) == pytest.approx(found.t[-1], rel=1e-6)


@pytest.mark.parametrize("thermal", [ONE, TWO, FOUR], ids=["one", "two", "four"])
@pytest.mark.parametrize("loss", [30.0, 90.0, 400.0])
def test_losses_that_grow_with_the_resistance(thermal: Thermal, loss: float) -> None:
    """At a constant current, by SciPy on the heat flows by hand; networks whose losses run away are among them."""
    n = len(thermal.network_nodes)
    start, iron = np.linspace(25.0, 10.0, n), 15.0
    limits = [(k, node.limit) for k, node in enumerate(thermal.network_nodes) if node.limit is not None]

    def power(x: np.ndarray) -> np.ndarray:
        grown = loss * (1.0 + 0.00393 * x[0]) / (1.0 + 0.00393 * start[0])
        return np.array([grown, *([iron] if n > 1 else []), *[0.0] * (n - 2)])

    def met(_: float, x: Any) -> float:
        return max(float(x[k]) - limit for k, limit in limits)

    met.terminal = True  # type: ignore[attr-defined]
    found = solve_ivp(
        lambda _, x: rates_of(thermal, power(x), x), (0.0, 3e5), start, events=met, rtol=1e-11, atol=1e-11,
        method="LSODA",
    )  # fmt: skip
    expected = found.t[-1] if found.status == 1 else NEVER
    heated = ("winding", thermal.network_nodes[1].name) if n > 1 else ("winding",)
    network = HeatedNetwork(thermal, heated, (True, False)[: len(heated)])
    losses = (loss, iron)[: len(heated)]
    assert float(network.time_to_limit(*start, *losses)) == pytest.approx(expected, rel=1e-7)


# --- in a drive ---


NETWORK: dict[str, Any] = {
    "nodes": [
        {"name": "winding", "capacity": 3, "limit": 60},
        {"name": "iron", "capacity": 8},
        {"name": "housing", "capacity": 20},
    ],
    "couplings": [
        {"between": ["winding", "iron"], "resistance": 0.4},
        {"between": ["iron", "housing"], "resistance": 0.3},
        {"between": ["housing", "ambient"], "resistance": 1.2},
    ],
    "ambient": "10 + 5*t",
    "flux_coefficient": -0.0012,
}
DC = {"type": "dc_machine", "resistance": 0.8, "inductance": 3e-3, "torque_constant": 0.6, "inertia": 4e-3}
PMSM = {
    "type": "pmsm", "pole_pairs": 4, "resistance": 0.5, "inductance_d": 2e-3, "inductance_q": 3e-3, "flux": 0.1,
    "inertia": 4e-3,
}  # fmt: skip
STEPPER = {
    "type": "stepper", "teeth": 10, "resistance": 0.8, "inductance": 3e-3, "torque_constant": 0.9, "inertia": 4e-3,
}  # fmt: skip
IRON = {"hysteresis": 0.05, "eddy": 2e-2}


def rig_of(motor: Any, thermal: Any = NETWORK, **schedule: Any) -> Rig:
    """A joint that turns with 30 rad/s at the start, with little current."""
    body = {"name": "load", "joint": "axis", "axis": [0, 0, 1], "mass": 1, "inertia": [1, 1, 0.2]}
    drive = {"type": "drive", "motor": {**motor, "thermal": thermal, "iron": IRON}, "control": {"bandwidth": 200}}
    step = {"step": "1 ms", "duration": "2 s", "integrator": "rk4", "substeps": 20}
    return Rig.from_dict(
        {
            "mechanism": {"gravity": [0, 0, 0], "bodies": [body]},
            "joints": {"axis": {"actuator": {**drive, "powers": True}, "initial": {"velocity": 30}}},
            "controllers": [
                {
                    "name": "motion",
                    "type": "feedforward_pd",
                    "kp": 30,
                    "kd": 3,
                    "trajectory": {"type": "sine", "amplitude": 1.5, "frequency": 1.0},
                }
            ],
            "schedule": step | schedule,
        }
    )


@pytest.mark.parametrize("motor", [DC, PMSM, STEPPER], ids=["dc_machine", "pmsm", "stepper"])
def test_a_network_in_a_drive_heats_by_its_losses_and_weakens_its_magnets(motor: dict[str, Any]) -> None:
    run = rig_of(motor).run()
    names = ("winding", "iron", "housing")
    rises = np.array([run[f"axis/{name}_temperature"] for name in names])
    assert rises[:, 0] == pytest.approx([10.0] * 3)
    # the heat of all nodes is that of the losses less what went to the ambient air
    capacities = np.array([3.0, 8.0, 20.0])
    given = run["axis/copper_energy"] + run["axis/iron_energy"]
    away = (
        np.concatenate([[0.0], np.cumsum(np.convolve((rises[2] - 10.0 - 5.0 * run.t) / 1.2, [0.5, 0.5], "valid"))])
        * 1e-3
    )
    assert capacities @ (rises - 10.0) + away == pytest.approx(given, rel=1e-6, abs=1e-6)
    assert rises[0].max() > 15.0
    # the torque, with what accelerates the rotor, is that of magnets at the temperature of the iron
    w, warm = run["axis/velocity"], 1.0 - 0.0012 * rises[1]
    drag = 0.05 * w / np.hypot(w, 0.1) + 2e-2 * w
    if motor is DC:
        torque = 0.6 * warm * run["axis/current"]
    elif motor is STEPPER:
        a, b, angle = run["axis/current_a"], run["axis/current_b"], 10 * run["axis/position"]
        torque = 0.9 * warm * (b * np.cos(angle) - a * np.sin(angle))
    else:
        d, q = run["axis/current_d"], run["axis/current_q"]
        torque = 1.5 * 4 * (0.1 * warm - 1e-3 * d) * q
    assert run["axis/measured_effort"] + drag == pytest.approx(torque, abs=1e-9 * np.ptp(torque))
    assert abs(run.summary["energy"]["residual_relative"]) < 1e-6
    # the time to the limit is that of the network with these losses
    losses = run["axis/copper_loss"], run["axis/iron_loss"]
    for k in (0, 700, 1500):
        power = np.array([losses[0][k], losses[1][k], 0.0])
        air = 10.0 + 5.0 * run.t[k]

        def met(_: float, x: Any) -> float:
            return float(x[0] - 60.0)

        met.terminal = True  # type: ignore[attr-defined]
        thermal = Thermal(
            nodes=tuple(ThermalNode(**node) for node in NETWORK["nodes"]),
            couplings=tuple(ThermalCoupling(tuple(c["between"]), c["resistance"]) for c in NETWORK["couplings"]),
        )
        found = solve_ivp(
            lambda _, x, power=power, air=air, thermal=thermal: rates_of(thermal, power, x, air),
            (0.0, 1e4), rises[:, k], events=met, rtol=1e-10, atol=1e-10, method="LSODA",
        )  # fmt: skip
        expected = found.t[-1] if found.status == 1 else NEVER
        expected = 0.0 if rises[0, k] >= 60.0 else expected
        assert run["axis/time_to_limit"][k] == pytest.approx(expected, rel=1e-5), k


@pytest.mark.parametrize("motor", [DC, PMSM, STEPPER], ids=["dc_machine", "pmsm", "stepper"])
def test_a_drive_at_a_constant_torque_meets_its_limit_when_it_said(motor: dict[str, Any]) -> None:
    """An arm that it holds against gravity: from the first times on the same end is told."""
    network = {"winding_capacity": 3, "housing_capacity": 20, "winding_to_housing": 1.5, "housing_to_ambient": 2.0}
    drive = {"type": "drive", "motor": {**motor, "thermal": {**network, "winding_limit": 40}}}
    body = {
        "name": "arm",
        "joint": "axis",
        "axis": [0, 1, 0],
        "mass": 1,
        "com": [0.8, 0, 0],
        "inertia": [0.1, 0.1, 0.1],
    }
    rig = Rig.from_dict(
        {
            "mechanism": {"bodies": [body]},
            "joints": {"axis": {"actuator": {**drive, "control": {"bandwidth": 200}}}},
            "controllers": [
                {"type": "computed_torque", "bandwidth": 8, "trajectory": {"type": "quintic", "goal": 0, "duration": 1}}
            ],
            "schedule": {"step": "2 ms", "duration": "6 s", "integrator": "rodas4", "substeps": 2},
        }
    )
    run = rig.run()
    rise, told = run["axis/winding_temperature"], run["axis/time_to_limit"]
    k = int(np.argmax(rise >= 40.0))
    assert k > 430
    met = run.t[k] - (rise[k] - 40.0) / (rise[k] - rise[k - 1]) * 2e-3
    for at in (200, 400, k - 20):
        assert run.t[at] + told[at] == pytest.approx(met, abs=2e-3)
    assert told[k:].max() == 0.0


MISTAKES: dict[str, dict[str, Any]] = {
    "both forms": {**NETWORK, "winding_capacity": 3},
    "half of two nodes": {"winding_capacity": 3, "housing_capacity": 4},
    "no winding": {**NETWORK, "nodes": [{"name": "coil", "capacity": 3}]},
    "an unknown node": {**NETWORK, "couplings": [{"between": ["winding", "stator"], "resistance": 1}]},
    "a node that stays hot": {**NETWORK, "couplings": NETWORK["couplings"][:2]},
    "an ambient that knows the speed": {**NETWORK, "ambient": "velocity"},
    "magnets that weaken per cent": {**NETWORK, "flux_coefficient": -0.12},
    "a resistance that rises per cent": {**NETWORK, "coefficient": 0.393},
    "an ambient in °C": {**NETWORK, "ambient": "20 degC"},
    "a coupling of both": {
        **NETWORK,
        "couplings": [{"between": ["winding", "ambient"], "resistance": 1, "conductance": 1}],
    },
    "magnets nowhere": {**NETWORK, "magnets": "rotor"},
    "one name twice": {**NETWORK, "nodes": NETWORK["nodes"] + [{"name": "iron", "capacity": 3}]},
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_in_networks(name: str, said: Said) -> None:
    said(raised(InputErrors, rig_of, DC, MISTAKES[name]), name)


def test_a_machine_without_magnets_has_none_that_weaken(said: Said) -> None:
    field = {"excitation": 0.5, "field_resistance": 10, "field_inductance": 0.1}
    machine = {key: value for key, value in DC.items() if key != "torque_constant"} | field
    said(raised(InputErrors, rig_of, machine))
