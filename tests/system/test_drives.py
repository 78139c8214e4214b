"""A wheel on a servo drive, against the closed solutions of the equations of motor, gear and wheel."""

import math

import numpy as np
import pytest
from scipy.linalg import expm

from cosim.rig.run.run import StoppedRun

R, L, K, ROTOR, RATIO, VISCOUS, WHEEL = 0.8, 1.6e-3, 0.05, 2e-5, 20.0, 0.3, 0.05
STEP = 1e-4

RIG = f"""
mechanism:
  gravity: [0, 0, 0]
  bodies:
    - {{name: wheel, mass: 1 kg, inertia: [{WHEEL}, {WHEEL}, {WHEEL}]}}
joints:
  wheel:
    actuator:
      type: dc_motor
      resistance: {R}
      inductance: {L}
      torque_constant: {K}
      rotor_inertia: {ROTOR}
      ratio: {RATIO}
      viscous: {VISCOUS}
controllers:
  - {{name: push, type: push.py}}
schedule: {{step: {STEP}, duration: 0.1}}
"""


def motor(**keys):
    """Overrides of the motor."""
    return [f"joints.wheel.actuator.{key}={value}" for key, value in keys.items()]


def solution(matrix, constant, t):
    """(k, n) states at times t (k,) of ẋ = matrix x + constant from rest."""
    n = len(constant)
    joined = np.zeros((n + 1, n + 1))
    joined[:n, :n], joined[:n, n] = matrix, constant
    step = expm(joined * (t[1] - t[0]))
    states = [np.eye(n + 1)[n]]
    for _ in t[1:]:
        states.append(step @ states[-1])
    return np.array(states)[:, :n]


def test_the_ratio_of_a_linear_joint_has_its_unit(rig_of):
    sliding = RIG.replace("name: wheel, mass", "name: wheel, type: prismatic, mass")
    rig = rig_of(sliding.replace(f"ratio: {RATIO}", "ratio: 392.7 rad/m"))
    assert rig.spec.joints["wheel"].actuator.params.ratio == 392.7


def test_voltage_step_equals_the_matrix_exponential(rig_of):
    run = rig_of(RIG, "controllers.push.size=2.0", *motor(drive="voltage")).run()
    voltage, inertia = R * 2.0 / (K * RATIO), WHEEL + RATIO**2 * ROTOR
    matrix = np.array([[-R / L, -K * RATIO / L], [K * RATIO / inertia, -VISCOUS / inertia]])
    expected = solution(matrix, [voltage / L, 0.0], run.t)
    np.testing.assert_allclose(run["wheel/voltage"], voltage, rtol=1e-14)
    np.testing.assert_allclose(run["wheel/current"], expected[:, 0], atol=1e-7)
    np.testing.assert_allclose(run["wheel/velocity"], expected[:, 1], atol=1e-7)
    of_motor = K * RATIO * expected[:, 0] - VISCOUS * expected[:, 1]
    np.testing.assert_allclose(run["wheel/measured_effort"], of_motor, atol=1e-6)
    np.testing.assert_allclose(run["wheel/effort"], WHEEL / inertia * of_motor, atol=1e-6)
    assert run.summary["energy"]["residual_relative"] < 1e-6


def test_the_effort_on_a_joint_does_the_work_on_its_link(rig_of):
    """Behind a rotor of 100 times its inertia the link alone gains what its effort does."""
    heavy = f"joints.wheel.actuator.rotor_inertia={100.0 * WHEEL / RATIO**2}"
    run = rig_of(RIG, "controllers.push.size=2.0", *motor(viscous=0), heavy).run()
    power = run["wheel/effort"] * run["wheel/velocity"]
    assert np.trapezoid(power, run.t) == pytest.approx(0.5 * WHEEL * run["wheel/velocity"][-1] ** 2, rel=1e-5)
    np.testing.assert_allclose(101.0 * run["wheel/effort"], run["wheel/measured_effort"], rtol=1e-9)
    assert run.summary["joints"]["wheel"]["effort_peak"] == np.abs(run["wheel/measured_effort"]).max()


@pytest.mark.parametrize("bandwidth", [20.0, 100.0])
def test_current_loop_has_its_bandwidth_and_rejects_back_emf(rig_of, bandwidth):
    run = rig_of(RIG, "controllers.push.size=2.0", *motor(bandwidth=bandwidth)).run()
    target = 2.0 / (K * RATIO)
    expected = target * (1.0 - np.exp(-(R / L + 2.0 * math.pi * bandwidth) * run.t))
    np.testing.assert_allclose(run["wheel/current"], expected, atol=1e-6)
    assert run["wheel/velocity"][-1] > 1.0


