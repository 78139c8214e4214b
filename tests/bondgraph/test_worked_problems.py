"""The worked problems of rigs/drives against equations by hand and closed forms, as compiled rigs."""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from cosim import Rig
from tests.kit.samples import FOLDER

Sample = Callable[..., Rig]

GRAPH = "joints.drum.actuator.graph.elements"
L, R, K, J_M, SPRING, DAMPER, U, J_L = 2e-3, 0.6, 0.08, 4e-4, 6.0, 0.003, 20.0, 0.4


def test_the_electromechanical_drive_has_the_motion_of_its_equations(sample: Sample) -> None:
    """U = L i̇ + R i + K ω_m; J_m ω̇_m = K i − M_friction − M_gear; J ω̇ = u M_gear − M_load."""
    run = sample("drives/electromechanical").run()

    def rates(t: float, x: np.ndarray, load: float) -> list[float]:
        i, motor, drum, twist, _ = x
        gear = SPRING * twist + DAMPER * (motor - U * drum)
        friction = 0.02 * math.tanh(motor / 0.5) + 1e-4 * motor
        turning = (K * i - friction - gear) / J_M
        return [(24.0 - R * i - K * motor) / L, turning, (U * gear - load) / J_L, motor - U * drum, drum]

    half = int(np.searchsorted(run.t, 0.3 - 1e-9))
    parts, x = [], np.zeros(5)
    for times, load in ((run.t[: half + 1], 0.0), (run.t[half:], 15.0)):
        found = solve_ivp(rates, (times[0], times[-1]), x, "Radau", times, args=(load,), rtol=1e-8, atol=1e-10)
        parts.append(found.y[:, :-1] if load == 0.0 else found.y)
        x = found.y[:, -1]
    expected = np.hstack(parts)
    for signal, values in zip(("current", "motor_speed", "velocity"), expected, strict=False):
        np.testing.assert_allclose(run[f"drum/{signal}"], values, atol=1e-6 * np.ptp(values))
    np.testing.assert_allclose(run["drum/shaft_torque"], SPRING * expected[3], atol=1e-5)
    np.testing.assert_allclose(run["drum/position"], expected[4], atol=1e-6)


def test_the_energies_of_its_elements_are_those_of_the_rig(sample: Sample) -> None:
    held, lost, given = ("winding", "inertia", "spring"), ("resistance", "friction", "damper"), ("supply", "load")
    names = ", ".join(f"{name}: {name}.energy" for name in (*held, *lost, *given))
    run = sample("drives/electromechanical", f"joints.drum.actuator.signals={{{names}}}").run()
    assert {run.units[f"drum/{name}"] for name in held + lost + given} == {"J"}

    def total(elements: tuple[str, ...]) -> np.ndarray:
        return np.sum([run[f"drum/{name}"] for name in elements], axis=0)

    for name in held + lost + given:
        assert np.ptp(run[f"drum/{name}"]) > 1e-3
    exact = 1e-9 * run["energy/work"].max()
    np.testing.assert_allclose(total(given), run["energy/work"], atol=exact)
    np.testing.assert_allclose(total(lost), run["energy/dissipated"], atol=exact)
    np.testing.assert_allclose(total(held) + run["energy/kinetic"], run["energy/stored"], atol=exact)


def test_two_inertias_resonate_on_the_shaft(sample: Sample) -> None:
    """ω² = k (1/J_m + u²/J), without current, friction and damping."""
    still = (f"{GRAPH}.supply.effort=0", f"{GRAPH}.resistance.resistance=1e9", f"{GRAPH}.damper.resistance=0")
    free = (*still, f"{GRAPH}.friction.law=0 * flow", "joints.drum.initial={velocity: 0.1}")
    run = sample("drives/electromechanical", *free, "schedule.tolerance=1e-9").run(0.25)
    omega = math.sqrt(SPRING * (1.0 / J_M + U**2 / J_L))
    assert omega / (2.0 * math.pi) == pytest.approx(23.06, abs=0.01)
    expected = -SPRING * U * 0.1 / omega * np.sin(omega * run.t)
    np.testing.assert_allclose(run["drum/shaft_torque"], expected, atol=1e-5 * np.ptp(expected))


