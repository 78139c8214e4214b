"""Time-optimal motions of a real arm against the peer library toppra."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import toppra
from toppra.algorithm import TOPPRA
from toppra.constraint import DiscretizationType, JointTorqueConstraint, JointVelocityConstraint

from cosim.multibody import Model
from cosim.trajectories import time_optimal
from cosim.types import TrajectoryContext

UR5 = Path(__file__).parents[2] / "rigs" / "robots" / "ur5.urdf"


@pytest.mark.parametrize("fraction", [1.0, 0.5])
def test_the_duration_is_that_of_toppra(fraction: float) -> None:
    model, rng = Model.from_urdf(UR5), np.random.default_rng(2)
    limits = model.limits
    for _ in range(3):
        points = rng.uniform(-1.0, 1.0, (4, 6)) + np.array([0, -1, 1, 0, 0, 0])
        s = np.concatenate(([0.0], np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))))
        velocity = JointVelocityConstraint(np.stack([-limits.velocity, limits.velocity], axis=1))
        effort = JointTorqueConstraint(
            model.inverse_dynamics,
            fraction * np.stack([-limits.effort, limits.effort], axis=1),
            np.zeros(6),
            discretization_scheme=DiscretizationType.Interpolation,
        )
        path = toppra.SplineInterpolator(s, points, bc_type="natural")
        grid = np.linspace(0.0, s[-1], 1001)
        peer = TOPPRA([velocity, effort], path, gridpoints=grid, solver_wrapper="seidel").compute_trajectory(0, 0)
        params = time_optimal.Params(points=tuple(map(tuple, points[1:])), effort_fraction=fraction)
        context = TrajectoryContext(np.arange(6), model, points[0], limits)
        own = time_optimal.load(params, model.joint_names, Path(), points[0], context)
        assert own.end == pytest.approx(peer.duration, rel=5e-4)
