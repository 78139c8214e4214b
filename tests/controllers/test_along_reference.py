"""The gains of `lqr` and the programs of `mpc` along the reference, against one linearisation and known solutions."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.linalg import expm

from cosim.apps.analysis.linearisation import linearise
from cosim.plugins.controllers._along_reference import costs_to_go, gains_of
from tests.controllers.arms import arm
from tests.kit.engines import python_rows
from tests.kit.refusals import raised
from tests.kit.rigs import rig_in

WEIGHTS = "largest_position_error: 5 deg, largest_effort: 10"
FAST = "trajectory: {type: quintic, goal: [220 deg, -170 deg], duration: 0.5 s}"
ROBOT = Path(__file__).parents[2] / "rigs" / "robots" / "ur5.urdf"
UR5 = """
mechanism: ROBOT
joints:
  all: {actuator: {type: ideal}}
  shoulder_lift_joint: {initial: {position: -90 deg}}
controllers:
  - {type: lqr, largest_position_error: 5 deg, largest_effort: 10, along: ALONG,
     trajectory: {type: quintic, goal: [90 deg, 0 deg, 120 deg, 0, 60 deg, 0], duration: 0.6 s}}
schedule: {step: 1 ms, duration: 0.6 s, integrator: rk4}
guard: {actions: {velocity: warn, effort: warn, position: warn}}
"""


def moving(folder, kind="lqr", along="reference", keys="", motion=FAST, duration=0.6) -> Any:
    controller = f"{{name: arm, type: {kind}, {WEIGHTS}, along: {along}{keys}, {motion}}}"
    return arm(folder, controller, effort="2000", duration=duration)


def error_rms(run):
    misses = [run[f"{name}/reference_position"] - run[f"{name}/position"] for name in run.rig.joints]
    return float(np.sqrt(np.mean(np.square(misses))))


def test_the_riccati_equation_of_a_unit_integrator_gives_ratios_of_fibonacci_numbers():
    """a = b = q = r = 1 from P = 1: P = 1 + P / (1 + P) is 3/2, 8/5, 21/13 (Bertsekas, Dynamic Programming, §3.1)."""
    one = np.eye(1)
    found = costs_to_go(np.array([0, 3]), [(one, one)] * 2, one, one, one, {0, 1, 2, 3})
    assert [found[k].item() for k in (3, 2, 1, 0)] == pytest.approx([1.0, 3 / 2, 8 / 5, 21 / 13])


def test_the_cost_over_models_that_change_is_the_least_of_all_corrections():
    """Against the least squares over all corrections of the horizon at once."""
    rng, steps = np.random.default_rng(4), 6
    systems = [(rng.normal(size=(3, 3)), rng.normal(size=(3, 2))) for _ in range(3)]
    begins, q, r, last = np.array([0, 2, 6]), np.diag([1.0, 2.0, 0.5]), np.diag([0.3, 0.7]), np.diag([4.0, 1.0, 2.0])
    x = rng.normal(size=3)
    errors = [(x, np.zeros((3, 2 * steps)))]
    for k in range(steps):
        a, b = systems[k // 2 if k < 2 else 1]
        free, forced = errors[-1]
        forced = a @ forced
        forced[:, 2 * k : 2 * k + 2] += b
        errors.append((a @ free, forced))
    weights = [q] * steps + [last]
    hessian = np.kron(np.eye(steps), r) + sum(f.T @ w @ f for w, (_, f) in zip(weights, errors, strict=True))
    slope = sum(f.T @ w @ e for w, (e, f) in zip(weights, errors, strict=True))
    least = sum(e @ w @ e for w, (e, _) in zip(weights, errors, strict=True)) - slope @ np.linalg.solve(hessian, slope)
    costs = costs_to_go(begins, systems, q, r, last, {0, 1})
    assert x @ costs[0] @ x == pytest.approx(least, rel=1e-9)
    first = -np.linalg.solve(hessian, slope)[:2]
    np.testing.assert_allclose(-gains_of(systems[0], costs[1], r) @ x, first, rtol=1e-8)


def test_a_fast_large_motion_is_tracked_better_than_with_one_linearisation(tmp_path):
    """The error falls by 19 % as measured."""
    one, along = (error_rms(moving(tmp_path, along=along).run()) for along in ("state", "reference"))
    assert along < 0.85 * one


def test_a_fast_large_motion_of_a_ur5_is_tracked_better(tmp_path):
    """The error falls by 32 % as measured."""
    text = UR5.replace("ROBOT", f"{{urdf: {ROBOT}}}")
    one, along = (error_rms(rig_in(tmp_path, text.replace("ALONG", along)).run()) for along in ("state", "reference"))
    assert along < 0.75 * one


@pytest.mark.parametrize("kind", ["lqr", "mpc"])
def test_a_reference_at_rest_gives_the_gains_of_one_state(tmp_path, kind):
    still = "trajectory: {type: quintic, goal: [-30 deg, 50 deg], duration: 0.5 s}"
    one, along = (
        moving(tmp_path, kind, along, motion=still).tick_model.loops[0].block for along in ("state", "reference")
    )
    assert len(along.regulator.table.items) > 100 and len(one.regulator.table.items) == 1
    items = (along.table if kind == "mpc" else along.regulator.table).items
    expected = (one.table if kind == "mpc" else one.regulator.table).items[0]
    for item in (items[0], items[-1]):
        for name, values in expected.items():
            largest = np.abs(values).max(initial=0.0)
            np.testing.assert_allclose(item[name], values, rtol=1e-6, atol=1e-9 * largest, err_msg=name)


def test_without_a_trajectory_it_is_the_state_at_the_start(tmp_path):
    weights = f"{{name: arm, type: lqr, {WEIGHTS}, along: "
    blocks: list[Any] = [
        arm(tmp_path, weights + along + "}").tick_model.loops[0].block for along in ("state", "reference")
    ]
    one, along = (block.regulator.table.items for block in blocks)
    assert len(along) == 1
    np.testing.assert_array_equal(along[0]["gains"], one[0]["gains"])


def test_the_model_has_the_velocities_and_accelerations_of_the_reference(tmp_path):
    """A step of the model against differences of the forward dynamics about the reference in the middle of a motion."""
    rig = moving(tmp_path)
    loop = rig.tick_model.loops[0]
    stages, model, h = loop.block.regulator.stages, rig.plant.model, 1e-6
    number = len(stages.begins) // 2
    t = 0.5 * (stages.begins[number] + stages.begins[number + 1]) * 1e-3
    q, v, a = (np.asarray(loop.trajectory.sample(t)[name]) for name in ("position", "velocity", "acceleration"))
    effort = model.inverse_dynamics(q, v, a, t)
    by_state = np.zeros((2, 4))
    for k, step in enumerate(h * np.eye(4)):
        ends = [model.forward_dynamics(q + s * step[:2], v + s * step[2:], effort, t) for s in (1.0, -1.0)]
        by_state[:, k] = (ends[0] - ends[1]) / (2.0 * h)
    flow = np.vstack([np.hstack([np.zeros((2, 2)), np.eye(2)]), by_state])
    expected = expm(1e-3 * flow)
    assert np.abs(by_state[:, 2:]).max() > 1.0
    np.testing.assert_allclose(stages.models[number].a, expected, atol=1e-6)


def test_without_active_bounds_mpc_is_lqr(tmp_path):
    """At the programs that the table of `mpc` has, the first correction equals the `lqr` gains'."""
    regulator, predictive = (moving(tmp_path, kind).tick_model.loops[0].block for kind in ("lqr", "mpc"))
    error = np.array([1e-3, -2e-3, 4e-3, 1e-2])
    u = {name: np.zeros(signal.shape) for name, signal in predictive.inputs.items()}
    for t in (0.0, 0.25, 0.5, 9.0):
        begins = predictive.table.begins
        at = begins[max(int(np.searchsorted(begins, t, side="right")) - 1, 0)] + 1e-4
        now = predictive.table(at)
        found, _, _ = predictive._correction(now, error, np.zeros(2), predictive.program.initial(), u)
        np.testing.assert_allclose(found, -regulator.regulator.table(at)["gains"] @ error, rtol=1e-6)


