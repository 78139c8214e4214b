"""Time-optimal motions of a frame along lines and arcs: closed forms, limits that are held and reached, errors."""

from __future__ import annotations

import math
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from cosim.core.compile import ArrayPort, compile
from cosim.core.types import Limits, TrajectoryContext
from cosim.mechanics.multibody import Model
from cosim.mechanics.multibody.description.urdf import parse_urdf
from cosim.plugins.trajectories import arc, line, time_optimal
from cosim.plugins.trajectories._fastest import PathTrajectory
from tests.kit.messages import Said
from tests.kit.refusals import raised, refusal
from tests.trajectories.test_task_paths import motion, poses, start_of
from tests.trajectories.test_task_paths import planned as planned_for
from tests.trajectories.test_time_optimal import axis

INF = math.inf
UNCLEAR = "the speed is unclear; give a duration, max_velocity and max_acceleration, or time_optimal: true"
LINE = {"displacement": (0.05, 0.3, -0.2)}
ARC = {"center": (0.5, 0.0, 0.5), "axis": (1.0, 0.0, 0.0), "angle": 1.0}


def planned(module: ModuleType, model: Model, effort: Any, velocity: float = INF, **keys: Any) -> PathTrajectory:
    """effort: of each joint."""
    n = model.nv
    limits = Limits(np.full(n, -9.0), np.full(n, 9.0), np.full(n, velocity), np.array(effort, dtype=float))
    context = TrajectoryContext(np.arange(n), model, model.neutral(), limits)
    params = module.Params(**{"time_optimal": True, **keys})
    return module.load(params, model.joint_names, Path(), np.zeros(n), context)


def joint(name: str, kind: str, parent: str, child: str, direction: str, origin: str = "0 0 0") -> str:
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/><origin xyz="{origin}"/>'
        f'<axis xyz="{direction}"/><limit lower="-9" upper="9" effort="100" velocity="100"/></joint>'
    )


def link(name: str, mass: float, inertia: float = 0.1) -> str:
    values = f'ixx="{inertia}" iyy="{inertia}" izz="{inertia}" ixy="0" ixz="0" iyz="0"'
    return f'<link name="{name}"><inertial><mass value="{mass}"/><inertia {values}/></inertial></link>'


def robot(*parts: str) -> Model:
    return Model(parse_urdf(f'<robot name="r"><link name="base"/>{"".join(parts)}</robot>'))


GANTRY = robot(
    link("bridge", 6.0),
    joint("x", "prismatic", "base", "bridge", "1 0 0"),
    link("trolley", 2.0),
    joint("y", "prismatic", "bridge", "trolley", "0 1 0"),
)


def test_a_single_axis_is_bang_bang() -> None:
    """1.5 m with 10 N on 2 kg: 2 √(d / a), as along the path of its joint."""
    along = planned(line, axis("1 0 0"), [10.0], frame="cart", displacement=(1.5, 0.0, 0.0))
    assert along.end == pytest.approx(2.0 * math.sqrt(1.5 / 5.0), rel=1e-6)
    acceleration = motion(along, 2001)["acceleration"][1:-1, 0]
    np.testing.assert_allclose(np.abs(acceleration), 5.0, rtol=1e-5)
    assert (acceleration[:990] > 0.0).all() and (acceleration[1010:] < 0.0).all()


def test_an_arc_of_a_single_joint_is_bang_bang() -> None:
    """A disk of 0.1 kg m² with a tool at 0.4 m, turned by 2 rad with 3 N m."""
    disk = robot(
        link("disk", 1.0),
        joint("turn", "revolute", "base", "disk", "0 0 1"),
        '<link name="tool"/>',
        '<joint name="grip" type="fixed"><parent link="disk"/><child link="tool"/><origin xyz="0.4 0 0"/></joint>',
    )
    keys = {"frame": "tool", "center": (0.0, 0.0, 1.0), "axis": (0.0, 0.0, 1.0), "orientation": "turn"}
    assert planned(arc, disk, [3.0], angle=2.0, **keys).end == pytest.approx(2.0 * math.sqrt(2.0 / 30.0), rel=1e-6)
    slower = planned(arc, disk, [3.0], max_joint_velocity=(2.0,), angle=2.0, **keys)
    assert slower.end == pytest.approx(2.0 / 2.0 + 2.0 / 30.0, rel=1e-4)


