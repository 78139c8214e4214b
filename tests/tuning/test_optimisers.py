"""Optimisers on problems with known solutions, without runs of a rig where that is possible."""

import numpy as np
import pytest

from cosim import Rig, tune
from cosim.apps.analysis.relay import limit_cycle
from cosim.apps.tuning.gains_by_name import Proposals, joint_gains
from cosim.apps.tuning.optimisers import SearchProblem, load_optimiser
from cosim.apps.tuning.optimisers.relay import RULES
from cosim.apps.tuning.setup import evaluator_of, request_of
from tests.tuning.test_parameters import ARM
from tests.tuning.textbook import turntable


@pytest.fixture(scope="module")
def evaluator():
    return evaluator_of(turntable(), request_of(turntable(), {"parameters": {"arm.kp": "10..1000"}}))


@pytest.mark.parametrize("name", ["de", "tpe"])
def test_the_gains_of_the_rig_are_the_first_proposal(evaluator, name):
    start = np.array([0.3, 0.8])
    positions = load_optimiser(name, SearchProblem(2, start, 0, 6, evaluator)).ask(6)
    np.testing.assert_allclose(positions[0], start)
    assert np.ptp(positions, axis=0).min() > 0.2


def test_a_strategy_that_has_converged_begins_again(evaluator):
    optimiser = load_optimiser("cma", SearchProblem(2, np.array([1.0, 0.0]), 0, 8, evaluator))
    first = optimiser.ask(8)
    assert np.abs(first.mean(axis=0) - [0.95, 0.05]).max() < 0.25
    spreads = []
    for _ in range(120):
        x = optimiser.ask(8)
        optimiser.tell(x, ((x - 0.4) ** 2).sum(axis=1))
        spreads.append(np.ptp(x, axis=0).max())
    converged = int(np.argmin(spreads))
    assert spreads[converged] < 1e-4 and max(spreads[converged:]) > 0.2


def test_a_descent_reaches_the_bottom_of_a_long_valley_at_the_end_of_the_cube(evaluator):
    """Its curvatures differ by a factor of 300, and its lowest point is beyond the lower end of the last position."""
    descent = load_optimiser("gradient", SearchProblem(3, np.array([0.9, 0.9, 0.5]), 0, 8, evaluator))
    turn = np.array([[0.8, 0.6, 0.0], [-0.6, 0.8, 0.0], [0.0, 0.0, 1.0]])
    hessian, bottom = turn @ np.diag([300.0, 1.0, 5.0]) @ turn.T, np.array([0.35, 0.25, -0.3])
    descent._slope = lambda x: hessian @ (x - bottom)
    lowest = np.array([0.35, 0.25, 0.0])
    for _ in range(22):  # steepest descents alone take hundreds
        x = descent.ask(8)
        assert x.min() >= 0.0 and x.max() <= 1.0
        scores = 0.5 * np.einsum("ki,ij,kj->k", x - bottom, hessian, x - bottom)
        descent.tell(x, scores)
        best = x[np.argmin(scores)]
        if np.abs(best - lowest).max() < 1e-3:
            return
    raise AssertionError(best)


def test_proposals_end_with_their_list():
    proposals = Proposals(np.arange(5.0)[:, None])
    assert [proposals.ask(2)[:, 0].tolist() for _ in range(4)] == [[0, 1], [2, 3], [4], []]


def test_the_integral_gain_that_is_not_varied_is_that_of_its_joint():
    rig = Rig.from_dict({**ARM, "controllers": [{**ARM["controllers"][0], "type": "pid", "ki": [3, 7]}]})
    request = request_of(rig, {"parameters": {"arm.kp": "1..9", "arm.kd": "1..9"}})
    gains = joint_gains(evaluator_of(rig, request), "shape")
    assert [(joint.joint, joint.fixed_ki, joint.ki) for joint in gains] == [("shoulder", 3, None), ("elbow", 7, None)]


def test_loop_shaping_tries_crossovers_over_four_decades_with_an_integral_at_a_tenth():
    """Of 1 / s²: |L(jω)| = 1 at the crossover ω = 10 ki / kp."""
    ranges = {"arm.kp": "1e-9..1e9", "arm.ki": "1e-9..1e9", "arm.kd": "1e-9..1e9"}
    session = tune(turntable(), ranges, optimiser="shape", trials=400, duration=0.01)
    kp, ki, kd = np.array([trial.values for trial in session.trials[1:]]).T
    omega = 10.0 * ki / kp
    slow = omega < 30.0
    size = np.abs(kp + ki / (1j * omega) + 1j * omega * kd) / omega**2
    assert slow.sum() > 60 and size[slow] == pytest.approx(1.0, rel=1e-2)
    assert omega.min() == pytest.approx(0.2 * np.pi / 1e-3 * 1e-4, rel=1e-3)
    assert omega.max() > 0.2 * np.pi / 1e-3 * 10.0**-1.5


def test_the_rules_of_a_relay_experiment():
    """Ku and Tu to kp, Ti and Td, as Ziegler and Nichols, Pessen, and Tyreus and Luyben give them."""
    rules = [tuple(rule) for rule in RULES]
    assert rules[:2] == [(0.6, 1 / 2, 1 / 8), (0.7, 0.4, 0.15)] and (0.45, 2.2, 0.16) in rules
    assert (0.33, 0.5, 0.33) in rules and (0.2, 0.5, 0.33) in rules
    assert all(0.0 < kp <= 0.7 and ti > 0.0 and 0.0 < td < ti for kp, ti, td in rules)


def test_a_limit_cycle_is_measured_at_its_last_periods():
    t = np.arange(4000.0)
    growing = np.minimum(0.86 + 0.14 * t / 3000.0, 1.0)
    amplitude, period = limit_cycle(5.0 + 0.2 * growing * np.sin(2.0 * np.pi * t / 100.0))
    assert amplitude == pytest.approx(0.2, rel=1e-3) and period == pytest.approx(100.0, abs=0.5)


@pytest.mark.parametrize(
    ("position", "why"),
    [
        (np.exp(-np.arange(4000.0) / 500.0) * np.sin(np.arange(4000.0) / 15.0), "has no steady oscillation"),
        (np.sin(2.0 * np.pi * np.arange(400.0) / 4.0 + 0.3), "oscillates as fast as the ticks"),
        (np.zeros(400), "has no steady oscillation"),
    ],
)
def test_what_is_no_limit_cycle(position, why):
    with pytest.raises(ValueError, match=f"^{why}$"):
        limit_cycle(position)
