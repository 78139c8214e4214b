"""Model-predictive control: its solver against OSQP, its command against the regulator, and bounds in a loop."""

from typing import Any

import numpy as np
import osqp
import pytest
from scipy import sparse
from scipy.linalg import solve_discrete_are

from cosim.plugins.controllers.mpc import QuadraticProgram
from tests.controllers.arms import MOTION, arm

CART = """
mechanism:
  bodies: [{{name: cart, joint: rail, type: prismatic, axis: [1, 0, 0], mass: 2 kg, inertia: [1, 1, 1]}}]
joints:
  rail: {{actuator: {{type: ideal}}, limits: {{effort: {effort} N, velocity: 1 m/s, lower: -1, upper: {upper}}}}}
controllers:
  - {{name: arm, type: {type}, largest_position_error: 5 cm, largest_velocity_error: 1 m/s{keys}, period: 10 ms,
     trajectory: {{type: quintic, goal: {goal}, duration: 1 ms}}}}
guard: {{actions: {{velocity: warn, position: warn}}}}
schedule: {{step: 1 ms, duration: {duration} s, integrator: rk4}}
"""


def cart(rig_of, type="mpc", keys="", effort=15, upper=1.0, goal=0.8, duration=2.0) -> Any:
    text = CART.format(type=type, keys=keys and f", {keys}", effort=effort, upper=upper, goal=goal, duration=duration)
    return rig_of(text)


def by_osqp(p: Any, q: Any, g: Any, lower: Any, upper: Any) -> np.ndarray:
    solver = osqp.OSQP()
    accuracy = {"eps_abs": 1e-10, "eps_rel": 1e-10, "max_iter": 200000, "verbose": False}
    solver.setup(sparse.csc_matrix(p), q, sparse.csc_matrix(g), lower, upper, **accuracy)
    return np.asarray(solver.solve(raise_error=True).x)


@pytest.mark.parametrize(("n", "m"), [(2, 4), (12, 30)])
def test_the_solver_converges_to_the_solution_of_osqp(n, m):
    rng = np.random.default_rng(n)
    root = rng.normal(size=(n, n))
    p, g = root @ root.T / n + 0.1 * np.eye(n), np.vstack([np.eye(n), rng.normal(size=(m - n, n))])
    program, active = QuadraticProgram(p, g, np.zeros(m), 4000), 0
    for _ in range(6):
        q, lower, upper = 3.0 * rng.normal(size=n), -rng.uniform(0.2, 1.0, m), rng.uniform(0.2, 1.0, m)
        expected = by_osqp(p, q, g, lower, upper)
        found, state = program.solve(q, lower, upper, program.initial())
        np.testing.assert_allclose(found, expected, atol=1e-4)
        again, _ = program.solve(q, lower, upper, state)  # from the state of the solution
        np.testing.assert_allclose(again, expected, atol=1e-7)
        active += int(np.sum(np.abs(g @ found - np.clip(g @ found, lower + 1e-6, upper - 1e-6)) > 0))
    assert active > 6


def test_without_active_bounds_the_solution_is_exact():
    program = QuadraticProgram(np.diag([2.0, 8.0]), np.eye(2), np.zeros(2), 1)
    x, state = program.solve(np.array([-1.0, 4.0]), -np.ones(2), np.ones(2), np.array([9.0, -9.0, 5.0, 5.0]))
    np.testing.assert_allclose(x, [0.5, -0.5], rtol=1e-15)
    np.testing.assert_array_equal(state[2:], 0.0)


def test_without_active_bounds_the_command_is_that_of_the_regulator(tmp_path):
    weights = "largest_position_error: 1 deg, largest_velocity_error: 20 deg/s, largest_effort: 30"
    one, other = (arm(tmp_path, f"{{type: {type}, {weights}, {MOTION}}}").run() for type in ("mpc", "lqr"))
    assert set(one.signals) - set(other.signals) == {"mpc/predicted_cost"}
    for name in other.signals:
        np.testing.assert_allclose(one[name], other[name], rtol=1e-8, atol=1e-8)


def test_the_limits_are_kept_where_the_regulator_violates_them(rig_of):
    regulator, predictive = (cart(rig_of, type).run() for type in ("lqr", "mpc"))
    assert np.abs(regulator["rail/velocity"]).max() > 1.2
    assert np.abs(predictive["rail/velocity"]).max() < 1.0
    assert np.abs(predictive["rail/effort"]).max() <= 15.0 + 1e-9
    assert abs(predictive["rail/position"][-1] - 0.8) < 1e-3


