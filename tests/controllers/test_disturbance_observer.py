"""The disturbance observer: constant and periodic disturbances by its transfer function, and saturation."""

import numpy as np
import pytest

from tests.controllers.arms import MOTION, arm
from tests.controllers.test_common import KEYS
from tests.controllers.test_contract import context
from tests.controllers.test_controllers import make

PERIOD = 1e-3


def controller(type="disturbance_observer", keys="observer: 10 Hz", motion="") -> str:
    more = "".join(f", {item}" for item in (keys, motion) if item)
    return f"{{name: arm, type: {type}, bandwidth: 4 Hz{more}}}"


PLAIN = controller("computed_torque", "")


def error(run, joint="elbow") -> np.ndarray:
    return run[f"{joint}/reference_position"] - run[f"{joint}/position"]


def test_a_constant_load_leaves_no_error(tmp_path):
    with_observer = arm(tmp_path, controller(motion=MOTION), "{step: 5}").run()
    plain = arm(tmp_path, controller("computed_torque", "", MOTION), "{step: 5}").run()
    assert abs(error(with_observer)[-1]) < 1e-6 < 1e-2 < abs(error(plain)[-1])


@pytest.mark.parametrize("frequency", [1.0, 3.0, 10.0])
def test_a_periodic_disturbance_is_rejected_as_the_observer_transfers_it(tmp_path, frequency):
    """The errors of computed torque, times 1 − Q: Q is the filter of the observer, a period late."""
    disturbance = f"{{size: 2, frequency: {frequency}}}"
    with_observer = error(arm(tmp_path, controller(), disturbance, duration=4.0).run())
    plain = error(arm(tmp_path, PLAIN, disturbance, duration=4.0).run())
    z, pole = np.exp(-2j * np.pi * frequency * PERIOD), np.exp(-2.0 * np.pi * 10.0 * PERIOD)
    expected = abs(1.0 - (1.0 - pole) * z / (1.0 - pole * z))
    late = slice(2000, 4001)
    assert np.ptp(with_observer[late]) / np.ptp(plain[late]) == pytest.approx(expected, rel=0.02)


def test_without_a_disturbance_the_loop_is_that_of_computed_torque(tmp_path):
    one = arm(tmp_path, controller(motion=MOTION)).run()
    other = arm(tmp_path, controller("computed_torque", "", MOTION)).run()
    np.testing.assert_allclose(one["elbow/position"], other["elbow/position"], atol=2e-4)


def test_a_saturated_effort_is_no_disturbance(tmp_path):
    """The estimate follows the disturbance of 5 N·m while the effort is at its limit in both directions."""
    fast = "trajectory: {type: quintic, goal: [0 deg, -60 deg], duration: 0.1 s}"
    run = arm(tmp_path, controller(motion=fast), "{step: 1}", effort="25", duration=3.0).run()
    assert np.abs(run["elbow/effort"]).max() == pytest.approx(25.0)
    assert abs(error(run)[-1]) < 1e-6
    assert run["elbow/position"].min() > np.deg2rad(-75.0)


def test_the_estimate_is_bounded(tmp_path):
    bounded = arm(tmp_path, controller(keys="disturbance_limit: 2"), "{step: 5}", duration=3.0).run()
    plain = arm(tmp_path, PLAIN, "{step: 3}", duration=3.0).run()
    assert error(bounded)[-1] == pytest.approx(error(plain)[-1], rel=1e-3)


def test_an_observer_that_is_too_fast_is_refused(command, tmp_path):
    arm(tmp_path, controller())
    what = "observer of 500 Hz of joint 'shoulder' is not below half the rate, 500 Hz; lower it, or shorten the period"
    found = command.refuses("check", "rig.yaml", "--set", "controllers.arm.observer=500 Hz")
    assert found[0].endswith(f"controllers[0]: {what}")


def test_the_friction_of_the_drives_is_no_disturbance():
    """The estimate of a second call, at rest before and moving now, with and without the friction of the drive."""
    estimates = []
    for keys in ({}, {"viscous": (2.0, 0.0), "coulomb": (0.0, 3.0)}):
        block = make("disturbance_observer", context(True), **KEYS["disturbance_observer"], **keys)
        velocity = np.array([0.5, -0.25])
        u = {name: np.zeros(signal.shape) for name, signal in block.inputs.items()} | {"velocity": velocity}
        u["all_velocity"][context(True).index] = velocity
        state = block.initial() | {"velocity": velocity, "started": np.ones(1)}
        estimates.append(block.update(0.0, block.params, state, u)[0]["disturbance"])
    gain = 1.0 - np.exp(-2.0 * np.pi * 9.0 * 0.01)
    friction = np.array([1.0, -3.0 * 0.25 / np.hypot(0.25, 0.01)])
    np.testing.assert_allclose(estimates[1] - estimates[0], gain * friction, rtol=1e-9)
