"""The linear-quadratic regulator: its gains against textbook plants, and what it does in a loop."""

import control
import numpy as np
import pytest
from scipy.signal import cont2discrete

from cosim import load_rig
from tests.controllers.arms import MOTION, arm
from tests.kit.engines import python_rows
from tests.kit.refusals import raised

CART, POLE, LENGTH, PERIOD = 2.0, 0.5, 0.8, 0.01
CART_POLE = """
mechanism:
  bodies:
    - {{name: cart, joint: rail, type: prismatic, axis: [1, 0, 0], mass: 2 kg, inertia: [1, 1, 1]}}
    - {{name: pole, parent: cart, joint: pole, axis: [0, 1, 0], mass: 0.5 kg, com: [0, 0, 0.8],
       inertia: [1e-9, 1e-9, 1e-9]}}
joints:
  rail: {{actuator: {{type: ideal}}, limits: {{effort: {effort} N}}}}
  pole: {{initial: {{position: {tilt} deg}}}}
controllers:
  - {{type: lqr, joints: [rail], largest_position_error: 0.2, largest_velocity_error: 1 m/s, passive: {passive}{keys}}}
schedule: {{step: 10 ms, duration: 6 s, integrator: rk4, substeps: 10}}
"""


def cart_pole(rig_of, keys="", effort=40, tilt=8, passive="{pole: 0 deg}"):
    keys = keys and f", {keys}"
    return rig_of(CART_POLE.format(keys=keys, effort=effort, tilt=tilt, passive=passive))


def test_the_gains_of_a_cart_with_a_pole_are_those_of_the_textbook(rig_of):
    """A point mass on a rod upright on a cart (Åström and Murray, Feedback Systems, example 3.2), from the equations
    ẍ = (F − m g θ) / M and l θ̈ = g θ − ẍ for a rod that turns forward with θ; gains by python-control."""
    g = 9.81
    a = np.zeros((4, 4))
    a[0, 2] = a[1, 3] = 1.0
    a[2, 1], a[3, 1] = -POLE * g / CART, (CART + POLE) * g / (CART * LENGTH)
    b = np.array([[0.0], [0.0], [1.0 / CART], [-1.0 / (CART * LENGTH)]])
    a, b, *_ = cont2discrete((a, b, np.eye(4), np.zeros((4, 1))), PERIOD)
    weights = np.diag([1 / 0.2**2, 1 / 0.1**2, 1.0, 0.0])
    expected, _, _ = control.dlqr(a, b, weights, np.array([[1 / 40**2]]))
    block = cart_pole(rig_of).tick_model.loops[0].block
    np.testing.assert_allclose(block.regulator.gains, expected, rtol=1e-6)


def test_a_pole_is_balanced_on_its_cart_by_both_engines(rig_of):
    rig = cart_pole(rig_of)
    run = rig.run()
    assert np.abs(run["pole/position"]).max() < np.deg2rad(8.1)
    assert abs(run["pole/position"][-1]) < 1e-4 and abs(run["rail/position"][-1]) < 1e-3
    np.testing.assert_allclose(python_rows(rig, 10), run.values[:10], rtol=1e-8, atol=1e-8)


def test_the_closed_loop_is_that_of_the_linear_model_for_small_errors(rig_of):
    rig = cart_pole(rig_of, tilt=0.01)
    model, gains = rig.tick_model.loops[0].block.regulator.model, rig.tick_model.loops[0].block.regulator.gains
    run, x = rig.run(1.0), np.array([0.0, np.deg2rad(0.01), 0.0, 0.0])
    loop, states = model.a - model.b @ gains, []
    for _ in run.t:
        states.append(x)
        x = loop @ x
    seen = np.array([run["rail/position"], run["pole/position"], run["rail/velocity"], run["pole/velocity"]])
    np.testing.assert_allclose(seen.T, states, atol=1e-9)


def test_a_late_measurement_is_predicted(rig_of):
    """Measured a period of 40 ms late, the loop without a prediction is unstable for a fast regulator."""
    late = CART_POLE.replace("joints:\n", "joints:\n  all: {{encoder: {{delay: 1}}}}\n")
    late = late.replace("step: 10 ms", "step: 40 ms").replace("substeps: 10", "substeps: 40")
    late = late.replace("largest_position_error: 0.2", "largest_position_error: 0.002")
    ends = []
    for delay in (0, 1):
        text = late.format(keys=f", delay: {delay}", effort=400, tilt=1, passive="{pole: 0 deg}")
        run = rig_of(text).run(3.0)
        ends.append(np.abs(run["pole/position"][-25:]).max())
    without, predicted = ends
    assert predicted < 1e-3 < 10.0 * without


WEIGHTS = "largest_position_error: 1 deg, largest_velocity_error: 20 deg/s, largest_effort: 30"


@pytest.mark.parametrize("integral", ["", ", largest_integral: 0.002"])
def test_the_integral_removes_the_error_under_an_unknown_load(tmp_path, integral):
    controller = f"{{type: lqr, {WEIGHTS}{integral}, {MOTION}}}"
    run = arm(tmp_path, controller, "{step: 6}", duration=3.0).run()
    left = np.abs(run["elbow/reference_position"] - run["elbow/position"])[-1]
    assert left < 1e-6 if integral else left > 1e-3


