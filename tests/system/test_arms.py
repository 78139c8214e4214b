"""The sample arms: their runs against formulas and independent models."""

import math
from functools import partial

import numpy as np
import pytest
from scipy.integrate import cumulative_trapezoid, solve_ivp

from cosim import Model, load_rig
from tests.kit.samples import FOLDER

UR5 = FOLDER / "robots" / "ur5.urdf"
DEGREE = math.pi / 180.0
DRIVEN = ("shoulder_pan_joint", "shoulder_lift_joint", "elbow_joint")
WRIST = ("wrist_1_joint", "wrist_2_joint", "wrist_3_joint")


def columns(run, joints, what):
    """(k, n) of one interface of some joints."""
    return np.stack([run[f"{joint}/{what}"] for joint in joints], axis=1)


def balance(run):
    """Work − losses − stored energy at every tick, relative to the largest of them [1]."""
    work, lost, stored = (run[f"energy/{what}"] for what in ("work", "dissipated", "stored"))
    return np.abs(work - lost - (stored - stored[0])).max() / max(np.abs(work).max(), np.ptp(stored))


def assert_integral(run, power, work):
    """The work is the integral of the power by the trapezoidal rule, which is good for some 1e-4 here."""
    start = 50  # the first ticks, in which the currents rise to carry the arm, are too coarse for it
    expected = cumulative_trapezoid(power[start:], run.t[start:])
    np.testing.assert_allclose(work[start + 1 :] - work[start], expected, rtol=3e-4, atol=2e-3)


# --- ur5_sim --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ur5():
    return load_rig(FOLDER / "ur5_sim.yaml").run()


def test_ur5_tracks_its_reference_and_returns(ur5):
    joints = ur5.rig.joints
    error = columns(ur5, joints, "reference_position") - columns(ur5, joints, "position")
    assert np.abs(error).max() < 0.6 * DEGREE
    assert np.abs(error[-1]).max() < 0.1 * DEGREE
    goal = DEGREE * np.array([60, -100, 95, -40, 70, 90])
    there = np.searchsorted(ur5.t, 2.2)
    np.testing.assert_allclose(columns(ur5, joints, "reference_position")[there], goal, rtol=1e-6)
    np.testing.assert_allclose(columns(ur5, joints, "position")[there], goal, atol=0.6 * DEGREE)
    for joint in joints:
        summary = ur5.summary["joints"][joint]
        error = ur5[f"{joint}/reference_position"] - ur5[f"{joint}/position"]
        assert summary["role"] == "actuated"
        assert summary["error_max"] == np.abs(error).max()
        assert summary["error_rms"] == pytest.approx(np.sqrt(np.mean(error**2)), rel=1e-12)
        assert summary["effort_peak"] == np.abs(ur5[f"{joint}/measured_effort"]).max()


def test_ur5_efforts_equal_inverse_dynamics_of_arm_and_rotors(ur5):
    joints = ur5.rig.joints
    q, v, a = (columns(ur5, joints, what) for what in ("position", "velocity", "acceleration"))
    rotors = 101**2 * 1e-4 * np.array([0.35, 0.35, 0.35, 0.06, 0.06, 0.06])
    arm = Model.from_urdf(UR5)
    on_links = arm.inverse_dynamics(q, v, a) + arm.friction_effort(v)
    for what, needed in (("effort", on_links), ("measured_effort", on_links + rotors * a)):
        effort = columns(ur5, joints, what)
        np.testing.assert_allclose(effort, needed, atol=1e-9 * np.abs(effort).max())


def test_ur5_efforts_are_motor_torques_minus_gear_losses(ur5):
    joints = ur5.rig.joints
    v, current = columns(ur5, joints, "velocity"), columns(ur5, joints, "current")
    constant = np.array([0.125] * 3 + [0.095] * 3)
    viscous, coulomb = np.array([2.2] * 3 + [0.6] * 3), np.array([3.5] * 3 + [0.9] * 3)
    expected = 101 * constant * current - viscous * v - coulomb * v / np.sqrt(v**2 + 0.01**2)
    np.testing.assert_allclose(columns(ur5, joints, "measured_effort"), expected, atol=1e-10)


def test_ur5_energy_is_balanced_at_every_tick(ur5):
    assert balance(ur5) < 1e-4
    joints = ur5.rig.joints
    power = (columns(ur5, joints, "voltage") * columns(ur5, joints, "current")).sum(axis=1)
    assert_integral(ur5, power, ur5["energy/work"])


