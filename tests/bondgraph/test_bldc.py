"""The brushless DC machine against its published equations, and closed forms of its commutation."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from cosim.mechanics.bondgraph import Assembly
from cosim.mechanics.bondgraph.components import bldc
from cosim.mechanics.bondgraph.components._current_control import CurrentControl, Inverter
from tests.bondgraph.simulation import Simulation, bench

P, R, L, K, J = 4, 0.2, 2e-4, 0.03, 2e-5
MOTOR = bldc.Params(P, R, L, K, inertia=J, viscous=1e-4)
TURNED = bldc.Params(P, R, L, K)  # by what it is bonded to
RAIL = 12.0
SPEED = {"shaft": ("speed", "rad/s")}
SECTORS = np.radians([60.0, 120.0, 180.0, 240.0, 300.0, 360.0]) / P  # their middles, of the rotor


def trapezoid(angle: float) -> float:
    """With flat parts of 120°, by its corners."""
    corners = np.radians([0.0, 30.0, 150.0, 210.0, 330.0, 360.0])
    return float(np.interp(angle % (2.0 * math.pi), corners, [0.0, 1.0, 1.0, -1.0, -1.0, 0.0]))


def test_it_moves_as_its_published_equations() -> None:
    """Pillay and Krishnan 1989, in the phases a and b, integrated by SciPy: three voltages, and their energy."""

    def voltages(t: float) -> np.ndarray:
        angle = 40.0 * t + 1.5 - 2.0 * math.pi / 3.0 * np.arange(3)
        return 6.0 * np.cos(angle) + 1.0  # what is common to all has no effect

    def published(t: float, x: np.ndarray) -> list[float]:
        i = np.array([x[0], x[1], -x[0] - x[1]])
        shape = np.array([trapezoid(P * x[3] - 2.0 * math.pi / 3.0 * k) for k in range(3)])
        over = voltages(t) - R * i - K * x[2] * shape
        di = (over - over.mean()) / L
        return [di[0], di[1], (K * shape @ i - 1e-4 * x[2]) / J, x[2]]

    t = np.linspace(0.0, 0.1, 21)
    options: dict[str, Any] = {"method": "DOP853", "rtol": 1e-11, "atol": 1e-12, "max_step": 1e-4}
    by_hand = solve_ivp(published, (0.0, 0.1), [0.0] * 4, t_eval=t, **options).y
    assembly = bench(bldc.build(MOTOR), {"alpha": ("u_alpha", "V"), "beta": ("u_beta", "V")})

    def inputs(t: float) -> dict[str, float]:
        return dict(zip(("u_alpha", "u_beta"), bldc.in_axes(list(voltages(t))), strict=True))

    found = Simulation(assembly, t, inputs, **options)
    a, b, _ = bldc.in_phases(found["part.winding_alpha.flow"], found["part.winding_beta.flow"])
    motion = (found[f"part.{name}"] for name in ("inertia.flow", "rotor.displacement"))
    for k, values in enumerate((a, b, *motion)):
        np.testing.assert_allclose(values, by_hand[k], atol=1e-8 * np.ptp(by_hand[k]), err_msg=str(k))
    assert np.ptp(P * by_hand[3]) > 2.0  # beyond several corners of the shape
    assert found.energy_gap() < 1e-9


@pytest.mark.parametrize("flat", [0.0, 2.0 * math.pi / 3.0, 2.5])
def test_its_shape_has_its_flat_parts(flat: float) -> None:
    angles = np.radians(np.arange(-720, 720, 1.0)) + 1e-3
    shape = np.array([bldc.Params(P, R, L, K, flat=flat).shape(angle) for angle in angles])
    assert np.mean(np.abs(shape) > 1.0 - 1e-9) == pytest.approx(flat / math.pi, abs=5e-3)
    assert shape == pytest.approx(-np.roll(shape, 180), abs=1e-9)
    assert np.mean(np.abs(shape)) == pytest.approx(0.5 + flat / math.pi / 2.0, abs=5e-3)  # of its linear parts


def state(angle: float, phases: list[float]) -> dict[str, float]:
    alpha, beta = bldc.in_axes(phases)
    names = ("winding_alpha.flow", "winding_beta.flow", "rotor.displacement")
    return dict(zip((f"part.{name}" for name in names), (alpha, beta, angle), strict=True))


@pytest.mark.parametrize("angle", SECTORS)
def test_rectangular_currents_give_a_constant_torque(angle: float) -> None:
    """2 K I, of the two legs of the sector, over all of it."""
    for beside in np.radians([-29.0, 0.0, 29.0]) / P:
        phases = [5.0 * direction for direction in bldc.directions(MOTOR, angle + beside)]
        assert sorted(phases) == [-5.0, 0.0, 5.0]
        torque = float(np.dot(MOTOR.constants(angle + beside), bldc.in_axes(phases)))
        assert torque == pytest.approx(2.0 * K * 5.0, rel=1e-12)
        assert bldc.current(MOTOR, angle + beside, *bldc.in_axes(phases)) == pytest.approx(5.0, rel=1e-12)


def six_steps() -> Assembly:
    return bench(bldc.with_voltages(TURNED, CurrentControl(voltage_limit=RAIL)), SPEED, voltage="V")


@pytest.mark.parametrize("speed", [20.0, 300.0])
def test_currents_change_at_a_commutation_as_published(speed: float) -> None:
    """Carlson, Lajoie-Mazenc and Fagundes 1992: from a to b at 150°, and c goes on; with R i beside. The torque rises
    where U > 2 E, and dips where it is less."""
    rates, known = six_steps().flow(
        0.0, state((math.radians(150.0) + 1e-9) / P, [5.0, 0.0, -5.0]), {"speed": speed, "voltage": RAIL}
    )
    assert known
    slopes = bldc.in_phases(rates["part.winding_alpha.flow"], rates["part.winding_beta.flow"])
    e = K * speed
    without = [-2.0 * (RAIL + e) / 3.0, 2.0 * (2.0 * RAIL - e) / 3.0, -2.0 * (RAIL - 2.0 * e) / 3.0]
    drops = np.array([5.0, 0.0, -5.0]) * R
    assert slopes == pytest.approx((np.array(without) - drops) / L, rel=1e-6)
    assert (slopes[2] < 0.0) == (speed < 100.0)


def test_the_current_of_an_open_leg_ends() -> None:
    """Held, it falls with its closed form, (−2 U / 3 − R i) / L, and then it is at most the rail over an open leg."""
    end = L / R * math.log(1.0 + R * 5.0 / (2.0 * RAIL / 3.0))
    t = np.array([0.0, 0.5 * end, 0.9 * end, 3.0 * end])
    start = state((math.radians(150.0) + 1e-9) / P, [5.0, 0.0, -5.0])
    found = Simulation(six_steps(), t, lambda _: {"speed": 0.0, "voltage": RAIL}, start=start, rtol=1e-9)
    a, _, _ = bldc.in_phases(found["part.winding_alpha.flow"], found["part.winding_beta.flow"])
    final = -2.0 * RAIL / 3.0 / R
    assert a[:3] == pytest.approx(final + (5.0 - final) * np.exp(-R / L * t[:3]), rel=1e-6)
    assert abs(a[3]) < RAIL / (bldc.OPEN * R) * 1.001


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_its_loop_gives_the_torque_of_its_request(sign: float) -> None:
    """Held in a sector: 2 K I with i = i* (1 − exp(−(ω + R / L) t)); open legs do not matter."""
    control = CurrentControl(500.0, voltage_limit=RAIL)
    graph = bench(bldc.controlled(TURNED, control, 1.0), SPEED, request="N*m")
    t = np.linspace(0.0, 1e-3, 6)
    start = state(SECTORS[2], [0.0, 0.0, 0.0])
    found = Simulation(graph, t, lambda _: {"speed": 0.0, "request": sign * 0.12}, start=start, rtol=1e-9)
    axes = found["part.winding_alpha.flow"], found["part.winding_beta.flow"]
    torque = np.array([np.dot(TURNED.constants(SECTORS[2]), [x, y]) for x, y in zip(*axes, strict=True)])
    rate = control.rate + R / L
    assert torque == pytest.approx(sign * 0.12 * (1.0 - np.exp(-rate * t)), rel=1e-5, abs=1e-9)


def test_two_legs_lack_two_dead_times_of_voltage() -> None:
    """Held: 0 = (R + L ω_c) (i* − i) − ΔU of each leg."""
    inverter = Inverter(2e-6, 20e3, 24.0, rounding_current=1e-4)
    control = CurrentControl(500.0, voltage_limit=RAIL, inverter=inverter)
    graph = bench(bldc.controlled(TURNED, control, 1.0), SPEED, request="N*m")
    start = state(SECTORS[0], [0.0, 0.0, 0.0])
    found = Simulation(graph, [0.05], lambda _: {"speed": 0.0, "request": 0.3}, start=start, rtol=1e-8)
    axes = found["part.winding_alpha.flow"][-1], found["part.winding_beta.flow"][-1]
    lacking = 2e-6 * 20e3 * 24.0 / (R + L * control.rate)
    assert bldc.current(TURNED, SECTORS[0], *axes) == pytest.approx(5.0 - lacking, rel=1e-5)


def test_its_torque_ripples_six_times_per_electrical_turn() -> None:
    """At constant speed, with the current of its loop; energy closes over the commutations."""
    control = CurrentControl(1000.0, voltage_limit=RAIL)
    graph = bench(bldc.controlled(TURNED, control, 1.0), SPEED, request="N*m")
    turn = 2.0 * math.pi / (P * 50.0)
    t = np.array([0.0, *np.linspace(turn, 2.0 * turn, 121)])
    found = Simulation(graph, t, lambda _: {"speed": 50.0, "request": 0.3}, rtol=1e-8, max_step=turn / 50.0)
    x = [found[f"part.{name}"][1:-1] for name in ("winding_alpha.flow", "winding_beta.flow", "rotor.displacement")]
    torque = np.array([np.dot(TURNED.constants(angle), [a, b]) for a, b, angle in zip(*x, strict=True)])
    spectrum = np.abs(np.fft.rfft(torque - torque.mean()))
    assert spectrum.argmax() == 6
    assert torque.mean() == pytest.approx(0.3, rel=0.05) and np.ptp(torque) > 0.01
    assert found.energy_gap() < 1e-6
