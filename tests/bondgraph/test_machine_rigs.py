"""The sample rigs of machines, against published figures and closed forms."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.interpolate import RegularGridInterpolator
from scipy.linalg import expm
from scipy.optimize import root_scalar
from scipy.special import j0, j1

from cosim import Rig, Run

Sample = Callable[..., Rig]
RPM = 2.0 * math.pi / 60.0


def harmonics(angle: np.ndarray, values: np.ndarray, turns: int) -> np.ndarray:
    """Amplitudes by order of the angle, over the last whole turns."""
    grid = np.linspace(angle[-1] - 2.0 * math.pi * turns, angle[-1], 4097)[:-1]
    return np.abs(np.fft.rfft(np.interp(grid, angle, values)))[::turns] / 2048.0


# --- an induction machine at V/f ---

CHAPMAN = {"r1": 0.641, "r2": 0.332, "x1": 1.106, "x2": 0.464, "xm": 26.3}  # example 7-3: 460 V, 60 Hz, 4 poles
SYNCHRONOUS = 2.0 * math.pi * 60.0 / 2.0


def steady(torque: float) -> tuple[float, float]:
    """(Speed [rad/s], RMS current [A]) of the T circuit of the book at a torque [N·m] of the machine."""
    r1, r2, x1, x2, xm = CHAPMAN.values()

    def at(slip: float) -> tuple[float, float]:
        rotor = r2 / slip + 1j * x2
        gap = 1j * xm * rotor / (1j * xm + rotor)
        current = 460.0 / math.sqrt(3.0) / (r1 + 1j * x1 + gap)
        return 3.0 * abs(current * gap / rotor) ** 2 * r2 / slip / SYNCHRONOUS, abs(current)

    slip = root_scalar(lambda slip: at(slip)[0] - torque, bracket=(1e-5, 0.19)).root
    return (1.0 - slip) * SYNCHRONOUS, at(slip)[1]


@pytest.mark.parametrize("torque", [20.0, 62.8, 110.0])
def test_an_induction_machine_slips_as_its_published_circuit(sample: Sample, torque: float) -> None:
    """With 62.8 N·m at 1760 rpm and 18.88 A, as in the book."""
    run = sample("drives/induction_axis", f"joints.belt.actuator.friction.coulomb={torque * 20 / 0.1}").run(2.2)
    speed, current = run["belt/velocity"][-1] * 20.0 / 0.1, run["belt/current"][-1] / math.sqrt(2.0)
    expected = steady(torque)
    assert (speed, current) == pytest.approx(expected, rel=3e-4)
    assert run["belt/field_velocity"][-1] == pytest.approx(SYNCHRONOUS * 0.1 / 20.0, rel=1e-4)
    if torque == 62.8:
        assert speed / RPM == pytest.approx(1760.0, abs=1.0) and current == pytest.approx(18.88, rel=1e-3)


# --- a brushless DC machine ---


def test_a_brushless_machine_passes_its_current_on_six_times_per_electrical_turn(sample: Sample) -> None:
    """The torque of a steady speed ripples with six per electrical turn and its multiples alone; its mean is what the
    fan takes, and in the middle of the sectors it is 2 K I."""
    run = sample("drives/bldc_hall").run()
    late = run.t > 0.25
    angle, torque, speed = (run[f"fan/{name}"][late] for name in ("position", "motor_torque", "velocity"))
    assert speed == pytest.approx(300.0, rel=4e-3)
    orders = harmonics(4.0 * angle, torque, 12)
    assert orders[1:31].argmax() + 1 == 6
    assert np.delete(orders[1:31], np.arange(5, 30, 6)).max() < 0.05 * orders[6]
    assert torque.mean() == pytest.approx(0.005 + 0.002 * 300.0, rel=5e-3)
    phases = np.array([run[f"fan/current_{phase}"][late] for phase in "abc"])
    electrical = np.degrees(4.0 * angle) % 60.0
    middle = np.minimum(electrical, 60.0 - electrical) < 5.0  # of the sectors between commutations at 30°, 90°, …
    two = np.sort(np.abs(phases[:, middle]), axis=0)
    assert two[0].max() < 0.01 * two[2].min()
    assert torque[middle] == pytest.approx(2.0 * 0.03 * two[2], abs=0.01)


# --- a step motor ---


def pull_out(speed: float) -> float:
    """N·m of a stepper on voltages of amplitude U behind a resistance R (Hughes and Lawrenson 1975), here of a chopper:
    R = R_0 + ω_c L, U = R I. Half steps have the fundamental sin(π / 8) / (π / 8)."""
    resistance = 1.5 + 2.0 * math.pi * 500.0 * 3e-3
    voltage = resistance * 1.2 * math.sin(math.pi / 8.0) / (math.pi / 8.0)
    impedance = math.hypot(resistance, 50.0 * speed * 3e-3)
    return 0.3 * voltage / impedance - 0.3**2 * speed * resistance / impedance**2


def test_a_stepper_loses_its_steps_at_its_pull_out_speed(sample: Sample) -> None:
    """Friction of the slide behind the screw and of the bearings, and what accelerates the rotor."""
    run = sample("drives/stepper_axis").run()
    of_screw = 2.0 * math.pi / 5e-3
    behind = 50.0 * of_screw * (run["slide/field_position"] - run["slide/position"])  # electrical
    lost = np.argmax(behind > math.pi)
    carried = (90.0 + 4.0 * 0.02) / (of_screw * 0.9) + 0.4e-4 * 0.02 * of_screw
    expected = root_scalar(lambda w: pull_out(w) - carried - 0.002 * w, bracket=(1.0, 100.0)).root
    assert run["slide/field_velocity"][lost] * of_screw == pytest.approx(expected, rel=0.04)
    # before that the slide follows within its load angle and a step, and the field is at half steps
    assert np.abs(behind[: lost - 60]).max() < 0.75 * math.pi
    half_steps = run["slide/field_position"] * of_screw * 400.0 / (2.0 * math.pi)
    assert half_steps == pytest.approx(np.round(half_steps), abs=1e-6)
    assert np.ptp(run["slide/position"][lost + 100 :]) < 1e-3


# --- field weakening ---


def test_a_salient_machine_weakens_its_field_along_its_ellipse(sample: Sample) -> None:
    """Of the constants that the drive knows: MTPA below, and above 0.9 U = p ω |ψ| up to the largest current. The flux
    tables give the torque that accelerates the spindle."""
    rig = sample("drives/field_weakening")
    run = rig.run()
    i_d, i_q, speed = (run[f"spindle/{name}"] for name in ("current_d", "current_q", "velocity"))
    psi_d, psi_q = 0.08 + 1.5e-3 * i_d, 3.5e-3 * i_q
    below, above = (run.t > 0.1) & (speed < 300.0), run.t > 1.0
    assert below.sum() > 200 and speed[-1] > 1.9 * 160.0 / (4 * 0.08)
    mtpa = (1.5e-3 - 3.5e-3) * (i_d**2 - i_q**2) + 0.08 * i_d
    assert mtpa[below] == pytest.approx(np.zeros(below.sum()), abs=5e-3 * 0.08 * 12.0) and i_d[below].max() < -10.0
    amplitude = np.hypot(i_d, i_q)
    assert amplitude.max() < 30.01
    assert 4.0 * speed[above] * np.hypot(psi_d, psi_q)[above] == pytest.approx(0.9 * 160.0, rel=2e-3)
    (joint,) = rig.spec.joints.values()
    assert joint.actuator is not None
    tables = joint.actuator.params.motor.params.flux_tables
    points, at = (tables.currents_d, tables.currents_q), np.stack([i_d, np.abs(i_q)], axis=1)
    linked = [RegularGridInterpolator(points, table)(at) for table in (tables.flux_d, tables.flux_q)]
    torque = 1.5 * 4.0 * (linked[0] * i_q - linked[1] * i_d)
    accelerated = 0.022 * run["spindle/acceleration"] + 0.2 + 0.5e-3 * speed
    assert torque[below] == pytest.approx(accelerated[below], rel=0.02)


# --- a switched inverter ---


def test_the_current_of_a_full_bridge_ripples_with_its_duty(sample: Sample) -> None:
    """U D (1 − D) / (2 f L) from peak to peak: 1.5 A at most, U / (8 f L), where D = 1/2."""
    run = sample("drives/switched_inverter").run()
    for voltage in (24.0, 36.0):  # whose corners are at ticks
        at = np.argmax((run["wheel/voltage"] > voltage) & (run.t > 5e-3)) // 16 * 16
        ripple = np.ptp(run["wheel/current"][at : at + 17])  # of a period
        share = voltage / 48.0
        assert ripple == pytest.approx(48.0 * share * (1.0 - share) / (2.0 * 20e3 * 0.2e-3), rel=0.02), voltage


# --- a field angle that is wrong ---


def drives_at_speed(sample: Sample) -> tuple[Run, np.ndarray]:
    run = sample("drives/misaligned_encoder").run()
    return run, run.t > 0.7


def test_a_field_angle_that_is_off_costs_current(sample: Sample) -> None:
    """The torque is cos δ of what the current gives, here with J_0 of the eccentricity: the copper loss 1 / cos² δ."""
    run, late = drives_at_speed(sample)
    share = math.cos(math.radians(20.0)) * j0(4.0 * math.radians(1.0))
    torques = [run[f"{joint}/motor_torque"][late].mean() for joint in ("right", "wrong")]
    assert torques == pytest.approx([0.01 + 0.02 * 62.832] * 2, rel=1e-3)
    setpoints = [run[f"{joint}/effort_setpoint"][late].mean() for joint in ("right", "wrong")]
    assert setpoints[0] / setpoints[1] == pytest.approx(share, rel=1e-3)
    losses = [run[f"{joint}/copper_loss"][late].mean() for joint in ("right", "wrong")]
    assert losses[1] / losses[0] == pytest.approx(1.0 / share**2, rel=3e-3)
    assert np.ptp(run["right/velocity"][late]) < 1e-4


def test_an_encoder_beside_its_centre_makes_the_speed_ripple_once_per_turn(sample: Sample) -> None:
    """2 J_1(p e) sin δ of the torque, through the velocity loop K_v (1 + 1 / (T_i s)) onto J s + b."""
    run, late = drives_at_speed(sample)
    orders = harmonics(run["wrong/position"][late], run["wrong/velocity"][late], 4)
    assert orders[1:].argmax() == 0 and orders[2:20].max() < 0.05 * orders[1]
    delta, s = math.radians(20.0), 62.832j
    disturbing = run["wrong/effort_setpoint"][late].mean() * math.sin(delta) * 2.0 * j1(4.0 * math.radians(1.0))
    loop = math.cos(delta) * 0.1 * (1.0 + 1.0 / (0.05 * s)) + 2.1e-3 * s + 0.02
    assert orders[1] == pytest.approx(abs(disturbing / loop), rel=0.02)


# --- the heat of a cycle ---

COUPLED = np.array([[1.0 / 0.7, -1.0 / 0.7], [-1.0 / 0.7, 1.0 / 0.7 + 1.0 / 1.6]])  # W/K of winding and housing
CAPACITIES = np.array([20.0, 60.0])  # J/K


def test_the_winding_warms_up_by_the_mean_losses_of_its_cycle(sample: Sample) -> None:
    """C Ṫ = P_0 (1 + α T_w) − G T, linear, by its matrix exponential; P_0 = 3/2 R i² of the torque that carries and
    swings the arm. time_to_limit is of the losses at a tick, which grow with the resistance."""
    run = sample("drives/duty_cycle").run()
    t = np.linspace(0.0, 2.0, 4001)
    angle = math.radians(3.0) * np.sin(math.pi * t)
    inertia = 0.1 + 9.0 * 0.12**2 + 100.0 * 0.5e-4
    torque = -inertia * math.pi**2 * angle - 9.0 * 9.81 * 0.12 * np.cos(angle)
    cold = float(1.5 * 0.8 * np.mean((torque / (10.0 * 1.5 * 4.0 * 0.03)) ** 2))
    grown = COUPLED - np.array([[0.00393 * cold, 0.0], [0.0, 0.0]])
    ends = np.linalg.solve(grown, [cold, 0.0])
    for time in (20.0, 80.0, 200.0):
        expected = ends - expm(-grown / CAPACITIES[:, None] * time) @ ends
        at = np.searchsorted(run.t, time - 1e-9)
        found = [run[f"arm/{name}_temperature"][at] for name in ("winding", "housing")]
        assert found == pytest.approx(list(expected), rel=5e-3)
    loss, rises = (
        run["arm/copper_loss"][-1],
        np.array([run[f"arm/{n}_temperature"][-1] for n in ("winding", "housing")]),
    )
    cold = loss / (1.0 + 0.00393 * rises[0])
    grown = COUPLED - np.array([[0.00393 * cold, 0.0], [0.0, 0.0]])
    final = np.linalg.solve(grown, np.array([cold, 0.0]))

    def beyond(time: float) -> float:
        return (final + expm(-grown / CAPACITIES[:, None] * time) @ (rises - final))[0] - 110.0

    assert run["arm/time_to_limit"][-1] == pytest.approx(root_scalar(beyond, bracket=(1.0, 1e3)).root, rel=1e-6)