@pytest.mark.parametrize(
    ("kind", "keys"), [("lqr", ", largest_integral: 0.01, delay: 1"), ("mpc", ", observer: 5 Hz, horizon: 4")]
)
def test_engines_agree(tmp_path, kind, keys):
    rig = moving(tmp_path, kind, keys=keys, duration=0.03)
    np.testing.assert_allclose(python_rows(rig, 31), rig.run().values, rtol=1e-7, atol=1e-7)


def test_a_gradient_goes_through_the_gains(tmp_path):
    """The gains stay as the rig was loaded, as in runs side by side."""
    rig, name, h = moving(tmp_path, duration=0.2), "mechanism.fore.mass", 1e-4
    slope = rig.gradient("error_rms", [name])[name]
    batch = rig.rollouts(parameters={name: np.array([2.0 - h, 2.0 + h])}, duration=0.2, metrics=["error_rms"])
    low, high = np.sum(batch["error_rms"], axis=1)
    assert np.sum(slope) == pytest.approx((high - low) / (2.0 * h), rel=1e-3)


def test_the_linearised_loop_has_the_gains_of_its_time(tmp_path):
    """The fastest pole of the closed loop in the middle of the motion, about one linearisation and along."""
    loops = [linearise(moving(tmp_path, along=along), at=0.25) for along in ("state", "reference")]
    poles = [np.linalg.eigvals(loop.A) for loop in loops]
    assert all(np.isfinite(found).all() and np.abs(found).max() < 1.01 for found in poles)
    assert abs(np.abs(poles[0]).min() - np.abs(poles[1]).min()) > 1e-6


@pytest.mark.parametrize(
    ("keys", "motion", "place"),
    [(", at: [0, 0]", FAST, ".at"), ("", "trajectory: {type: sine, amplitude: 5 deg, frequency: 1 Hz}", "")],
    ids=str,
)
def test_what_cannot_be_is_refused(tmp_path, keys, motion, place, said):
    said(raised(Exception, moving, tmp_path, keys=keys, motion=motion))
