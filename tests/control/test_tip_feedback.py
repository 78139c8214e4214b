"""Feedback of the motor and of the tip of a flexible link: the sample rig single_link_tip."""

import numpy as np
import pytest

from cosim import load_rig

GOAL = np.deg2rad(60.0)


@pytest.fixture(scope="module")
def error():
    """(largest error [rad] of the angle of the tip from 1 s to 2 s, from 3 s on) for a part of the tip and a kp."""
    rig = load_rig("rigs/elastic/single_link_tip.yaml")

    def errors(tip: float, kp: float) -> tuple[float, float]:
        run = rig.run(parameters={"tip_feedback.tip": tip, "tip_feedback.kp": kp})
        angle = np.arctan2(run["tip.y/position"], run["tip.x/position"])
        wrong = np.abs(np.angle(np.exp(1j * (angle - GOAL))))
        return float(wrong[(run.t > 1.0) & (run.t < 2.0)].max()), float(wrong[run.t > 3.0].max())

    return errors


def test_feedback_of_the_tip_settles_sooner_at_the_gains_of_the_rig(error) -> None:
    (motor, _), (tip, rest) = error(0.0, 30.0), error(1.0, 30.0)
    assert tip < 0.7 * motor
    assert rest < 1e-4


@pytest.mark.parametrize("kp", [200.0, 400.0])
def test_the_loop_of_the_tip_has_a_limit_that_the_loop_of_the_motor_has_not(error, kp: float) -> None:
    (early, late), (_, unstable) = error(0.0, kp), error(1.0, kp)
    assert late < 0.5 * early
    assert unstable > 1.0


def test_a_stiff_loop_of_the_motor_leaves_the_link_swinging(error) -> None:
    assert error(0.0, 400.0)[1] > 50.0 * error(0.0, 100.0)[1]