def test_a_position_bound_is_kept(rig_of):
    """The goal is at 0.8 m, and the upper limit at 0.7 m, less 2 % of the range of 1.7 m."""
    run = cart(rig_of, upper=0.7, duration=3.0).run()
    assert run["rail/position"].max() < 0.7
    assert run["rail/position"][-1] == pytest.approx(0.7 - 0.02 * 1.7, abs=0.015)


def test_the_command_is_that_of_osqp_on_the_whole_horizon(rig_of):
    """The program, written out again with a variable for each state of the horizon, along a run at its bounds."""
    rig = cart(rig_of, effort=8)
    run, block = rig.run(), rig.tick_model.loops[0].block
    model, steps = block.regulator.model, 10
    q, r = map(np.diag, block.regulator.weights)
    last = solve_discrete_are(model.a, model.b, q, r)
    cost = sparse.block_diag([*[q] * (steps - 1), last, *[r] * steps])
    moves = sparse.eye(2 * steps) - sparse.kron(sparse.eye(steps, k=-1), model.a)
    dynamics = sparse.hstack([moves, -sparse.kron(sparse.eye(steps), model.b)])
    rows = sparse.vstack([dynamics, sparse.eye(3 * steps)])
    errors, bound = [], 0
    for k in range(20, 1000, 20):
        error = np.array([run["rail/position"][k] - 0.8, run["rail/velocity"][k]])
        start = np.concatenate([model.a @ error, np.zeros(2 * steps - 2)])
        room = 0.02 * 2.0
        lowest = np.tile([-1.0 + room - 0.8, -0.98], steps)
        highest = np.tile([1.0 - room - 0.8, 0.98], steps)
        lower = np.concatenate([start, lowest, np.full(steps, -8.0)])
        upper = np.concatenate([start, highest, np.full(steps, 8.0)])
        expected = by_osqp(cost, np.zeros(3 * steps), rows, lower, upper)[2 * steps]
        errors.append(abs(run["rail/effort"][k] - expected))
        bound += abs(expected) > 7.99
    # 50 iterations per call: the solution converges along the run, and lags where the set of active bounds changes
    assert np.mean(errors) < 0.05 and np.quantile(errors, 0.9) < 0.1 and max(errors) < 2.0
    assert bound > 10


def test_the_observer_removes_the_error_under_an_unknown_load(tmp_path):
    weights = "largest_position_error: 1 deg, largest_velocity_error: 20 deg/s"
    left = []
    for observer in ("", ", observer: 5 Hz"):
        run = arm(
            tmp_path, f"{{type: mpc, {weights}{observer}, {MOTION}}}", "{step: 6}", effort="40", duration=3.0
        ).run()
        left.append(abs(run["elbow/reference_position"] - run["elbow/position"])[-1])
    assert left[1] < 1e-6 < 1e-3 < left[0]


@pytest.mark.parametrize("keys", ["horizon: 0", "horizon: 51", "margin: 0.6", "observer: 50 Hz"])
def test_what_cannot_be_is_refused(command, tmp_path, keys, said):
    text = CART.format(type="mpc", keys=f", {keys}", effort=9, upper=1, goal=0.5, duration=1)
    (tmp_path / "rig.yaml").write_text(text)
    said(command.refuses("check", "rig.yaml"))


def test_joints_without_limits_are_refused(command, tmp_path, said):
    text = CART.format(type="mpc", keys=", largest_effort: 9", effort=9, upper=1, goal=0.5, duration=1)
    lines = [line for line in text.splitlines() if "limits" not in line and not line.startswith("joints")]
    (tmp_path / "rig.yaml").write_text("\n".join(lines))
    said(command.refuses("check", "rig.yaml"))


def test_runs_side_by_side_equal_single_ones(rig_of):
    """The iterations are a loop in SIMD lanes too."""
    rig = cart(rig_of, keys="observer: 5 Hz, filters: [{type: low_pass, frequency: 40}]", effort=8)
    values = np.array([[5.0], [2.0], [1.0]])
    batch = rig.rollouts(parameters={"arm.observer": values}, duration=0.5, metrics=["error_rms"])["error_rms"]
    for row, (observer,) in zip(batch, values, strict=True):
        alone = rig.run(0.5, parameters={"arm.observer": float(observer)}).summary["joints"]["rail"]["error_rms"]
        np.testing.assert_allclose(row[0], alone, rtol=1e-6)
    assert np.ptp(batch[:, 0]) > 1e-9