# --- prescribed_wrist -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def wrist():
    return load_rig(FOLDER / "prescribed_wrist.yaml").run()


def test_wrist_moves_as_prescribed(wrist):
    t = wrist.t
    s = np.clip(np.where(t < 1.5, t - 0.5, 2.5 - t), 0.0, 1.0)
    expected = -90 * DEGREE * s**3 * (10 - 15 * s + 6 * s**2)
    np.testing.assert_allclose(wrist["wrist_1_joint/position"], expected, atol=1e-12)
    on = t >= 0.5  # the sines have grown to their amplitude
    for joint, amplitude, frequency in (("wrist_2_joint", 20, 1.0), ("wrist_3_joint", 30, 0.8)):
        angle = 2 * math.pi * frequency * t
        for what, expected in (
            ("position", np.sin(angle)),
            ("velocity", 2 * math.pi * frequency * np.cos(angle)),
            ("acceleration", -((2 * math.pi * frequency) ** 2) * np.sin(angle)),
        ):
            np.testing.assert_allclose(wrist[f"{joint}/{what}"][on], amplitude * DEGREE * expected[on], atol=1e-10)


def test_wrist_efforts_and_arm_accelerations_equal_hybrid_dynamics(wrist):
    joints = wrist.rig.joints
    assert joints == DRIVEN + WRIST
    q, v, a = (columns(wrist, joints, what) for what in ("position", "velocity", "acceleration"))
    arm = Model.from_urdf(UR5)  # its efforts are on the links, behind the rotors
    effort = columns(wrist, joints, "effort") - arm.friction_effort(v)
    known = np.array([name in WRIST for name in joints])
    found_a, found_effort = arm.hybrid_dynamics(q, v, np.where(known, a, 0.0), np.where(known, 0.0, effort), known)
    np.testing.assert_allclose(found_effort, effort, atol=1e-10 * np.abs(effort).max())
    np.testing.assert_allclose(found_a, a, atol=1e-9 * np.abs(a).max())
    np.testing.assert_allclose(arm.inverse_dynamics(q, v, a), effort, atol=1e-10 * np.abs(effort).max())


def test_report_shows_the_prescribed_wrist_with_its_required_torque(wrist):
    joints = wrist.summary["joints"]
    assert {name: joint["role"] for name, joint in joints.items()} == {
        **dict.fromkeys(DRIVEN, "actuated"),
        **dict.fromkeys(WRIST, "prescribed"),
    }
    for name in WRIST:
        assert joints[name]["error_rms"] is None
        assert f"{name}/reference_position" not in wrist and f"{name}/current" not in wrist
        assert joints[name]["effort_peak"] > 0.0
    assert joints["wrist_1_joint"]["effort_peak"] == pytest.approx(1.48, rel=0.01)


def test_feedforward_of_the_arm_includes_the_wrist_motion(wrist, sample):
    assert all(wrist.summary["joints"][name]["error_max"] < 0.2 * DEGREE for name in DRIVEN)
    still = {joint: f"joints.{joint}.prescribed={{type: sine, amplitude: 0, frequency: 1}}" for joint in WRIST}
    calm = sample("prescribed_wrist", *still.values()).run()
    felt = columns(wrist, DRIVEN, "effort") - columns(calm, DRIVEN, "effort")
    assert np.abs(felt).max() > 1.0
    for name in DRIVEN:  # the errors come from the gears' friction, not from what the wrist does
        assert wrist.summary["joints"][name]["error_max"] == pytest.approx(
            calm.summary["joints"][name]["error_max"], rel=0.02
        )


def test_prescribed_work_is_part_of_the_energy_balance(wrist):
    assert balance(wrist) < 1e-3
    drives = (columns(wrist, DRIVEN, "voltage") * columns(wrist, DRIVEN, "current")).sum(axis=1)
    moved = (columns(wrist, WRIST, "effort") * columns(wrist, WRIST, "velocity")).sum(axis=1)
    assert_integral(wrist, drives + moved, wrist["energy/work"])
    assert abs(np.trapezoid(moved, wrist.t)) > 0.05


# --- two_link -------------------------------------------------------------------------------------

