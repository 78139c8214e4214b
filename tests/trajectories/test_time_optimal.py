"""Time-optimal motions: closed forms of one axis, a linear program of the path, limits of a real arm, errors."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import lil_array

from cosim.core.compile import ArrayPort, compile
from cosim.core.types import Limits, TrajectoryContext
from cosim.mechanics.multibody import Model
from cosim.mechanics.multibody.description.urdf import parse_urdf
from cosim.plugins.trajectories import _fastest, time_optimal
from cosim.plugins.trajectories._fastest import PathLimits, PathTrajectory
from tests.kit.messages import Said
from tests.kit.refusals import raised, refusal

UR5 = Path(__file__).parents[2] / "rigs" / "robots" / "ur5.urdf"
INF = math.inf
KEYS = ("position", "velocity", "acceleration")


def axis(direction: str, friction: str = "") -> Model:
    """A mass of 2 kg on a rail."""
    return Model(
        parse_urdf(
            '<robot name="axis"><link name="base"/><link name="cart"><inertial><mass value="2"/>'
            '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>'
            '<joint name="rail" type="prismatic"><parent link="base"/><child link="cart"/>'
            f'<axis xyz="{direction}"/>{friction}<limit lower="-9" upper="9" effort="100" velocity="100"/></joint>'
            "</robot>"
        )
    )


def planned(
    model: Model, points: Any, effort: float | None = INF, velocity: float = INF, start: Any = None, **keys: Any
) -> PathTrajectory:
    """effort: of all joints, None: the model's."""
    start = model.neutral() if start is None else np.array(start)
    n = model.nv
    limits = model.limits if effort is None else Limits(*np.outer((-INF, INF, velocity, effort), np.ones(n)))
    context = TrajectoryContext(np.arange(n), model, start, limits)
    per_joint = {key: (value,) * n if key.startswith("max") else value for key, value in keys.items()}
    params = time_optimal.Params(points=tuple(tuple(point) for point in points), **per_joint)
    return time_optimal.load(params, model.joint_names, Path(), start, context)


def motion(trajectory: PathTrajectory, count: int = 20001) -> dict[str, np.ndarray]:
    def sampled(t: Any) -> Any:
        return tuple(trajectory.sample(t)[key] for key in KEYS)

    t = np.linspace(0.0, trajectory.end, count)
    return dict(zip(KEYS, compile(sampled, [ArrayPort("t", ())])(t), strict=True)) | {"t": t}


def test_the_double_integrator_is_bang_bang() -> None:
    """1.5 m with |a| ≤ 10 N / 2 kg: 2 √(d / a)."""
    trajectory = planned(axis("1 0 0"), [[1.5]], effort=10.0)
    assert trajectory.end == pytest.approx(2.0 * math.sqrt(1.5 / 5.0), rel=1e-6)
    acceleration = motion(trajectory)["acceleration"][1:-1, 0]
    np.testing.assert_allclose(np.abs(acceleration), 5.0, rtol=2e-6)
    assert (acceleration[:9990] > 0.0).all() and (acceleration[10010:] < 0.0).all()


def test_gravity_makes_rise_and_fall_differ() -> None:
    """Up with 30 N and 19.62 N of weight: a = 5.19, braking 24.81 m/s²."""
    trajectory = planned(axis("0 0 1"), [[1.0]], effort=30.0)
    up, down = (30.0 - 19.62) / 2.0, (30.0 + 19.62) / 2.0
    assert trajectory.end == pytest.approx(math.sqrt(2.0 * (1.0 / up + 1.0 / down)), rel=1e-5)


def test_a_limit_of_velocity_makes_a_trapezoid() -> None:
    trajectory = planned(axis("1 0 0"), [[2.0]], effort=10.0, max_velocity=(1.0,))
    assert trajectory.end == pytest.approx(2.0 / 1.0 + 1.0 / 5.0, rel=1e-4)
    assert motion(trajectory)["velocity"].max() == pytest.approx(1.0, rel=1e-6)


@pytest.mark.parametrize(("own", "velocity"), [(None, 0.95), ((1.0,), 1.0), ((9.0,), 1.0), ((0.4,), 0.4)])
def test_the_limit_of_the_joint_is_not_used_up_unless_told(own: Any, velocity: float) -> None:
    """Its guard stops a run at 1 m/s."""
    keys: Any = {} if own is None else {"max_velocity": own}
    trajectory = planned(axis("1 0 0"), [[2.0]], effort=10.0, velocity=1.0, **keys)
    assert motion(trajectory)["velocity"].max() == pytest.approx(velocity, rel=1e-6)
    assert trajectory.end == pytest.approx(2.0 / velocity + velocity / 5.0, rel=1e-4)


