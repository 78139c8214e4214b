"""The ripple of switched inverters against voltages that are switched edge by edge, and its closed forms."""

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.linalg import expm

from cosim.core.types import Numeric
from cosim.mechanics.bondgraph.components import dc_machine, induction_machine
from cosim.mechanics.bondgraph.components._current_control import CurrentControl, Inverter
from cosim.mechanics.bondgraph.components._open_loop import OpenLoop, VoltsPerHertz
from cosim.mechanics.bondgraph.components._phases import in_axes, in_phases
from cosim.mechanics.bondgraph.components._switching import of_full_bridge, of_leg, of_three_legs
from tests.bondgraph.simulation import Simulation, bench

F, U = 20e3, 48.0
T = 1.0 / F
BRIDGE = Inverter(0.0, F, U, switched=True)
PLACES = np.linspace(0.0, T, 4001)


def pulses(t: np.ndarray, duty: float) -> np.ndarray:
    """A leg to the middle of the supply, by comparison with its triangular wave; at the middles of small intervals."""
    triangle = np.abs(2.0 * (F * t % 1.0) - 1.0)
    return np.where(triangle < duty, U / 2.0, -U / 2.0)


@pytest.mark.parametrize("voltage", [-20.0, -3.0, 0.0, 7.0, 23.0])
def test_the_ripple_of_a_leg_is_the_integral_of_its_pulses(voltage: float) -> None:
    """d (1 − d) U T from peak to peak, with the mean 0, and 0 where a drive samples."""
    duty = 0.5 + voltage / U
    middles = 0.5 * (PLACES[1:] + PLACES[:-1])
    summed = np.concatenate([[0.0], np.cumsum((pulses(middles, duty) - voltage) * np.diff(PLACES))])
    ripple = np.array([of_leg(BRIDGE, t, voltage) for t in PLACES])
    assert ripple == pytest.approx(summed, abs=1e-3 * U * T)
    assert np.ptp(ripple) == pytest.approx(U * duty * (1.0 - duty) * T, rel=1e-3)
    assert ripple.mean() == pytest.approx(0.0, abs=1e-6 * U * T)
    assert [of_leg(BRIDGE, t, voltage) for t in (0.0, T / 2.0, T)] == pytest.approx([0.0] * 3, abs=1e-12)


@pytest.mark.parametrize("voltage", [5.0, 24.0, 40.0])
def test_a_full_bridge_is_on_twice_per_period(voltage: float) -> None:
    """U D (1 − D) T / 2 from peak to peak at D = |u| / U."""
    ripple = np.array([of_full_bridge(BRIDGE, t, voltage) for t in PLACES])
    share = voltage / U
    assert np.ptp(ripple) == pytest.approx(U * share * (1.0 - share) * T / 2.0, rel=1e-3)
    assert ripple[:2001] == pytest.approx(ripple[2000:], abs=1e-9)


R, L, K = 0.5, 0.4e-3, 0.04


def edges(duties: list[float]) -> np.ndarray:
    """The times [s] in one period at which legs of these duties switch, with its start and end."""
    places = [0.5 - 0.5 * d for d in duties] + [0.5 + 0.5 * d for d in duties]
    return T * np.unique([0.0, 1.0, *places])


def switched(voltages: Any, periods: int, matrix: np.ndarray, given: Any) -> np.ndarray:
    """ẋ = A x + B u edge by edge with exact steps, as ẋ = A x + c with a constant c between edges: the states at the
    quarters of the last period. voltages: mean voltages of the legs; given: (voltages of legs) → c."""
    duties = [0.5 + voltage / U for voltage in voltages]
    n, x, found = len(matrix), np.zeros(len(matrix)), []
    stops = np.unique([*edges(duties), *(T * np.array([0.25, 0.5, 0.75, 1.0]))])
    for period in range(periods):
        for begin, end in pairwise(stops):
            middle = np.array([0.5 * (begin + end)])
            c = given([float(pulses(middle, duty)[0]) for duty in duties])
            step = np.zeros((n + 1, n + 1))
            step[:n, :n], step[:n, n] = matrix, c
            x = (expm(step * (end - begin)) @ [*x, 1.0])[:n]
            if period == periods - 1 and np.isclose(end / T * 4.0, round(end / T * 4.0)):
                found.append(x)
    return np.array(found)


