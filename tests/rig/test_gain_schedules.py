"""Gains that depend on a signal, of any controller: values, runs in both engines, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from cosim.control.controller_wrappers import GainSchedule
from cosim.core.errors import InputErrors

RIG = """
mechanism:
  gravity: [0, 0, 0]
  bodies:
    - {name: upper, joint: shoulder, axis: [0, 0, 1], mass: 3 kg, com: [0.25, 0, 0], inertia: [0.01, 0.05, 0.05]}
    - {name: slide, parent: upper, joint: reach, type: prismatic, axis: [1, 0, 0], mass: 2 kg,
       inertia: [0.01, 0.02, 0.02]}
joints: {all: {actuator: {type: ideal}}, reach: {initial: {position: 0.2}}}
controllers:
  - {name: arm, CONTROLLER}
schedule: {step: 1 ms, duration: 1 s}
"""
MOVE = "trajectory: {type: quintic, goal: [60 deg, 90 cm], duration: 0.8 s}"
SCHEDULE = (
    "{gains: [[100, 500], {shoulder: 300, reach: 500}, [900, 700 N/m]], "
    "over: {signal: reach/position, values: [20 cm, 0.5, 1]}}"
)
TURNING = "over: {signal: shoulder/velocity, values: [0, 60 deg/s]}"


def text(controller: str) -> str:
    return RIG.replace("CONTROLLER", controller)


def test_gains_are_linear_between_the_points_and_constant_outside():
    schedule = GainSchedule("kp", "all_position", 0, (1.0, 2.0, 4.0), np.array([[1.0, 5.0], [3.0, 5.0], [3.0, -1.0]]))
    for value in (-3.0, 1.0, 1.25, 2.0, 3.0, 3.999, 4.0, 9.0):
        expected = [np.interp(value, schedule.points, column) for column in schedule.rows.T]
        np.testing.assert_allclose(schedule.gains(value), expected, rtol=1e-12)


def test_the_drive_gets_the_gains_of_the_present_position(rig_of):
    run = rig_of(text(f"type: passthrough, kp: {SCHEDULE}, kd: [20, 30], {MOVE}")).run()
    error = {name: run[f"{name}/reference_position"] - run[f"{name}/position"] for name in ("shoulder", "reach")}
    rate = {name: run[f"{name}/reference_velocity"] - run[f"{name}/velocity"] for name in ("shoulder", "reach")}
    for name, kd, column in (("shoulder", 20.0, [100, 300, 900]), ("reach", 30.0, [500, 500, 700])):
        kp = np.interp(run["reach/position"], [0.2, 0.5, 1.0], column)
        np.testing.assert_allclose(run[f"{name}/effort"], kp * error[name] + kd * rate[name], atol=1e-9)
    assert np.ptp(run["reach/position"]) > 0.6


@pytest.mark.parametrize(
    "controller",
    [
        f"type: feedforward_pd, kp: {SCHEDULE}, kd: 20, filters: [{{type: low_pass, frequency: 200}}]",
        f"type: computed_torque, bandwidth: {{gains: [4 Hz, 9 Hz], {TURNING}}}",
        f"type: pid, ki: 30, kd: 20, tracking_time: {{gains: [1 s, 0.2], {TURNING}}}, kp: {SCHEDULE}",
    ],
)
def test_any_controller_takes_them_and_engines_agree(rig_of, controller):
    one, other = (rig_of(text(f"{controller}, {MOVE}"), interpret=k).run(0.05) for k in (False, True))
    np.testing.assert_allclose(other.values, one.values, rtol=1e-9, atol=1e-9)


def test_a_controller_of_the_user_takes_them(rig_of, tmp_path):
    push = "type: push.py, joints: [shoulder], size: 2"
    lines = "effort = ops.array([p.size])"
    with pytest.raises(InputErrors, match="only a number per joint that can change in a run can depend on a signal"):
        scheduled = push.replace("size: 2", "size: {gains: [1, 2], over: {signal: shoulder/position, values: [0, 1]}}")
        rig_of(text(scheduled), push=lines)
    assert rig_of(text(push), push=lines).run(0.1)["shoulder/effort"][-1] == 2.0


def test_other_parameters_can_be_set_and_are_checked_with_all_values(rig_of):
    schedule = "{gains: [4 Hz, 9 Hz], over: {signal: shoulder/velocity, values: [0, 1]}}"
    rig = rig_of(text(f"type: computed_torque, bandwidth: {schedule}, damping: 1"))
    assert "arm.bandwidth" not in rig.parameters and "arm.damping" in rig.parameters
    rig.set("arm.damping", 0.7)
    with pytest.raises(InputErrors, match="bandwidth 9 Hz of joint 'shoulder' is unstable at a period of 1 ms"):
        rig.set("arm.damping", 0.03)  # stable at 4 Hz
    with pytest.raises(InputErrors, match="is fixed while the rig is loaded; load it with the override"):
        rig.set("arm.bandwidth", 3)
