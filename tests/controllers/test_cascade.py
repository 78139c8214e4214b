"""The cascade of the controller: against its linear system, under loads, at its limits, and against the drive's own."""

import numpy as np
import pytest
from scipy import signal

AXIS = """
mechanism:
  gravity: [0, 0, {gravity}]
  bodies: [{{name: link, joint: hinge, axis: [0, 1, 0], mass: 1 kg, com: [0.5, 0, 0], inertia: [0.25, 0.25, 0.25]}}]
joints: {{hinge: {{actuator: {{type: ideal}}, limits: {{effort: {effort}}}}}}}
controllers:
  - {{type: cascade, position_gain: {kp}, velocity_gain: 30{keys}, trajectory: {{type: quintic, goal: {goal},
     duration: {time}}}}}
schedule: {{step: 1 ms, duration: {duration} s, integrator: rk4}}
"""
INERTIA = 0.5


def rig(rig_of, keys="", gravity=0.0, kp=8, effort="1000 N*m", goal="60 deg", time="1 ms", duration=1.5):
    keys = keys and f", {keys}"
    text = AXIS.format(keys=keys, gravity=gravity, kp=kp, effort=effort, goal=goal, time=time, duration=duration)
    return rig_of(text)


def test_the_loop_is_that_of_its_transfer_functions(rig_of):
    """Sampled position P, velocity PI and a double integrator with a held effort, from the formulas."""
    period, kp, kv, fraction = 1e-3, 8.0, 30.0, 1e-3 / 0.05
    a, b, *_ = signal.cont2discrete(
        (np.array([[0.0, 1.0], [0.0, 0.0]]), np.array([[0.0], [1.0 / INERTIA]]), np.eye(2), np.zeros((2, 1))), period
    )
    row = kv * np.array([-kp, -1.0])  # the effort is kv (kp (r − q) − v) + I
    loop = np.block([[a + b @ row[None], b], [fraction * row[None], np.ones((1, 1))]])
    drive = np.concatenate([b * kv * kp, [[fraction * kv * kp]]])
    found = rig(rig_of, "integral_time: 50 ms, velocity_feedforward: 0").run()
    reference, x, expected = found["hinge/reference_position"], np.zeros(3), []
    for r in reference:
        expected.append(x[0])
        x = loop @ x + drive[:, 0] * r
    np.testing.assert_allclose(found["hinge/position"], expected, atol=1e-9)


def test_the_filter_of_the_velocity_is_of_first_order(rig_of):
    run = rig(rig_of, "velocity_filter: 40 Hz, velocity_feedforward: 0", time="0.2 s", duration=0.4).run()
    filtered = signal.lfilter(*signal.butter(1, 40.0, fs=1000.0), run["hinge/velocity"])
    effort = 30.0 * (8.0 * (run["hinge/reference_position"] - run["hinge/position"]) - filtered)
    np.testing.assert_allclose(run["hinge/command_effort"], effort, atol=1e-9)


def test_the_integral_of_the_velocity_holds_a_load_without_error(rig_of):
    held = rig(rig_of, "integral_time: 50 ms", gravity=-9.81, time="0.5 s", duration=3.0).run()
    assert abs(held["hinge/position"][-1] - np.deg2rad(60.0)) < 1e-5
    sagged = rig(rig_of, gravity=-9.81, time="0.5 s", duration=3.0).run()
    assert abs(sagged["hinge/position"][-1] - np.deg2rad(60.0)) > np.deg2rad(0.5)


def test_feedforward_removes_the_lag(rig_of):
    lag = {}
    for keys in ("velocity_feedforward: 0", "", f"inertia: {INERTIA}"):
        found = rig(rig_of, keys, time="1 s", duration=1.0).run()
        lag[keys] = np.abs(found["hinge/reference_position"] - found["hinge/position"]).max()
    without, velocity, both = lag.values()
    assert both < 0.02 * velocity < 0.02 * 0.5 * without


