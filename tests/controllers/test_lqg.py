"""Linear-quadratic-Gaussian control: the filter against python-control and against its covariance, and the loop."""

import control
import numpy as np
import pytest

from tests.controllers.arms import MOTION, arm
from tests.controllers.test_lqr import CART_POLE

WEIGHTS = "largest_position_error: 1 deg, largest_velocity_error: 20 deg/s, largest_effort: 30"
NOISE = "position_noise: 0.001, effort_noise: 1"
NOISY = ", encoder: {noise: 0.001}"


def lqg(keys=NOISE, motion=MOTION) -> str:
    return f"{{name: arm, type: lqg, {WEIGHTS}, {keys}, {motion}}}"


def test_the_gains_are_those_of_python_control(tmp_path):
    block = arm(tmp_path, lqg()).tick_model.loops[0].block
    model = block.regulator.model
    c = np.eye(2, 4)
    expected, _, _ = control.dlqe(model.a, model.disturbed, c, np.eye(2), 1e-6 * np.eye(2))
    np.testing.assert_allclose(model.a @ block.gain, expected, rtol=1e-6)


def test_the_estimate_has_the_covariance_that_the_filter_expects(tmp_path):
    """The linear system with its noise, and the filter beside it: the error of the estimate of the velocity."""
    block = arm(tmp_path, lqg()).tick_model.loops[0].block
    model, rng = block.regulator.model, np.random.default_rng(3)
    x, predicted, errors = np.zeros(4), np.zeros(4), []
    for _ in range(20000):
        estimate = predicted + block.gain @ (x[:2] + 1e-3 * rng.normal(size=2) - predicted[:2])
        errors.append(x - estimate)
        effort = -block.regulator.gains @ estimate
        x = model.a @ x + model.b @ effort + model.disturbed @ rng.normal(size=2)
        predicted = model.a @ estimate + model.b @ effort
    p = np.asarray(control.dare(model.a.T, np.eye(2, 4).T, model.disturbed @ model.disturbed.T, 1e-6 * np.eye(2))[0])
    after = p - block.gain @ p[:2]
    np.testing.assert_allclose(np.std(errors[1000:], axis=0), np.sqrt(np.diag(after)), rtol=0.1)


def test_a_noisy_encoder_moves_the_effort_less_than_in_a_regulator_on_measured_states(tmp_path):
    def roughness(controller: str) -> float:
        run = arm(tmp_path, controller, more=NOISY).run()
        return float(np.abs(np.diff(run["elbow/effort"][100:])).mean())

    assert roughness(lqg()) < 0.2 * roughness(f"{{type: lqr, {WEIGHTS}, {MOTION}}}")


@pytest.mark.parametrize("load", ["", ", load_noise: 50"])
def test_the_estimate_of_the_load_removes_the_error(tmp_path, load):
    run = arm(tmp_path, lqg(NOISE + load), "{step: 6}", duration=3.0).run()
    left = np.abs(run["elbow/reference_position"] - run["elbow/position"])[-1]
    assert left < 1e-6 if load else left > 1e-3


def test_the_load_is_estimated_while_the_effort_is_at_its_limit(tmp_path):
    """The filter knows the limit: it takes what is missing for no load, and is back without a long overshoot."""
    held = lqg(NOISE + ", load_noise: 50", "trajectory: {type: quintic, goal: [0 deg, 40 deg], duration: 50 ms}")
    run = arm(tmp_path, held, effort="45", duration=3.0).run()
    assert np.abs(run["elbow/effort"]).max() == pytest.approx(45.0)
    assert abs(run["elbow/reference_position"] - run["elbow/position"])[-1] < 1e-6


def test_a_pole_is_balanced_from_positions_alone(rig_of):
    keys = ", position_noise: 1e-4, effort_noise: 0.5"
    text = CART_POLE.format(keys=keys, effort=40, tilt=5, passive="{pole: 0 deg}").replace("type: lqr", "type: lqg")
    run = rig_of(text).run()
    assert np.abs(run["pole/position"]).max() < np.deg2rad(5.1) and abs(run["pole/position"][-1]) < 1e-4


def test_noise_must_be_declared(command, tmp_path):
    text = CART_POLE.format(keys="", effort=40, tilt=5, passive="{}").replace("type: lqr", "type: lqg")
    (tmp_path / "rig.yaml").write_text(text)
    place = "rig.yaml:11 controllers[0]: missing key"
    assert command.refuses("check", "rig.yaml") == [f"{place} 'position_noise'", f"{place} 'effort_noise'"]