def test_limits_of_acceleration_act_like_those_of_effort() -> None:
    by_effort = planned(axis("1 0 0"), [[1.5]], effort=10.0)
    by_acceleration = planned(axis("1 0 0"), [[1.5]], max_acceleration=5.0)
    assert by_acceleration.end == pytest.approx(by_effort.end, rel=1e-9)


def test_the_fraction_of_the_effort_is_left_for_feedback() -> None:
    trajectory = planned(axis("1 0 0"), [[1.5]], effort=10.0, effort_fraction=0.64)
    assert trajectory.end == pytest.approx(2.0 * math.sqrt(1.5 / 3.2), rel=1e-6)


def test_viscous_friction_is_part_of_the_effort(monkeypatch: pytest.MonkeyPatch) -> None:
    """2 v̇ + 4 v = ±10 N. With k = 2 and w = 2.5 m/s: v = w (1 − e^{−kt}) until it brakes along −w + (w + v) e^{−kt};
    the switch is where the distances sum to 3 m. The effort is below its limit within each piece: a fine grid helps."""
    k, w = 2.0, 2.5

    def distances(t: float) -> tuple[float, float]:
        v = w * (1.0 - math.exp(-k * t))
        brake = math.log((w + v) / w) / k
        return w * t - v / k + (v / k - w * brake), t + brake

    low, high = 0.0, 10.0
    for _ in range(100):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if distances(middle)[0] < 3.0 else (low, middle)
    errors = []
    for grid in (500, 2000):
        monkeypatch.setattr(_fastest, "GRID", grid)
        trajectory = planned(axis("1 0 0", '<dynamics damping="4"/>'), [[3.0]], effort=10.0)
        errors.append(trajectory.end / distances(low)[1] - 1.0)
    assert 0.0 < errors[1] < 0.3 * errors[0] and errors[1] < 2e-3


def test_the_delay_and_the_ends_are_at_rest() -> None:
    trajectory = planned(axis("1 0 0"), [[1.5]], effort=10.0, delay=0.4)
    assert trajectory.end == pytest.approx(0.4 + 2.0 * math.sqrt(0.3), rel=1e-6)
    for t, position in ((0.0, 0.0), (0.3999, 0.0), (trajectory.end, 1.5), (9.0, 1.5)):
        sample = trajectory.sample(t)
        np.testing.assert_allclose(sample["position"], position, atol=1e-12)
        np.testing.assert_allclose(sample["velocity"], 0.0, atol=1e-6)


START = (0.0, -1.0, 1.0, 0.0, 0.0, 0.0)
POINTS = ((1.0, -1.5, 1.5, -1.0, 1.0, 0.5), (0.5, -0.5, 0.3, -0.5, 0.2, 2.0))


def ur5() -> Model:
    return Model.from_urdf(UR5)


def linear_program(limits: PathLimits) -> np.ndarray:
    """x (N + 1,) of the largest sum that keeps the rows at both ends of each piece: no other is larger anywhere."""
    count, m = len(limits.s), limits.a.shape[1]
    rows = lil_array((2 * (count - 1) * m, count))
    bounds = []
    for i, step in enumerate(np.diff(limits.s)):
        for end in (i, i + 1):
            by_u = limits.a[end] / (2.0 * step)  # u = (x of the next - x) / 2 step
            for k in range(m):
                row = len(bounds)
                rows[row, i] += -by_u[k]
                rows[row, i + 1] += by_u[k]
                rows[row, end] += limits.b[end, k]
                bounds.append(limits.h[end, k])
    top = [(0.0, min(x, 1e9)) for x in limits.largest]
    top[0] = top[-1] = (0.0, 0.0)
    found = linprog(-np.ones(count), rows.tocsr(), bounds, bounds=top, method="highs")
    assert found.status == 0, found.message
    return found.x


def duration(s: np.ndarray, x: np.ndarray) -> float:
    return float((2.0 * np.diff(s) / (np.sqrt(x[1:]) + np.sqrt(x[:-1]))).sum())