@pytest.mark.parametrize("voltage", [6.0, -30.0])
def test_a_machine_on_a_full_bridge_is_exact_between_its_edges(voltage: float) -> None:
    """Currents, and the speed that their ripple turns, by exact steps from edge to edge; and its energy."""
    inertia, periods = 2e-6, 40
    machine = dc_machine.Params(R, L, inertia=inertia, torque_constant=K)
    matrix = np.array([[-R / L, -K / L], [K / inertia, 0.0]])
    expected = switched((voltage / 2.0, -voltage / 2.0), periods, matrix, lambda legs: [(legs[0] - legs[1]) / L, 0.0])
    control = CurrentControl(inverter=BRIDGE)
    assembly = bench(dc_machine.with_voltages(machine, control), {"shaft": ("load", "N*m")}, voltage="V")
    t = np.array([0.0, *(T * (periods - 1 + np.array([0.25, 0.5, 0.75, 1.0])))])
    options: dict[str, Any] = {"method": "DOP853", "rtol": 1e-11, "atol": 1e-13, "max_step": T / 100.0}
    found = Simulation(assembly, t, lambda _: {"load": 0.0, "voltage": voltage}, **options)
    current = [float(assembly.flow_of("part.mesh", found.known(k))) for k in range(1, 5)]
    assert current == pytest.approx(expected[:, 0], rel=5e-8)  # of steps across the edges
    assert found["part.inertia.flow"][1:] == pytest.approx(expected[:, 1], rel=5e-8)
    assert np.ptp(expected[:, 0]) > 0.1
    assert found.energy_gap() < 1e-9


def test_the_mean_is_the_averaged_model() -> None:
    """Without coupling of the ripple to the shaft, at the samples."""
    machine, t = dc_machine.Params(R, L, torque_constant=K), T * np.arange(0.0, 30.0)
    ends = []
    for inverter in (BRIDGE, None):
        graph = dc_machine.with_voltages(machine, CurrentControl(inverter=inverter))
        assembly = bench(graph, {"shaft": ("speed", "rad/s")}, voltage="V")
        options: dict[str, Any] = {"method": "DOP853", "rtol": 1e-10, "max_step": T / 50.0}
        found = Simulation(assembly, t, lambda _: {"speed": 100.0, "voltage": 17.0}, **options)
        ends.append(found["part.winding.flow"])
    # R r has the mean 0, and its integral over half a period is of the second order of R T / L
    assert ends[0] == pytest.approx(ends[1], abs=2e-3 * np.ptp(ends[1]) * R * T / L)


def test_three_legs_are_exact_between_their_edges() -> None:
    """A held induction machine, whose fluxes are linear: currents in the phases by exact steps from edge to edge."""
    motor = induction_machine.Params(1, 0.4, 0.3, 20e-3, 0.3e-3, 0.3e-3)
    size, angle = 7.0, 0.3
    voltage = induction_machine.SCALE * size
    mean = in_phases(voltage * math.cos(angle), voltage * math.sin(angle))
    middle = 0.5 * (max(mean) + min(mean))
    main, leakage, rotor = motor.main, motor.leakage, motor.rotor
    # states of α and β: i_s, ψ_R;  ψ' = R_R (i − ψ / L_M),  L_σ i' = u − R_s i − ψ'
    own = np.array([[-(0.4 + rotor) / leakage, rotor / main / leakage], [rotor, -rotor / main]])
    matrix = np.kron(np.eye(2), own)

    def given(legs: list[float]) -> list[float]:
        alpha, beta = in_axes(legs)
        return [float(alpha) / leakage, 0.0, float(beta) / leakage, 0.0]

    expected = switched([value - middle for value in mean], 10, matrix, given)
    standing = OpenLoop(volts_per_hertz=VoltsPerHertz(100.0, 50.0, size))
    graph = induction_machine.with_field(motor, CurrentControl(inverter=BRIDGE), standing)
    inputs = {"speed": 0.0, "field_angle": angle, "field_speed": 0.0, "on": 1.0}
    units = {"field_angle": "rad", "field_speed": "rad/s", "on": ""}
    assembly = bench(graph, {"shaft": ("speed", "rad/s")}, **units)
    t = np.array([0.0, *(T * (9.0 + np.array([0.25, 0.5, 0.75, 1.0])))])
    options: dict[str, Any] = {"method": "DOP853", "rtol": 1e-11, "atol": 1e-13, "max_step": T / 100.0}
    found = Simulation(assembly, t, lambda _: inputs, **options)
    known = [found.known(k) for k in range(1, 5)]
    for axis, column in (("alpha", 0), ("beta", 2)):
        current = [float(assembly.flow_of(f"part.mesh_{axis}", values)) for values in known]
        assert current == pytest.approx(expected[:, column], rel=1e-7)
    assert found.energy_gap() < 1e-9


def test_three_legs_lie_symmetric_in_the_period() -> None:
    """Space vectors: the largest duty is as far from 1 as the smallest from 0, and the ripple has no common part."""
    mean = [10.0, -2.0, -8.0]
    ripples = np.array([of_three_legs(BRIDGE, t, mean) for t in PLACES])
    legs = [10.0 - 1.0, -3.0, -9.0]
    expected: list[list[Numeric]] = [[of_leg(BRIDGE, t, leg) for leg in legs] for t in PLACES]
    assert ripples == pytest.approx(np.array(expected, dtype=float), abs=1e-12)
    assert math.isclose(max(legs), -min(legs))
