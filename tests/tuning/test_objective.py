"""Costs, limits, and the order of trials."""

import math

import numpy as np
import pytest

from cosim import Rig, load_rig
from cosim.apps.tuning.objective import read_objective, score_of, summed, worst
from cosim.apps.tuning.setup import evaluator_of
from cosim.rig.sections.tuning import TuningKeys
from tests.kit.refusals import raised
from tests.tuning.test_parameters import ARM
from tests.tuning.textbook import TURNTABLE, turntable


def evaluator(rig, **keys):
    return evaluator_of(rig, TuningKeys(**{"parameters": {"arm.kp": "1..1e6"}, **keys}))


def test_scores_order_trials_by_what_is_wrong_with_them():
    ordered = [
        score_of(0.0, 0.0, 1.0),
        score_of(1e-9, 0.0, 1.0),
        score_of(5.0, 0.0, 1.0),
        score_of(1e9, 0.0, 1.0),
        score_of(1.0, 0.01, 1.0),
        score_of(0.0, 3.0, 1.0),
        score_of(math.inf, 0.0, 1.0),
        score_of(math.inf, 0.0, 0.9),
        score_of(math.inf, 5.0, 0.1),
    ]
    assert ordered == sorted(ordered) and len(set(ordered)) == len(ordered)
    assert ordered[3] < 1.0 <= ordered[4] and ordered[5] < 2.0 < ordered[7]


def test_a_cost_is_the_weighted_sum_over_joints_and_a_limit_is_of_the_worst_joint():
    rig = Rig.from_dict({**ARM, "controllers": [{**ARM["controllers"][0], "type": "pid", "ki": 0}]})
    found = evaluator(rig, minimise={"error_rms": 2, "elbow/effort_max": 0.1}, limits={"error_max": 1.0})
    (outcome,) = found.evaluate(found.space.start[None])
    batch = rig.rollouts({"arm.kp": [[200.0, 100.0]]}, metrics=["error_rms", "effort_max", "error_max"])
    error, effort = batch["error_rms"][0], batch["effort_max"][0]
    assert outcome.cost == pytest.approx(2 * error.sum() + 0.1 * effort[1], rel=1e-12)
    assert outcome.figures["error_max"] == (batch["error_max"].max(),) * 2 and outcome.feasible


def test_the_worst_joint_and_the_sum_are_of_the_joints_that_have_the_figure():
    values = np.array([[1.0, np.nan, 3.0], [np.nan, np.nan, np.nan]])
    np.testing.assert_array_equal(worst(values, False), [3.0, np.nan])
    np.testing.assert_array_equal(worst(values, True), [1.0, np.nan])
    np.testing.assert_array_equal(summed(values), [4.0, np.nan])


def test_a_limit_of_a_signal_is_of_its_largest_absolute_value():
    rig = turntable()
    found = evaluator(rig, limits={"axis/velocity": 5.0})
    (outcome,) = found.evaluate(found.space.start[None])
    peak = float(np.abs(rig.run()["axis/velocity"]).max())
    assert peak > 5.0
    assert (
        outcome.failed == f"axis/velocity is {peak:.4g} rad/s, above its limit of 5 rad/s" and 1.0 < outcome.score < 2.0
    )


def test_a_run_that_is_stopped_fails_with_its_reason_and_a_later_stop_is_nearer():
    rig = turntable(joints={"axis": {"limits": {"lower": -1.05, "upper": 1.05}}})
    found = evaluator(rig, plants={"inertia": "20 %"})
    stiff, soft = found.evaluate(np.array([[1000.0], [1.0]]))
    assert stiff.stopped and stiff.failed.startswith("stopped at tick") and "'axis'" in stiff.failed
    assert stiff.cost == math.inf and stiff.score > 2.0 and soft.score < 1.0


def test_a_run_that_is_stopped_on_a_perturbed_plant_alone_names_it():
    rig = turntable(joints={"axis": {"limits": {"lower": -2, "upper": 1.475}}})
    found = evaluator(rig, plants={"inertia": "30 %"})
    (outcome,) = found.evaluate(np.array([[70.0]]))
    assert outcome.stopped and outcome.failed.endswith(", with inertia ×1.3"), outcome


def test_a_joint_that_never_settles_has_no_cost():
    found = evaluator(turntable(), minimise={"settling_time": 1})
    undamped, damped = found.evaluate(np.array([[1e5], [25.0]]))
    assert undamped.failed == "settling_time is infinite within the run" and undamped.score == 2.0
    assert damped.feasible and 1.0 < damped.cost < 3.0


def test_the_costs_of_the_plants_are_joined_by_the_worst_or_the_mean():
    worst, mean = (
        evaluator(turntable(), plants={"inertia": "20 %"}, robust=how).evaluate(np.array([[100.0]]))[0]
        for how in ("worst", "mean")
    )
    assert worst.costs == mean.costs and worst.cost == max(worst.costs)
    assert mean.cost == pytest.approx(np.mean(worst.costs), rel=1e-14)


