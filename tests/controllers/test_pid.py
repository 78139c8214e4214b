"""The PID controller in a loop: steady state, saturation, noise and setpoint steps."""

import numpy as np
import pytest

from cosim.core.types import ControllerContext, Limits
from cosim.plugins.controllers import pid

# a link of 1.1 kg m² that is lifted: its weight is a load that the proportional loop alone cannot hold
LINK = """
mechanism:
  bodies: [{{name: link, joint: hinge, axis: [0, 1, 0], mass: 1 kg, com: [0.5, 0, 0], inertia: [0.85, 0.85, 0.85]}}]
joints: {{hinge: {{actuator: {{type: ideal}}, limits: {{effort: {effort}}}{encoder}}}}}
controllers:
  - {{type: pid, kp: 60, ki: 60, kd: 16{keys}, trajectory: {{type: {trajectory}}}}}
schedule: {{step: 1 ms, duration: {duration} s}}
"""
STEP = "quintic, goal: 60 deg, duration: 1 ms"


def run(rig_of, keys="", trajectory=STEP, duration=6.0, effort="1000 N*m", encoder=""):
    text = LINK.format(
        effort=effort, keys=keys and f", {keys}", trajectory=trajectory, duration=duration, encoder=encoder
    )
    return rig_of(text).run()


def overshoot(found) -> float:
    return float(np.rad2deg(found["hinge/position"]).max() - 60.0)


def test_the_integral_removes_the_error_under_a_constant_load(rig_of):
    """Without it the weight of 2.5 N·m at the goal leaves an error of 2.3 deg."""
    slow = "quintic, goal: 60 deg, duration: 0.5 s"
    assert abs(run(rig_of, trajectory=slow, duration=12.0)["hinge/position"][-1] - np.deg2rad(60.0)) < 1e-4
    without = run(rig_of, "integral_limit: 0", slow, 12.0)
    assert abs(without["hinge/position"][-1] - np.deg2rad(60.0)) > np.deg2rad(2.0)


def test_back_calculation_recovers_from_saturation_without_overshoot(rig_of):
    """The effort that lifts the link is 4.9 N·m of 8: a step of 60 deg saturates for most of a second."""
    tracked = overshoot(run(rig_of, "tracking_time: 50 ms", effort="8 N*m"))
    clamped = overshoot(run(rig_of, effort="8 N*m"))
    # a tracking time without end integrates like an integral without anti-windup
    wound_up = overshoot(run(rig_of, "tracking_time: 1000000 s", effort="8 N*m"))
    assert tracked < 0.1 and clamped < 0.6 * wound_up


def test_the_weight_of_the_setpoint_lowers_the_overshoot_of_a_step_and_leaves_its_end(rig_of):
    full, reduced = run(rig_of, duration=12.0), run(rig_of, "position_weight: 0.3, velocity_weight: 0", duration=12.0)
    assert overshoot(reduced) < 0.3 * overshoot(full)
    assert abs(reduced["hinge/position"][-1] - np.deg2rad(60.0)) < 1e-4


def test_a_start_away_from_zero_is_no_step_for_a_weighted_setpoint():
    keys = {"kp": (100.0,), "ki": (0.0,), "kd": (0.0,), "integral_limit": (np.inf,), "position_weight": (0.25,)}
    limits = Limits(np.zeros(1), np.zeros(1), np.full(1, 9.0), np.full(1, np.inf))
    block = pid.load(pid.Params(**keys), ControllerContext(("a",), np.zeros(1, int), None, 0.01, limits, np.zeros(1)))
    state, efforts = block.initial(), []
    for reference in (2.0, 2.0, 3.0):
        u = {name: np.zeros(1) for name in block.inputs} | {"reference_position": np.array([reference])}
        state, command = block.update(0.0, block.params, state, u)
        efforts.append(command["effort"].item())
    assert efforts == [0.0, 0.0, -75.0]  # the last with 100 (0.25 − 1) (3 − 2); the drive adds 100 (r − q)


@pytest.mark.parametrize("keys", ["tracking_time: 0.5 ms", "derivative_filter: 500 Hz"])
def test_what_is_too_fast_for_the_period_is_refused(command, tmp_path, keys, said):
    (tmp_path / "rig.yaml").write_text(LINK.format(effort=9, keys=f", {keys}", trajectory=STEP, duration=1, encoder=""))
    said(command.refuses("check", "rig.yaml"))


def test_the_filter_takes_the_noise_of_a_coarse_encoder_out_of_the_effort(rig_of):
    def roughness(keys: str) -> float:
        found = run(rig_of, keys, "quintic, goal: 60 deg, duration: 2 s", 2.0, encoder=", encoder: {cpr: 4096}")
        return float(np.abs(np.diff(found["hinge/effort"][200:])).mean())

    assert roughness("derivative_filter: 30 Hz") < 0.4 * roughness("")
