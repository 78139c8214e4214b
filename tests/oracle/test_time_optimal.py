"""Time-optimal motions of a real arm against the peer library toppra."""

from pathlib import Path

import numpy as np
import pytest
import toppra
from toppra.algorithm import TOPPRA
from toppra.constraint import DiscretizationType, JointTorqueConstraint, JointVelocityConstraint

from cosim.core.types import TrajectoryContext
from cosim.mechanics.multibody import Model
from cosim.plugins.trajectories import line, time_optimal

UR5 = Path(__file__).parents[2] / "rigs" / "robots" / "ur5.urdf"


def duration_of(path, model, end: float, fraction: float = 1.0) -> float:
    """Of the peer, along a path whose parameter goes from 0 to the end."""
    velocity, effort = (np.stack([-limit, limit], axis=1) for limit in (model.limits.velocity, model.limits.effort))
    linear = {"discretization_scheme": DiscretizationType.Interpolation}
    torque = JointTorqueConstraint(model.inverse_dynamics, fraction * effort, np.zeros(6), **linear)
    grid, constraints = np.linspace(0.0, end, 501), [JointVelocityConstraint(velocity), torque]
    return TOPPRA(constraints, path, gridpoints=grid, solver_wrapper="seidel").compute_trajectory(0, 0).duration


@pytest.mark.parametrize("fraction", [1.0, 0.5])
def test_the_duration_is_that_of_toppra(fraction: float) -> None:
    model, rng = Model.from_urdf(UR5), np.random.default_rng(2)
    points = rng.uniform(-1.0, 1.0, (4, 6)) + np.array([0, -1, 1, 0, 0, 0])
    s = np.concatenate(([0.0], np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))))
    params = time_optimal.Params(
        points=tuple(map(tuple, points[1:])), effort_fraction=fraction, max_velocity=tuple(model.limits.velocity)
    )
    context = TrajectoryContext(np.arange(6), model, points[0], model.limits)
    own = time_optimal.load(params, model.joint_names, Path(), points[0], context)
    path = toppra.SplineInterpolator(s, points, bc_type="natural")
    assert own.end == pytest.approx(duration_of(path, model, s[-1], fraction), rel=5e-4)


def test_the_duration_along_a_line_is_that_of_toppra() -> None:
    """The peer has a spline through the joints of the inverse kinematics at 100 points of the line."""
    model, start = Model.from_urdf(UR5), np.radians([0.0, -80.0, 100.0, -110.0, -90.0, 0.0])
    way, begin, joints = np.array([0.05, 0.3, -0.2]), model.frame_pose(start, "tool0"), [start]
    s = np.linspace(0.0, 1.0, 101)
    for k in range(1, len(s)):
        pose = begin.copy()
        pose[:3, 3] += s[k] * way
        joints.append(np.asarray(model.inverse_kinematics("tool0", pose, joints[-1], tolerance=1e-10).q))
    peer = duration_of(toppra.SplineInterpolator(s, np.array(joints)), model, 1.0)
    limits = model.limits
    fastest = {"time_optimal": True, "max_joint_velocity": tuple(limits.velocity)}
    params = line.Params(frame="tool0", displacement=tuple(way), **fastest)
    own = line.load(params, model.joint_names, Path(), start, TrajectoryContext(np.arange(6), model, start, limits))
    assert own.end == pytest.approx(peer, rel=5e-4)