def test_margins_are_of_each_plant():
    rig = turntable()
    limits = {"disk_margin": 0.1, "phase_margin": "5 deg", "gain_margin": 1.5}
    found = evaluator(rig, limits=limits, plants={"inertia": 0.5})
    (outcome,) = found.evaluate(np.array([[100.0]]))
    nominal, worst = outcome.figures["phase_margin"]
    crossover = {J: math.sqrt((16 / J**2 + math.sqrt(256 / J**4 + 4e4 / J**2)) / 2) for J in (1.0, 0.5, 1.5)}
    margins = {J: math.atan(4.0 * w / 100.0) for J, w in crossover.items()}  # kd = 4, kp = 100
    assert nominal == pytest.approx(margins[1.0], abs=0.02) and worst == pytest.approx(min(margins.values()), abs=0.02)


def test_margins_are_those_of_the_motion_where_dry_friction_damps_the_loop_at_rest():
    """The reference moves from 0 to 1 s; in motion the loop is the double integrator of the textbook."""
    (table,) = TURNTABLE["mechanism"]["bodies"]
    motion = {"type": "quintic", "start": 0.0, "goal": 1.0, "duration": 1.0}
    rig = turntable(
        mechanism={"bodies": [{**table, "friction": 0.5}]},
        controllers=[{**TURNTABLE["controllers"][0], "trajectory": motion}],
    )
    found = evaluator(rig, limits={"phase_margin": "5 deg"})
    assert found.moments == (0, 499)
    values = np.array([100.0])
    (outcome,) = found.evaluate(values[None])
    at_rest = found.margins(values)["phase_margin"]
    crossover = math.sqrt((16 + math.sqrt(256 + 4e4)) / 2)
    assert outcome.figures["phase_margin"][0] == pytest.approx(math.atan(4.0 * crossover / 100.0), abs=0.02)
    assert at_rest[0, 0] > 2.0 * outcome.figures["phase_margin"][0]


def test_an_unstable_rig_has_the_margin_0():
    rig = turntable(controllers=[{"name": "arm", "type": "pid", "kp": 100.0, "ki": 1000.0, "kd": 4.0}])
    found = evaluator(rig, limits={"disk_margin": 0.2})
    (outcome,) = found.evaluate(np.array([[100.0]]))
    assert outcome.figures["disk_margin"] == (0.0, 0.0)
    assert outcome.failed == "disk_margin is 0, below its limit of 0.2"


def test_a_candidate_that_the_controller_refuses_fails_alone(rig_of):
    source = (
        "mechanism: {bodies: [{name: b, joint: j, mass: 1, inertia: [1, 1, 1]}]}\n"
        "controllers: [{name: arm, type: push.py, trajectory: {type: sine, amplitude: 0.1, frequency: 1}}]\n"
        "schedule: {duration: 0.05}"
    )
    rig = rig_of(source, push="effort = ops.array([p.size])")
    file = rig.spec.path.parent / "push.py"
    check = "def load(params, context):\n    if params.size > 5.0:\n        raise ValueError('too large')\n"
    file.write_text(file.read_text().replace("def load(params, context):\n", check))

    found = evaluator_of(
        load_rig(rig.spec.path), TuningKeys(parameters={"arm.size": "0..10"}, minimise={"effort_rms": 1})
    )
    good, refused = found.evaluate(np.array([[1.0], [6.0]]))
    assert good.feasible and refused.score == 3.0
    assert refused.failed.startswith("refused: cannot be set up: ValueError: too large")


@pytest.mark.parametrize(
    ("minimise", "limits"),
    [
        ({"eror_rms": 1}, {}),
        ({"error_rms": -1}, {}),
        ({"error_rms": "much"}, {}),
        ({"disk_margin": 1}, {}),
        ({}, {"overshoot": None}),
        ({}, {"effort_max": "5 kg"}),
        ({}, {"axis/velocty": 5}),
        ({}, {"iae": math.inf}),
        ({}, {"overshoot": "-5 %"}),
        ({}, {"axis/velocity": -1}),
        ({}, {"disk_margin": 5}),
        ({}, {"axis/phase_margin": "190 deg"}),
    ],
    ids=str,
)
def test_figures_that_do_not_fit(minimise, limits, said):
    said(raised(Exception, read_objective, turntable(), minimise, limits, "worst"))


def test_a_limit_shows_values_in_the_unit_that_it_was_given_in():
    limits = {"phase_margin": "45 deg", "overshoot": "5 %", "effort_max": "20 Ncm", "disk_margin": 0.5}
    objective = read_objective(turntable(), {}, limits, "worst")
    phase, overshoot, effort, disk = objective.limits
    assert phase.breach(0.6872) == "phase_margin is 39.37 deg, below its limit of 45 deg"
    assert overshoot.breach(0.0732) == "overshoot is 7.32 %, above its limit of 5 %"
    assert effort.breach(0.25, "of axis", "as measured") == (
        "effort_max of axis is 25 N·cm as measured, above its limit of 20 N·cm"
    )
    assert disk.breach(math.nan) == "disk_margin is not finite, below its limit of 0.5"
    assert overshoot.breach(0.0500001) == "overshoot is 5.00001 %, above its limit of 5 %"
    assert [limit.condition for limit in objective.limits] == ["≥ 45", "≤ 5", "≤ 20", "≥ 0.5"]
    assert objective.shown(phase.measure, math.pi) == 180.0 and objective.unit(objective.terms[0][0]) == "rad"
