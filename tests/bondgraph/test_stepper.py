"""The hybrid step motor against its published equations, and closed forms of its torque and its oscillation."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import root_scalar

from cosim.mechanics.bondgraph import Assembly
from cosim.mechanics.bondgraph.components import pmsm, stepper
from cosim.mechanics.bondgraph.components._current_control import CurrentControl, Inverter
from cosim.mechanics.bondgraph.components._iron import IronLosses
from cosim.mechanics.bondgraph.components._open_loop import OpenLoop, Steps
from cosim.mechanics.bondgraph.components._thermal import Thermal
from tests.bondgraph.simulation import Simulation, bench

N, R, L, K, J = 50, 1.5, 3e-3, 0.3, 1e-4
MOTOR = stepper.Params(N, R, L, K, inertia=J, viscous=2e-3, detent=0.02)
IDEAL = stepper.Params(N, R, L, K, inertia=J)
TURNED = stepper.Params(N, R, L, K)  # by what it is bonded to
CONTROL = CurrentControl(500.0)
CURRENT = 1.2
HOLDING = K * CURRENT
FIELD = OpenLoop(steps=Steps(CURRENT))


def fixed_field(motor: stepper.Params, control: CurrentControl = CONTROL, port: str = "N*m") -> Assembly:
    graph = stepper.with_field(motor, control, FIELD)
    return bench(graph, {"shaft": ("load", port)}, field_angle="rad", field_speed="rad/s", on="")


def field(angle: float, load: float) -> dict[str, float]:
    return {"load": load, "field_angle": angle, "field_speed": 0.0, "on": 1.0}


def test_it_moves_as_its_published_equations() -> None:
    """Zribi and Chiasson 1991, integrated by SciPy: two voltages that turn, and their energy."""

    def voltages(t: float) -> tuple[float, float]:
        return 6.0 * math.cos(40.0 * math.pi * t * t), 6.0 * math.sin(40.0 * math.pi * t * t)

    def published(t: float, x: np.ndarray) -> list[float]:
        a, b, w, angle = x
        s, c = math.sin(N * angle), math.cos(N * angle)
        u_a, u_b = voltages(t)
        torque = K * (b * c - a * s) - 0.02 * math.sin(4 * N * angle) - 2e-3 * w
        return [(u_a - R * a + K * w * s) / L, (u_b - R * b - K * w * c) / L, torque / J, w]

    t = np.linspace(0.0, 0.3, 31)
    options = {"method": "DOP853", "rtol": 1e-11, "atol": 1e-12}
    by_hand = solve_ivp(published, (0.0, 0.3), [0.0] * 4, t_eval=t, **options).y
    sources = {"a": ("u_a", "V"), "b": ("u_b", "V")}
    found = Simulation(
        bench(stepper.build(MOTOR), sources),
        t,
        lambda t: dict(zip(("u_a", "u_b"), voltages(t), strict=True)),
        **options,
    )
    for k, name in enumerate(("winding_a.flow", "winding_b.flow", "inertia.flow", "rotor.displacement")):
        np.testing.assert_allclose(found[f"part.{name}"], by_hand[k], atol=1e-8 * np.ptp(by_hand[k]), err_msg=name)
    assert found["part.rotor.displacement"][-1] > 0.1  # it follows
    assert found.energy_gap() < 1e-9


def test_its_bearings_and_its_iron_brake_it() -> None:
    bearings: dict[str, Any] = {"viscous": 2e-4, "coulomb": 0.03, "load_friction": 0.05, "creep_speed": 0.5}
    motor = stepper.Params(N, R, L, K, inertia=J, **bearings, iron=IronLosses(0.01, 1e-3, 0.2))
    assembly = bench(stepper.build(motor), {"a": ("u_a", "V"), "b": ("u_b", "V")})
    for a, b, w, angle in ((-3.0, 6.0, 20.0, 0.01), (2.0, -5.0, 0.3, -0.02), (0.0, 4.0, -7.0, 0.0)):
        x = {"winding_a.flow": a, "winding_b.flow": b, "inertia.flow": w, "rotor.displacement": angle}
        torque = K * (b * math.cos(N * angle) - a * math.sin(N * angle))
        dry = (0.03 + 0.05 * abs(torque)) * w / math.hypot(w, 0.5) + 0.01 * w / math.hypot(w, 0.2)
        rates, _ = assembly.flow(0.0, {f"part.{name}": value for name, value in x.items()}, {"u_a": 0.0, "u_b": 0.0})
        assert rates["part.inertia.flow"] == pytest.approx((torque - dry - 1.2e-3 * w) / J, rel=1e-12)


@pytest.mark.parametrize("share", [-0.9, 0.3, 0.99])
def test_it_lags_by_its_load_angle(share: float) -> None:
    """asin(M / T_h) / N, and beyond T_h it does not hold."""
    damped = stepper.Params(N, R, L, K, inertia=J, viscous=0.02)

    def loaded(t: float) -> dict[str, float]:
        return field(0.1 / N, -share * HOLDING * min(t / 0.15, 1.0))

    options = {"method": "DOP853", "rtol": 1e-9}
    found = Simulation(fixed_field(damped), [0.4], loaded, **options)
    lag = 0.1 / N - found["part.rotor.displacement"][-1]
    assert lag == pytest.approx(math.asin(share) / N, rel=1e-6)
    lost = Simulation(fixed_field(damped), [0.2], lambda _: field(0.0, -1.02 * HOLDING), **options)
    assert lost["part.rotor.displacement"][-1] < -3.0 * 2.0 * math.pi / N


def test_it_swings_at_its_natural_frequency() -> None:
    """√(N T_h / J) / 2π, of small swings in a field of stiff currents."""
    stiff = CurrentControl(20e3)
    t = np.linspace(0.0, 0.1, 4001)
    graph = fixed_field(IDEAL, stiff)
    found = Simulation(graph, t, lambda _: field(0.02 / N, 0.0), rtol=1e-9, method="LSODA", max_step=1e-4)
    swing = found["part.rotor.displacement"] - 0.02 / N
    at = np.flatnonzero(np.diff(np.sign(swing)))
    crossings = t[at] - swing[at] * (t[1] - t[0]) / (swing[at + 1] - swing[at])
    period = 2.0 * (crossings[-1] - crossings[0]) / (len(crossings) - 1)
    assert 1.0 / period == pytest.approx(math.sqrt(N * HOLDING / J) / (2.0 * math.pi), rel=2e-4)


def torque_at(speed: float, lag: float) -> float:
    """Steady torque [N·m] of a shaft that is turned, behind a field that turns with it."""

    def turning(t: float) -> dict[str, float]:
        return field(speed * t + lag / N, speed)

    graph = fixed_field(TURNED, port="rad/s")
    found = Simulation(graph, [0.03], turning, rtol=1e-10, method="DOP853", max_step=0.2 / (N * speed))
    a, b, angle = (found[f"part.{name}"][-1] for name in ("winding_a.flow", "winding_b.flow", "rotor.displacement"))
    return K * (b * math.cos(N * angle) - a * math.sin(N * angle))


@pytest.mark.parametrize("speed", [5.0, 20.0, 60.0])
def test_its_pull_out_torque_falls_as_published(speed: float) -> None:
    """K U / √(R² + (N ω L)²) − K² ω R / (R² + (N ω L)²) on voltages of amplitude U behind a resistance R (Hughes and
    Lawrenson, Electromagnetic damping in stepping motors, Proc. IEE 122(8), 1975): a chopper is one of U = R I,
    R = R_0 + ω_c L."""
    resistance = R + L * CONTROL.rate
    impedance = math.hypot(resistance, N * speed * L)
    published = K * resistance * CURRENT / impedance - K**2 * speed * resistance / impedance**2
    lags = np.array([0.4, 1.2, 2.0])
    torques = [torque_at(speed, lag) for lag in lags]
    s, c, mean = np.linalg.solve(np.stack([np.sin(lags), np.cos(lags), np.ones(3)], axis=1), torques)
    assert math.hypot(s, c) + mean == pytest.approx(published, rel=1e-6)
    assert published < HOLDING


SUPPLIED = OpenLoop(steps=Steps(6.0))
GENTLE = stepper.Params(N, 2.0, L, 0.1, inertia=J)


def lagging(speed: float, resistance: float) -> tuple[np.ndarray, np.ndarray]:
    """(Steady i_d, i_q, ω, angle of the field before the rotor; matrix of small deviations) of GENTLE without load,
    written by hand in the axes of the rotor, on voltages U = R I behind a resistance."""
    u, w, constant = resistance * 6.0, N * speed, 0.1

    def currents(lag: float) -> np.ndarray:
        matrix = np.array([[resistance, -w * L], [w * L, resistance]])
        return np.linalg.solve(matrix, [u * math.cos(lag), u * math.sin(lag) - speed * constant])

    span = -0.5, math.pi / 2.0 + math.atan2(w * L, resistance)
    lag = root_scalar(lambda lag: currents(lag)[1], bracket=span).root
    i_d, i_q = currents(lag)
    matrix = np.array(
        [
            [-resistance / L, w, N * i_q, -u * math.sin(lag) / L],
            [-w, -resistance / L, -N * i_d - constant / L, u * math.cos(lag) / L],
            [0.0, constant / J, 0.0, 0.0],
            [0.0, 0.0, -N, 0.0],
        ]
    )
    return np.array([i_d, i_q, speed, lag]), matrix


@pytest.mark.parametrize(("speed", "grows"), [(5.0, False), (40.0, True)])
def test_it_swings_up_where_its_small_deviations_grow(speed: float, grows: bool) -> None:
    """The resonance at middle speeds: on voltages a motor without friction is stable at low speed, and unstable above
    (Hughes and Lawrenson 1975), at the rate of its eigenvalues."""
    control = CurrentControl(1.0)
    (i_d, i_q, w, lag), matrix = lagging(speed, 2.0 + L * control.rate)
    growth = np.linalg.eigvals(matrix).real.max()
    assert (growth > 0.0) == grows
    graph = stepper.with_field(GENTLE, control, SUPPLIED)
    assembly = bench(graph, {"shaft": ("load", "N*m")}, field_angle="rad", field_speed="rad/s", on="")
    names = ("winding_a.flow", "winding_b.flow", "inertia.flow", "rotor.displacement")
    start = dict(zip((f"part.{name}" for name in names), (i_d, i_q, w + 1e-3, 0.0), strict=True))
    t = np.linspace(0.0, 0.4, 801)
    options = {"method": "DOP853", "rtol": 1e-10, "max_step": 5e-4, "start": start}
    found = Simulation(assembly, t, lambda t: field(speed * t + lag / N, 0.0), **options)
    swing = found["part.inertia.flow"] - speed
    early, late = (np.abs(swing[part]).max() for part in (slice(100, 300), slice(500, 700)))
    assert math.log(late / early) / 0.2 == pytest.approx(growth, rel=0.05)  # between samples of the peaks


def test_its_loops_along_the_rotor_are_those_of_a_synchronous_machine() -> None:
    """A stepper is a machine of N pole pairs with the flux K / N: both have the same currents and the same torque."""
    control = CurrentControl(400.0, current_limit=3.0, voltage_limit=12.0)
    thermal = Thermal(0.02, 20.0, 4.0, 0.1)  # what the drive does not know is found by both
    warm = stepper.Params(N, R, L, K, thermal=thermal)
    turned = bench(stepper.controlled(warm, control, 1.0), {"shaft": ("speed", "rad/s")}, request="N*m")
    s = pmsm.SCALE
    alike = pmsm.Params(N, R, L, L, K / N / s, thermal=thermal)
    of_axes = CurrentControl(400.0, current_limit=3.0 / s, voltage_limit=12.0 / s)
    axes = bench(pmsm.controlled(alike, of_axes, 1.0), {"shaft": ("speed", "rad/s")}, request="N*m")
    t = np.linspace(0.0, 0.02, 5)

    def inputs(t: float) -> dict[str, float]:
        return {"speed": 2000.0 * t, "request": 0.6}  # beyond the speed where the voltage limits

    options = {"method": "DOP853", "rtol": 1e-10}
    found, expected = (Simulation(graph, t, inputs, **options) for graph in (turned, axes))
    angle = N * found["part.rotor.displacement"]
    a, b = (found[f"part.winding_{phase}.flow"] for phase in "ab")
    np.testing.assert_allclose(np.cos(angle) * a + np.sin(angle) * b, expected["part.winding_d.flow"], atol=1e-6)
    np.testing.assert_allclose(np.cos(angle) * b - np.sin(angle) * a, expected["part.winding_q.flow"], atol=1e-6)
    assert expected["part.winding_d.flow"][-1] < -0.5
    for name in ("missing_d.displacement", "missing_q.displacement"):
        np.testing.assert_allclose(found[f"part.{name}"], expected[f"part.{name}"], atol=1e-6)
        assert np.ptp(expected[f"part.{name}"]) > 0.01
    assert found.energy_gap() < 1e-7


def test_each_bridge_lacks_two_dead_times_of_voltage() -> None:
    """One phase on, held: 0 = (R + L ω_c) (i* − i) − 2 ΔU."""
    inverter = Inverter(2e-6, 20e3, 48.0, rounding_current=1e-5)
    graph = fixed_field(TURNED, CurrentControl(150.0, inverter=inverter), port="rad/s")
    found = Simulation(graph, [0.1], lambda _: field(0.0, 0.0))
    lacking = 2.0 * 2e-6 * 20e3 * 48.0 / (R + L * 2.0 * math.pi * 150.0)
    assert found["part.winding_a.flow"][-1] == pytest.approx(CURRENT - lacking, rel=1e-5)