def test_an_elastic_gear_oscillates_at_its_natural_frequency(rig_of):
    stiffness = 400.0
    keys = {"stiffness": stiffness, "viscous": 0, "bandwidth": "2 kHz"}
    run = rig_of(RIG, "controllers.push.size=2.0", "schedule.step=50 us", *motor(**keys)).run(0.3)
    rotor = RATIO**2 * ROTOR
    # rotor and wheel oscillate about the mean twist, which transmits the wheel's fraction of the torque
    omega = math.sqrt(stiffness * (1 / rotor + 1 / WHEEL))
    mean = 2.0 * WHEEL / (WHEEL + rotor)
    effort = run["wheel/effort"]
    swing = effort - mean
    up = np.flatnonzero((swing[:-1] < 0) & (swing[1:] >= 0))
    crossings = run.t[up] - swing[up] * (run.t[1] - run.t[0]) / (swing[up + 1] - swing[up])
    assert len(crossings) > 10
    np.testing.assert_allclose(np.diff(crossings), 2 * math.pi / omega, rtol=1e-4)
    assert effort.max() == pytest.approx(2 * mean, rel=0.02)
    assert run.summary["energy"]["residual_relative"] < 1e-5


def test_a_damped_elastic_gear_settles_at_its_static_deflection(rig_of):
    keys = {"stiffness": 400.0, "damping": 0.5, "viscous": 0}
    run = rig_of(RIG, "controllers.push.size=2.0", "schedule.duration=0.5", *motor(**keys)).run()
    rotor = RATIO**2 * ROTOR
    assert run["wheel/effort"][-1] == pytest.approx(2.0 * WHEEL / (WHEEL + rotor), rel=1e-6)
    assert run["wheel/acceleration"][-1] == pytest.approx(2.0 / (WHEEL + rotor), rel=1e-6)


def test_a_driving_gear_transmits_the_fraction_of_its_efficiency(rig_of):
    efficiency = 0.7
    run = rig_of(RIG, "controllers.push.size=2.0", *motor(efficiency=efficiency, viscous=0)).run()
    speed, torque = run["wheel/velocity"], K * RATIO * run["wheel/current"]
    fast = speed > 2.0
    np.testing.assert_allclose(
        (run["wheel/measured_effort"] * speed)[fast], efficiency * (torque * speed)[fast], rtol=1e-4
    )
    assert run.summary["energy"]["residual_relative"] < 1e-6


def test_a_backdriven_gear_transmits_the_same_fraction_backwards(rig_of):
    efficiency = 0.7
    brake = "joints.wheel.initial={velocity: 20}"
    run = rig_of(RIG, brake, "controllers.push.size=-1.0", *motor(efficiency=efficiency, viscous=0)).run(0.05)
    speed, torque = run["wheel/velocity"], K * RATIO * run["wheel/current"]
    braking = run.t > 0.02
    assert np.all(speed > 2.0) and np.all(torque[braking] < -0.9)
    np.testing.assert_allclose(torque[braking], efficiency * run["wheel/measured_effort"][braking], rtol=1e-4)


def test_the_current_limit_bounds_the_torque_and_the_voltage_limit_the_speed(rig_of):
    keys = {"current_limit": 3.0, "voltage_limit": 24.0, "viscous": 0}
    run = rig_of(RIG, "controllers.push.size=1000", "schedule.duration=1 s", *motor(**keys)).run()
    current, voltage, speed = (run[f"wheel/{what}"] for what in ("current", "voltage", "velocity"))
    assert current.max() <= 3.0 * (1 + 1e-9) and current.max() == pytest.approx(3.0, rel=1e-6)
    assert voltage.max() == 24.0
    # without load it runs up to where the back-EMF is all of the voltage
    assert speed[-1] == pytest.approx(24.0 / (K * RATIO), rel=1e-6)
    back = rig_of(RIG, "controllers.push.size=-1000", *motor(**keys)).run()
    np.testing.assert_allclose(back["wheel/current"], -current[: len(back.t)], rtol=1e-12)


def test_the_guard_saturates_a_request_beyond_the_effort_limit(rig_of):
    run = rig_of(RIG, "controllers.push.size=1000", "joints.wheel.limits={effort: 3}").run()
    np.testing.assert_array_equal(run["wheel/command_effort"], 3.0)
    assert run.summary["outcome"] == "finished"


def test_coulomb_friction_holds_a_weak_drive(rig_of):
    run = rig_of(RIG, "controllers.push.size=0.5", "schedule.duration=1 s", *motor(coulomb=0.6, viscous=0)).run()
    # friction is smooth around standstill: the drive creeps where v/√(v² + v_s²) = 0.5/0.6
    creep = 0.01 * (0.5 / 0.6) / math.sqrt(1 - (0.5 / 0.6) ** 2)
    assert run["wheel/velocity"][-1] == pytest.approx(creep, rel=1e-6)


def test_a_stiff_drive_needs_the_implicit_integrator(rig_of):
    """An electrical time constant of 2 µs at steps of 1 ms: RK4 diverges, Rosenbrock gives the settled current."""
    stiff = ["schedule.step=1 ms", *motor(inductance="1.6 uH", drive="voltage")]
    with pytest.raises(StoppedRun, match="joint 'wheel' is not finite"):
        rig_of(RIG, *stiff).run(0.5)
    run = rig_of(RIG, *stiff, "schedule.integrator=rosenbrock").run(0.5)
    inertia = WHEEL + RATIO**2 * ROTOR
    drag = VISCOUS + (K * RATIO) ** 2 / R  # with the current settled the back-EMF acts as a brake
    speed = (1.0 / drag) * (1.0 - np.exp(-drag / inertia * run.t))
    np.testing.assert_allclose(run["wheel/velocity"], speed, atol=1e-3 * speed.max())
