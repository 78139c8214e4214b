"""Dead time of the inverter and the I²t limit of a drive against closed forms."""

import math

import numpy as np
import pytest

from cosim.bondgraph.components import dc_machine, pmsm
from cosim.bondgraph.components._current_control import CurrentControl
from cosim.bondgraph.components._inverter import Inverter
from cosim.bondgraph.components._overload import BAND, Overload
from tests.bondgraph.simulation import Simulation, bench

MACHINE = dc_machine.Params(0.5, 2e-3, inertia=3e-5, torque_constant=0.04)
SERVO = pmsm.Params(4, 0.5, 1.0e-3, 1.8e-3, 0.02, inertia=1e-3)
INVERTER = Inverter(2e-6, 20e3, 48.0, rounding_current=1e-4)
OVERLOAD = Overload(2.0, 0.5)


def test_the_error_of_three_phases_is_six_steps_with_the_published_fundamental() -> None:
    """(4/π) t_d f_s U_dc against the current, and a period of 60° (Jeong and Park 1991)."""
    angles = np.linspace(0.0, 2.0 * math.pi, 24_001)[:-1] + math.pi / 24_000  # beside the steps
    d, q = INVERTER.errors(0.0, 7.0, angles)
    assert np.mean(q) == pytest.approx(-4.0 / math.pi * 2e-6 * 20e3 * 48.0, rel=1e-5)
    assert np.mean(d) == pytest.approx(0.0, abs=1e-4)
    assert q == pytest.approx(np.roll(q, 4000), abs=1e-3)
    assert np.hypot(d, q) == pytest.approx(np.full(angles.shape, 4.0 / 3.0 * INVERTER.lost_voltage), rel=2e-3)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_full_bridge_lacks_two_dead_times_of_voltage(sign: float) -> None:
    """Held: 0 = (R + L ω_c) (i* − i) − 2 ΔU, as the loop of the current does not compensate it."""
    control = CurrentControl(150.0, inverter=INVERTER)
    assembly = bench(dc_machine.controlled(MACHINE, control, 1.0), {"shaft": ("speed", "rad/s")}, request="N*m")
    found = Simulation(assembly, [0.1], lambda _: {"speed": 0.0, "request": sign * 0.08})
    lacking = 2.0 * 2e-6 * 20e3 * 48.0 / (0.5 + 2e-3 * control.rate)
    assert found["part.winding.flow"][-1] == pytest.approx(sign * (2.0 - lacking), rel=1e-6)


def test_a_slow_servo_lacks_the_mean_of_the_error_and_ripples_six_times_per_electrical_turn() -> None:
    control = CurrentControl(400.0, inverter=Inverter(2e-6, 20e3, 48.0))
    assembly = bench(pmsm.controlled(SERVO, control, 1.0), {"shaft": ("speed", "rad/s")}, request="N*m")
    speed = 2.0 * math.pi / 4.0  # one electrical turn per second
    t = np.array([0.0, *np.linspace(1.0 / 6.0, 0.5, 31)])
    found = Simulation(assembly, t, lambda _: {"speed": speed, "request": 0.6}, rtol=1e-7, max_step=1e-2)
    current = pmsm.per_phase(found["part.winding_q.flow"])[1:-1]
    lacking = 4.0 / math.pi * INVERTER.lost_voltage / (0.5 + 1.8e-3 * control.rate)
    assert np.mean(5.0 - current) == pytest.approx(lacking, rel=5e-3)
    spectrum = np.abs(np.fft.rfft(current - current.mean()))
    assert spectrum.argmax() == 2  # in a third of a turn
    assert found.energy_gap() < 1e-6


def heated(t: np.ndarray) -> tuple[np.ndarray, float]:
    """(i_max², the time at which the limit begins to fall) of a drive whose request is always larger."""
    continuous, peak, tau = 4.0, 36.0, 0.5
    begins = -tau * math.log(1.0 - (1.0 - BAND) * continuous / peak)
    rate = (1.0 + (peak - continuous) / (BAND * continuous)) / tau
    share = np.exp(-rate * np.maximum(t - begins, 0.0))
    return continuous + (peak - continuous) * share, begins


@pytest.mark.parametrize("machine", ["dc_machine", "pmsm"])
def test_the_peak_current_lasts_as_long_as_its_heating_allows(machine: str) -> None:
    """A current loop that is fast beside the heating follows the closed form of the limit."""
    control = CurrentControl(2e4, current_limit=6.0, overload=OVERLOAD)
    graph = (
        dc_machine.controlled(MACHINE, control, 1.0)
        if machine == "dc_machine"
        else pmsm.controlled(SERVO, control, 1.0)
    )
    assembly = bench(graph, {"shaft": ("speed", "rad/s")}, request="N*m")
    t = np.array([0.02, 0.05, 0.06, 0.065, 0.2, 3.0])
    found = Simulation(assembly, t, lambda _: {"speed": 0.0, "request": 50.0}, rtol=1e-7)
    current = found["part.winding.flow"] if machine == "dc_machine" else pmsm.per_phase(found["part.winding_q.flow"])
    expected, begins = heated(t)
    assert 0.05 < begins < 0.06
    assert current == pytest.approx(np.sqrt(expected), rel=2e-3)
    assert current[0] == pytest.approx(6.0, rel=1e-6) and current[-1] == pytest.approx(2.0, rel=1e-6)
