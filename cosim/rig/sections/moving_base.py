"""The key `mechanism.moving_base`: the prescribed motion of the base of a mechanism."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

import numpy as np

from cosim.core import ops
from cosim.core.types import Numeric, Trajectory, param, params
from cosim.mechanics.multibody.joints import GeneralMotion
from cosim.rig.reading.contracts import load_trajectory
from cosim.rig.reading.plugins import TRAJECTORY, read_plugin
from cosim.rig.reading.schema import Reading

LINEAR, ANGULAR = ("x", "y", "z"), ("roll", "pitch", "yaw")


@params
class MovingBaseKeys:
    x: dict | None = param(default=None)
    y: dict | None = param(default=None)
    z: dict | None = param(default=None)
    roll: dict | None = param(default=None)
    pitch: dict | None = param(default=None)
    yaw: dict | None = param(default=None)


def read_moving_base(keys: MovingBaseKeys, at: tuple, reading: Reading) -> GeneralMotion:
    """The motion of a joint without coordinates: x, y, z [m], then roll, pitch, yaw [rad] about the fixed x, y, z
    in this order, each a trajectory that starts at 0; missing ones stay 0. Errors are recorded."""
    given: dict[str, Trajectory] = {}
    sections = {field.name: getattr(keys, field.name) for field in fields(keys)}
    if all(section is None for section in sections.values()):
        reading.fail(at, f"the base does not move; give it one of {', '.join(sections)}")
    for key, section in sections.items():
        if section is None:
            continue
        path = (*at, key)
        kind = "prismatic" if key in LINEAR else "revolute"
        plugin = read_plugin(TRAJECTORY, section, path, reading, {key: kind})
        if plugin is not None:
            trajectory = load_trajectory(plugin, (key,), np.zeros(1), path, reading)
            if trajectory is not None:
                given[key] = trajectory
    return GeneralMotion((), (), BaseMotion(given), timed=True)


class BaseMotion:
    """`place(q, t)` of a joint whose six coordinates follow trajectories."""

    def __init__(self, given: Mapping[str, Trajectory]) -> None:
        self._given = given

    def __call__(self, q: Numeric, t: Numeric) -> tuple[Numeric, Numeric]:
        at = {key: trajectory.sample(t)["position"][0] for key, trajectory in self._given.items()}
        axes: Numeric = np.eye(3)
        for k, key in enumerate(ANGULAR):  # R = Rz(yaw) Ry(pitch) Rx(roll), as in `frames.pose_of`
            if key in at:
                axes = _rotation(k, at[key]) @ axes
        return axes, ops.array([at.get(key, 0.0) for key in LINEAR])


def _rotation(k: int, angle: Numeric) -> Numeric:
    """The rotation (3, 3) about axis number k."""
    s, c = ops.sin(angle), ops.cos(angle)
    i, j = (k + 1) % 3, (k + 2) % 3
    rows: list[list[Numeric]] = np.eye(3).tolist()
    rows[i][i] = rows[j][j] = c
    rows[i][j], rows[j][i] = -s, s
    return ops.array(rows)