MASS, CENTRE, LENGTH, INERTIA = (2.0, 1.2), (0.2, 0.15), 0.4, (0.028, 0.01)
DAMPING, G = np.array([0.2, 0.1]), 9.81


def two_link_flow(t, y, effort):
    """ẏ of y = (q1, q2, v1, v2): Lagrange's equations of a planar two-link arm, as in any textbook
    (Spong et al., Robot Modeling and Control, §6.4)."""
    (q1, q2), v = y[:2], y[2:]
    (m1, m2), (c1, c2) = MASS, CENTRE
    coupling = m2 * LENGTH * c2
    m22 = m2 * c2**2 + INERTIA[1]
    m12 = m22 + coupling * math.cos(q2)
    m11 = m1 * c1**2 + INERTIA[0] + m2 * LENGTH**2 + m22 + 2 * coupling * math.cos(q2)
    h = coupling * math.sin(q2)
    coriolis = np.array([-h * (2 * v[0] * v[1] + v[1] ** 2), h * v[0] ** 2])
    tip = m2 * c2 * G * math.cos(q1 + q2)
    weight = np.array([(m1 * c1 + m2 * LENGTH) * G * math.cos(q1) + tip, tip])
    friction = DAMPING * v
    return np.concatenate([v, np.linalg.solve([[m11, m12], [m12, m22]], effort - friction - coriolis - weight)])


def test_two_link_with_pid_equals_lagranges_equations(sample):
    """The closed loop built again: controller by hand, once per tick, and the arm by scipy in between."""
    rig = sample("two_link")
    run = rig.run(1.0)
    step = rig.tick_model.step
    kp, ki, kd = np.array([400, 150]), np.array([1200, 500]), np.array([40, 12])
    y, integral = np.array([-90, 30, 0, 0]) * DEGREE, np.zeros(2)
    position, velocity = (columns(run, rig.joints, f"reference_{what}") for what in ("position", "velocity"))
    positions, efforts = [], []
    for k in range(1000):
        error = position[k] - y[:2]
        effort = kp * error + kd * (velocity[k] - y[2:]) + integral
        assert np.all(np.abs(effort) < [40, 20])  # the limits are not reached
        integral = integral + ki * error * step
        positions.append(y[:2])
        efforts.append(effort)
        flow = partial(two_link_flow, effort=effort)
        y = solve_ivp(flow, (0, step), y, "DOP853", rtol=1e-9, atol=1e-12).y[:, -1]
    np.testing.assert_allclose(columns(run, rig.joints, "position")[:1000], positions, atol=1e-9)
    np.testing.assert_allclose(columns(run, rig.joints, "effort")[:1000], efforts, atol=1e-6)


def test_two_link_reference_is_the_sine_of_the_rig(sample):
    run = sample("two_link").run()
    on = run.t >= 1.0
    for joint, middle, amplitude, frequency in (("shoulder", -90, 40, 0.5), ("elbow", 30, 60, 1.0)):
        expected = DEGREE * (middle + amplitude * np.sin(2 * math.pi * frequency * run.t))
        np.testing.assert_allclose(run[f"{joint}/reference_position"][on], expected[on], atol=1e-12)
        assert run.summary["joints"][joint]["error_max"] < 1.0 * DEGREE


def test_two_link_gains_change_without_recompilation(sample):
    tuned, written = sample("two_link"), sample("two_link", "controllers.swing.kp=[300, 100]")
    tuned.tick_model.parameters[tuned.tick_model.loops[0].tunables.fields["kp"]] = 300.0, 100.0
    np.testing.assert_array_equal(tuned.run().values, written.run().values)


# --- user_controller ------------------------------------------------------------------------------


def test_a_pendulum_too_heavy_to_lift_swings_up_and_stays(sample):
    run = sample("user_controller").run()
    effort, position = run["pivot/effort"], run["pivot/position"]
    assert np.abs(effort).max() == 1.0  # the motor's limit; holding the pendulum level takes m g l
    assert np.ptp(position) > 1.5 * math.pi
    assert np.abs(position[run.t > 6.0]).max() < 0.01
    assert run.summary["engine"]["controller swing"] == "compiled"


def test_a_pendulum_without_its_controller_hangs(sample):
    run = sample("user_controller", "controllers=[]").run()
    assert np.abs(run["pivot/position"] - math.pi).max() < 5.001 * DEGREE
    assert run.summary["joints"]["pivot"]["role"] == "passive"