def test_the_profile_is_the_solution_of_a_linear_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_fastest, "GRID", 100)
    model = ur5()
    context = TrajectoryContext(np.arange(6), model, np.array(START), model.limits)
    points = np.array([START, *POINTS])
    dynamics = _fastest.PathDynamics(
        context, time_optimal._path(points, np.linalg.norm(np.diff(points, axis=0), axis=1))
    )
    own = model.limits
    for limits in (
        _fastest.MotionLimits(own.velocity, np.full(6, INF), own.effort, "max_acceleration"),
        _fastest.MotionLimits(own.velocity, np.full(6, 8.0), 0.6 * own.effort, "max_acceleration"),
    ):
        rows = dynamics.limits(limits, np.zeros(len(dynamics.s)), 0.0)
        x, _ = rows.fastest()
        # near points without inertia along the path neither profile is larger everywhere
        reference = linear_program(rows)
        np.testing.assert_allclose(x, reference, rtol=1e-3, atol=1e-6)
        assert np.median(np.abs(x - reference)) < 1e-5
        assert duration(rows.s, x) == pytest.approx(duration(rows.s, reference), rel=1e-5)


def test_points_are_passed_and_no_limit_of_a_real_arm_is_exceeded_and_one_is_always_reached() -> None:
    model = ur5()
    trajectory = planned(model, POINTS, effort=None, start=START)
    found = motion(trajectory)
    effort = model.inverse_dynamics(*(found[key] for key in KEYS)) + model.friction_effort(found["velocity"])
    used = np.concatenate(
        [np.abs(effort) / model.limits.effort, np.abs(found["velocity"]) / (0.95 * model.limits.velocity)], axis=1
    ).max(axis=1)
    assert used.max() < 1.0 + 2e-6
    assert np.quantile(used, 0.02) > 0.995
    for point in (START, *POINTS):
        assert np.abs(found["position"] - point).max(axis=1).min() < 2e-3


@pytest.mark.parametrize(
    "keys",
    [
        {"points": [[1.0]], "velocity": 2.0},
        {"points": [[1.0]], "effort": 15.0},
        {"points": [[0.0]], "effort": 30.0},
        {"points": [[1.0], [1.0]], "effort": 30.0},
    ],
    ids=str,
)
def test_motions_that_cannot_be_planned_are_refused(keys: dict[str, Any], said: Said) -> None:
    said(refusal(planned, axis("0 0 1"), **keys))


def test_points_are_needed() -> None:
    assert str(raised(ValueError, time_optimal.Params, points=())) == "points are missing; give one or more"


RIG = """
    mechanism:
      gravity: [0, 0, 0]
      bodies: [{name: cart, joint: rail, type: prismatic, axis: [1, 0, 0], mass: 2 kg}]
    joints: {rail: {LIMITS}}
    controllers:
      - {type: computed_torque, bandwidth: 5 Hz, trajectory: {type: time_optimal, points: [[1.5 m]]}}
    schedule: {step: 1 ms, duration: 1.2 s}
"""


def test_a_rig_gives_the_limits_of_its_joints(rig_of: Any) -> None:
    rig = rig_of(RIG.replace("LIMITS", "limits: {effort: 10 N}, actuator: {type: ideal}"))
    run = rig.run()
    end = 2.0 * math.sqrt(0.3)
    reference = run["rail/reference_position"]
    assert reference[round(end * 1000) + 1] == pytest.approx(1.5) and reference[round(end * 1000) - 20] < 1.5
    assert np.abs(run["rail/reference_position"] - run["rail/position"]).max() < 5e-3


def test_a_rig_without_limits_is_refused_at_the_trajectory(rig_of: Any, said: Said) -> None:
    said(refusal(rig_of, RIG.replace("LIMITS", "actuator: {type: ideal}")))


@pytest.mark.parametrize(
    "keys", ["delay: -1", "max_velocity: 0", "max_acceleration: 0", "effort_fraction: 1.1", "effort_fraction: 0"]
)
def test_parameters_out_of_bounds_are_refused(rig_of: Any, keys: str, said: Said) -> None:
    text = RIG.replace("LIMITS", "actuator: {type: ideal}").replace("points: [[1.5 m]]", f"points: [[1.5 m]], {keys}")
    said(refusal(rig_of, text))


def test_prescribed_joints_cannot_be_planned(rig_of: Any, said: Said) -> None:
    text = """
    mechanism:
      bodies: [{name: cart, joint: rail, type: prismatic, axis: [1, 0, 0], mass: 2 kg}]
    joints:
      rail: {prescribed: {type: time_optimal, points: [[1.5 m]]}}
    """
    said(refusal(rig_of, text))