def test_the_motor_alone_answers_a_voltage_step_as_its_closed_form(sample: Sample) -> None:
    """The drum is held and the shaft cut: J_m L ω̈ + J_m R ω̇ + K² ω = K U, with two real time constants."""
    cut = (f"{GRAPH}.spring.stiffness=1e-9", f"{GRAPH}.damper.resistance=0", f"{GRAPH}.friction.law=0 * flow")
    run = sample("drives/electromechanical", *cut, "joints.drum.latched=true", "schedule.tolerance=1e-9").run(0.25)
    fast, slow = sorted(np.roots([J_M * L, J_M * R, K**2]).real)
    end = 24.0 / K
    expected = end * (1.0 + (fast * np.exp(slow * run.t) - slow * np.exp(fast * run.t)) / (slow - fast))
    np.testing.assert_allclose(run["drum/motor_speed"], expected, atol=1e-5 * end)


@pytest.mark.parametrize("form", ["loop-free", "circuit", "blocks"])
def test_both_forms_of_the_graph_draw_the_same_equations(form: str, command: Callable, tmp_path: Path) -> None:
    file = tmp_path / "graph.svg"
    rig = FOLDER / "drives" / "electromechanical.yaml"
    code, shown, errors = command("derive", rig, file, "--bondgraph", "--form", form)
    assert code == 0 and not errors
    lines = [" ".join(line.split()) for line in shown.splitlines()]
    assert "winding.flow' = (-K_machine*inertia.flow - R_resistance*winding.flow + e_supply)/I_winding" in lines
    assert "spring.displacement' = inertia.flow - velocity/m_gear" in lines
    assert "<svg" in file.read_text()


def test_a_manipulator_is_the_same_as_a_mechanism_and_as_a_bond_graph(sample: Sample) -> None:
    run = sample("drives/manipulator").run()
    for k, joint in enumerate(("shoulder", "elbow"), 1):
        assert np.ptp(run[f"{joint}/position"]) > 0.5
        np.testing.assert_allclose(run[f"twin/angle_{k}"], run[f"{joint}/position"], atol=1e-12)
        np.testing.assert_allclose(run[f"twin/speed_{k}"], run[f"{joint}/velocity"], atol=1e-12)
    assert run.summary["energy"]["residual_relative"] < 1e-9


CLOSED_CYLINDER = """
mechanism:
  gravity: [0, 0, 0]
  bodies: [{name: load, joint: slide, type: prismatic, axis: [1, 0, 0], mass: 6 t}]
joints:
  slide:
    initial: {velocity: 1 mm/s}
    actuator:
      type: bond_graph
      graph:
        components:
          cylinder: {type: cylinder, area_a: 0.0201 m^2, area_b: 0.012 m^2, stroke: 1 m, extension: 0.4 m,
                     dead_volume: 0.001 m^3, pressure_a: 0.6 MPa, pressure_b: 1.005 MPa}
        bonds: [cylinder.rod -> joint]
schedule: {step: 0.2 ms, duration: 0.1 s, integrator: rodas4}
"""


def test_a_closed_cylinder_swings_at_its_natural_frequency(rig_of: Callable[..., Rig]) -> None:
    """ω² = (E A_a² / V_a + E A_b² / V_b) / M; the forces of both pressures cancel at the start."""
    run = rig_of(CLOSED_CYLINDER).run()
    bulk, a, b, dead = 1.75e9, 0.0201, 0.012, 1e-3
    stiffness = bulk * a**2 / (dead + a * 0.4) + bulk * b**2 / (dead + b * 0.6)
    omega = math.sqrt(stiffness / 6000.0)
    expected = 1e-3 * np.cos(omega * run.t)
    assert omega * run.t[-1] > 2.0 * math.pi
    np.testing.assert_allclose(run["slide/velocity"], expected, atol=5e-6)
    # the second passage through 0 in the same direction ends a period
    v = run["slide/velocity"]
    down = np.flatnonzero((v[:-1] > 0.0) & (v[1:] <= 0.0))
    times = run.t[down] + 2e-4 * v[down] / (v[down] - v[down + 1])
    assert 2.0 * math.pi / np.diff(times).mean() == pytest.approx(omega, rel=1e-3)