def test_the_velocity_and_the_effort_stay_within_their_limits(rig_of):
    keys = "integral_time: 50 ms, velocity_limit: 2 rad/s, effort_limit: 5 N*m"
    found = rig(rig_of, keys, goal="170 deg", duration=3.0).run()
    assert np.abs(found["hinge/effort"]).max() <= 5.0
    assert 1.9 < found["hinge/velocity"].max() < 2.2  # the PI loop overshoots its setpoint
    free = rig(rig_of, "integral_time: 50 ms, effort_limit: 5 N*m", goal="170 deg", duration=3.0).run()
    assert free["hinge/velocity"].max() > 4.0


def test_recovery_from_a_saturated_effort_has_no_overshoot(rig_of):
    """A step of 60 deg with 8 N·m: the velocity loop saturates at the start, and while the axis brakes it must not."""
    keys = "integral_time: 50 ms, velocity_limit: 3 rad/s, velocity_feedforward: 0"
    found = rig(rig_of, keys, kp=5, effort="8 N*m", duration=3.0).run()
    assert np.abs(found["hinge/effort"]).max() == pytest.approx(8.0)
    assert found["hinge/position"].max() < np.deg2rad(60.1)


def test_the_loops_of_a_simulated_drive_move_alike(rig_of):
    """The same gains in a drive that samples them at 8 kHz, and in the controller at 1 kHz."""
    drive = """
mechanism:
  gravity: [0, 0, 0]
  bodies: [{name: link, joint: hinge, axis: [0, 1, 0], mass: 1 kg, com: [0.5, 0, 0], inertia: [0.25, 0.25, 0.25]}]
joints:
  hinge:
    actuator:
      type: drive
      motor: {type: dc_machine, resistance: 0.4, inductance: 0.4 mH, torque_constant: 0.1, inertia: 1e-5}
      control: {bandwidth: 1500 Hz, current_limit: 40 A, voltage_limit: 100 V}
      gears: [{ratio: 20}]
      LOOPS
controllers: [{CONTROLLER, trajectory: {type: quintic, goal: 60 deg, duration: 0.6 s}}]
schedule: {step: 1 ms, duration: 1 s, substeps: 16}
"""
    loops = "loops: {velocity: {gain: 30, integral_time: 50 ms, rate: 8 kHz}, position: {gain: 8, rate: 1 kHz}}"
    own = rig_of(drive.replace("LOOPS", loops).replace("CONTROLLER", "type: passthrough, kp: 1")).run()
    cascade = "type: cascade, position_gain: 8, velocity_gain: 30, integral_time: 50 ms"
    ours = rig_of(drive.replace("LOOPS", "").replace("CONTROLLER", cascade)).run()
    assert np.abs(own["hinge/position"] - ours["hinge/position"]).max() < np.deg2rad(0.05)
    assert np.abs(own["hinge/reference_position"] - own["hinge/position"]).max() > np.deg2rad(0.2)


@pytest.mark.parametrize("keys", ["integral_time: 0.2 ms", "velocity_filter: 700"])
def test_what_is_too_fast_for_the_period_is_refused(command, tmp_path, keys, said):
    text = AXIS.format(keys=f", {keys}", gravity=0, kp=8, effort=9, goal=1, time=1, duration=1)
    (tmp_path / "rig.yaml").write_text(text)
    said(command.refuses("check", "rig.yaml"))


def test_a_drive_with_loops_of_its_own_is_refused(command, tmp_path, said):
    text = AXIS.format(keys="", gravity=0, kp=8, effort=9, goal=1, time=1, duration=1)
    drive = """{type: drive, motor: {type: dc_machine, resistance: 1, inductance: 1 mH, torque_constant: 0.1,
     inertia: 1e-5}, control: {bandwidth: 500 Hz, current_limit: 9, voltage_limit: 24}, loops: {mode: velocity,
     velocity: {gain: 1}}}"""
    (tmp_path / "rig.yaml").write_text(text.replace("{type: ideal}", drive))
    said(command.refuses("check", "rig.yaml"))