@pytest.mark.parametrize(("effort", "limiting"), [((40.0, 30.0), 0), ((80.0, 6.0), 1)])
def test_a_straight_line_of_a_gantry_is_limited_by_one_axis(effort: tuple[float, float], limiting: int) -> None:
    """The bridge moves 8 kg, the trolley 2 kg, along (0.8, 0.6)."""
    along = planned(line, GANTRY, effort, frame="trolley", displacement=(1.6, 1.2, 0.0))
    acceleration = min(effort[0] / 8.0 / 0.8, effort[1] / 2.0 / 0.6)
    assert along.end == pytest.approx(2.0 * math.sqrt(2.0 / acceleration), rel=1e-6)
    found = motion(along, 2001)
    used = np.abs(found["acceleration"] * [8.0, 2.0] / effort)[1:-1]
    np.testing.assert_allclose(used[:, limiting], 1.0, rtol=1e-5)
    assert used[:, 1 - limiting].max() < 1.0
    np.testing.assert_allclose(found["position"][:, 0] * 0.6, found["position"][:, 1] * 0.8, atol=1e-9)


@pytest.mark.parametrize(("module", "keys"), [(line, LINE), (arc, ARC)], ids=["line", "arc"])
@pytest.mark.parametrize("fraction", [0.6, 1.0])
def test_limits_of_a_real_arm_are_held_and_one_is_always_reached(
    module: ModuleType, keys: dict[str, Any], fraction: float
) -> None:
    trajectory = planned_for(module, time_optimal=True, effort_fraction=fraction, **keys)
    model = Model.from_urdf(Path(__file__).parents[2] / "rigs" / "robots" / "ur5.urdf")
    found = motion(trajectory, 4001)
    q, v, a = (found[key] for key in ("position", "velocity", "acceleration"))
    equations = model.equations
    ports = [ArrayPort(name, (6,)) for name in ("q", "v", "a")]
    efforts = compile(lambda q, v, a: equations.inverse_dynamics(q, v, a) + equations.friction_effort(v), ports)(
        q, v, a
    )
    used = np.concatenate([efforts / (fraction * model.limits.effort), v / (0.95 * model.limits.velocity)], axis=1)
    largest = np.abs(used).max(axis=1)
    assert largest.max() < 1.0 + 1e-5
    assert np.quantile(largest, 0.01) > 0.99 and np.median(largest) > 0.9999
    begin, end = start_of("ur5"), poses("ur5", q[-1:])[0]
    if module is line:
        np.testing.assert_allclose(end[:3, 3] - begin[:3, 3], LINE["displacement"], atol=1e-7)
        away = np.cross(poses("ur5", q)[:, :3, 3] - begin[:3, 3], np.array(LINE["displacement"]) / 0.364)
        assert np.abs(away).max() < 1e-7
    slower = planned_for(module, duration=1.01 * trajectory.end, **keys)
    assert trajectory.end < slower.end


def test_limits_of_the_joints_velocities_and_accelerations() -> None:
    keys = {"frame": "trolley", "displacement": (1.6, 1.2, 0.0)}
    trajectory = planned(
        line, GANTRY, [INF, INF], max_joint_velocity=(0.4, 9.0), max_joint_acceleration=(9.0, 1.2), **keys
    )
    assert trajectory.end == pytest.approx(2.0 / 0.5 + 0.5 / 2.0, rel=1e-4)
    assert planned(line, GANTRY, [40.0, 30.0], delay=0.5, **keys).sample(0.4)["position"] == pytest.approx([0.0, 0.0])


def test_a_joint_without_limits_is_refused(said: Said) -> None:
    said(refusal(planned, line, GANTRY, [INF, 5.0], frame="trolley", displacement=(1.0, 1.0, 0.0)))


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({}, UNCLEAR),
        ({"time_optimal": True, "duration": 1.0}, UNCLEAR),
        (
            {"duration": 1.0, "effort_fraction": 0.5},
            "effort_fraction is a limit of time-optimal motions; use time_optimal: true, or take it out",
        ),
    ],
)
def test_keys_that_do_not_fit_together(keys: dict[str, Any], message: str) -> None:
    assert str(raised(ValueError, line.Params, frame="tool0", displacement=(1.0, 0.0, 0.0), **keys)) == message


def test_a_line_of_the_joints_is_the_same_motion() -> None:
    """A gantry's line in task space is one of its joints."""
    n, limits = 2, Limits(np.full(2, -9.0), np.full(2, 9.0), np.full(2, 1.0), np.array([40.0, 30.0]))
    context = TrajectoryContext(np.arange(n), GANTRY, GANTRY.neutral(), limits)
    params = time_optimal.Params(points=((1.6, 1.2),))
    of_joints = time_optimal.load(params, GANTRY.joint_names, Path(), np.zeros(n), context)
    along = planned(line, GANTRY, [40.0, 30.0], 1.0, frame="trolley", displacement=(1.6, 1.2, 0.0))
    assert along.end == pytest.approx(of_joints.end, rel=1e-6)