def test_the_arm_tracks_its_reference_and_engines_agree(tmp_path):
    keys = f"{{type: lqr, {WEIGHTS}, largest_integral: 0.01, delay: 1, at: [0, -20 deg], {MOTION}}}"
    late = ", encoder: {delay: 1}"
    rig = arm(tmp_path, keys, duration=0.5, more=late)
    run = rig.run()
    assert run.summary["joints"]["elbow"]["error_max"] < 1e-2
    np.testing.assert_allclose(python_rows(rig, 30), run.values[:30], rtol=1e-8, atol=1e-8)


def test_the_integral_is_held_while_the_effort_is_at_its_limit(rig_of):
    rig = cart_pole(rig_of, "largest_integral: 0.5", passive="{}", effort=0.5)
    block = rig.tick_model.loops[0].block
    u = {name: np.zeros(signal.shape) for name, signal in block.inputs.items()}
    for position, pushed in ((0.001, True), (1.0, False)):
        u["position"][0] = u["all_position"][0] = position
        state, y = block.update(0.0, block.params, block.initial(), u)
        assert (abs(y["effort"].item()) < 0.5) == pushed
        assert state["integral"].item() == (position * PERIOD if pushed else 0.0)
        # it unwinds where the error pulls back
        behind, y = block.update(0.0, block.params, {"integral": np.array([-9.0])}, u)
        assert y["effort"].item() > 0.5 and behind["integral"].item() == -9.0 + position * PERIOD


def test_weights_are_constants_of_the_code(tmp_path, said):
    rig = arm(tmp_path, f"{{name: arm, type: lqr, {WEIGHTS}}}")
    said(raised(Exception, rig.set, "arm.largest_position_error", 0.1))
    before = rig.tick_model.loops[0].block.regulator.gains
    other = load_rig(tmp_path / "rig.yaml", ["controllers.arm.largest_position_error=0.1 deg"])
    assert np.abs(other.tick_model.loops[0].block.regulator.gains).max() > 2.0 * np.abs(before).max()


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"passive": "{pol: 0}"}, ".passive.pol: there is no joint 'pol'; did you mean 'pole'?"),
        ({"passive": "{rail: 0, pole: 0}"}, ".passive.rail: the controller commands joint 'rail'; take it out"),
        ({"passive": "{pole: upright}"}, ".passive.pole: expected a number, got 'upright'"),
        ({"passive": "{pole: 5 mm}"}, ".passive.pole: unit 'mm' does not fit joint 'pole'; use rad, mrad, deg, turn"),
        ({"passive": "{pole: .nan}"}, ".passive.pole: expected a position in rad, got nan"),
        ({"passive": "{pole: [0]}"}, ".passive.pole: expected a position in rad, got [0]"),
        ({"effort": "inf"}, None),
        ({"keys": "delay: 2"}, ".delay: expected one of 0, 1; got 2"),
        ({"keys": "largest_effort: 0"}, ".largest_effort: must be above 0 N, is 0 N"),
    ],
)
def test_what_cannot_be_is_refused(command, tmp_path, changes, what):
    given = {"keys": "", "effort": 40, "tilt": 1, "passive": "{pole: 0}"} | changes
    given["keys"] = given["keys"] and f", {given['keys']}"
    text = CART_POLE.format(**given)
    if what is None:
        text = text.replace(", limits: {effort: inf N}", "")
        what = ": joint 'rail' has no limit of its effort; give largest_effort"
    (tmp_path / "rig.yaml").write_text(text)
    assert command.refuses("check", "rig.yaml") == [f"rig.yaml:11 controllers[0]{what}"]


def test_closed_loops_are_refused(command, tmp_path):
    text = """mechanism:
  bodies:
    - {name: a, joint: j, axis: [0, 1, 0], mass: 1, com: [0.5, 0, 0], inertia: [1, 1, 1]}
  constraints: [{name: rope, type: distance, between: [base, a], points: [[0, 0, 1], [1, 0, 0]], length: 1.41421356}]
controllers: [{type: lqr, joints: [j], largest_position_error: 1, largest_effort: 1}]
"""
    (tmp_path / "rig.yaml").write_text(text)
    what = "the mechanism has closed loops, which a linear model of free joints lacks; use feedforward_pd"
    assert f"rig.yaml:5 controllers[0]: {what}" in command.refuses("check", "rig.yaml")


def test_masses_of_runs_side_by_side_do_not_change_the_gains(tmp_path):
    rig = arm(tmp_path, f"{{name: arm, type: lqr, {WEIGHTS}, {MOTION}}}")
    masses = {"mechanism.fore.mass": np.array([2.0, 4.0])}
    batch = rig.rollouts(parameters=masses, duration=0.5, metrics=["error_rms"])["error_rms"]
    alone = [joint["error_rms"] for joint in rig.run(0.5).summary["joints"].values()]
    np.testing.assert_allclose(batch[0], alone, rtol=1e-6)
    assert np.abs(batch[1] / batch[0] - 1.0).max() > 0.01
