"""The poses and velocities of bodies as one vector: in space (position, quaternion), in a plane (x, y, angle) of each,
then the velocities of all bodies. Positions locate the centres of mass."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cosim.core import ops
from cosim.core.types import Numeric
from cosim.mechanics.formulations.cartesian.assembled import CentralFrame
from cosim.mechanics.formulations.cartesian.coordinates import Plane
from cosim.mechanics.formulations.cartesian.system import Cartesian
from cosim.mechanics.multibody.coordinates import ROTATION, rotation_of
from cosim.mechanics.multibody.kinematics import Placement


class AbsolutePoses:
    """The state of the bodies of a mechanism."""

    def __init__(self, system: Cartesian) -> None:
        self._coms = [body.com for body in system.sweeps.bodies]
        placed = system.placements(system.equations.coordinates(np.zeros(system.equations.nv)))
        plane = system.coordinates if isinstance(system.coordinates, Plane) else None
        self._bodies: list[_InSpace | _InPlane] = [
            _InSpace() if plane is None else _InPlane(plane.basis, CentralFrame.of(here, com))
            for here, com in zip(placed, self._coms, strict=True)
        ]
        self._width, self._size = (7, 6) if plane is None else (3, 3)
        self._speeds = self._width * len(placed)  # where they begin

    def state(self, placed: Sequence[Placement]) -> np.ndarray:
        """x"""
        frames = [CentralFrame.of(here, com) for here, com in zip(placed, self._coms, strict=True)]
        poses = [body.pose(frame) for body, frame in zip(self._bodies, frames, strict=True)]
        speeds = [body.speed(frame) for body, frame in zip(self._bodies, frames, strict=True)]
        return np.concatenate([*poses, *speeds])

    def placements(self, x: Numeric) -> list[Placement]:
        """The bodies in ground axes."""
        found = []
        for body, com, pose, speed in zip(self._bodies, self._coms, *self._split(x), strict=True):
            rotation, center = body.place(pose)
            linear, angular = body.velocity(rotation, speed)
            arm = rotation @ com
            found.append(Placement(rotation, center - arm, angular, linear - ops.cross(angular, arm)))
        return found

    def rate(self, x: Numeric, accelerations: Sequence[Numeric]) -> Numeric:
        """ẋ from the accelerations of the bodies."""
        rates = [body.rate(pose, speed) for body, pose, speed in zip(self._bodies, *self._split(x), strict=True)]
        return ops.concatenate([*rates, *accelerations])

    def moved(self, x: Numeric, changes: Sequence[Numeric]) -> Numeric:
        """x after small displacements of the bodies."""
        poses, _ = self._split(x)
        moved = [body.moved(pose, change) for body, pose, change in zip(self._bodies, poses, changes, strict=True)]
        return ops.concatenate([*moved, x[self._speeds :]])

    def accelerated(self, x: Numeric, changes: Sequence[Numeric]) -> Numeric:
        """x after changes of the velocities."""
        return ops.concatenate([x[: self._speeds], x[self._speeds :] + ops.concatenate(list(changes))])

    def normalised(self, x: Numeric) -> Numeric:
        """x with quaternions of length 1."""
        return self.moved(x, [np.zeros(self._size)] * len(self._bodies))

    def _split(self, x: Numeric) -> tuple[list[Numeric], list[Numeric]]:
        """(pose, velocity) of every body."""
        count, width, size = range(len(self._bodies)), self._width, self._size
        poses = [x[k * width : (k + 1) * width] for k in count]
        return poses, [x[self._speeds + k * size : self._speeds + (k + 1) * size] for k in count]


class _InSpace:
    """Position and quaternion; the velocity of the centre of mass, and the angular velocity along the body's axes."""

    def pose(self, frame: CentralFrame) -> np.ndarray:
        from scipy.spatial.transform import Rotation

        return np.concatenate([frame.center, Rotation.from_matrix(frame.placement.rotation).as_quat()])

    def speed(self, frame: CentralFrame) -> Numeric:
        here = frame.placement
        return np.concatenate([frame.center_velocity, here.rotation.T @ here.angular])

    def place(self, pose: Numeric) -> tuple[Numeric, Numeric]:
        """(axes (3, 3), centre of mass)"""
        return rotation_of(pose[3:]), pose[:3]

    def velocity(self, rotation: Numeric, speed: Numeric) -> tuple[Numeric, Numeric]:
        """(of the centre of mass, angular), along ground axes"""
        return speed[:3], rotation @ speed[3:]

    def rate(self, pose: Numeric, speed: Numeric) -> Numeric:
        return ops.concatenate([speed[:3], ROTATION.rate(pose[3:], speed[3:])])

    def moved(self, pose: Numeric, change: Numeric) -> Numeric:
        return ops.concatenate([pose[:3] + change[:3], ROTATION.integrate(pose[3:], change[3:])])


class _InPlane:
    """Position in the plane, and the angle from the neutral position of the mechanism."""

    def __init__(self, basis: np.ndarray, neutral: CentralFrame) -> None:
        self._first, self._second, self._normal = basis.T
        self._axes, self._height = neutral.placement.rotation, self._normal @ neutral.center

    def pose(self, frame: CentralFrame) -> np.ndarray:
        turned = frame.placement.rotation @ self._axes.T @ self._first
        angle = np.arctan2(self._second @ turned, self._first @ turned)
        return np.array([self._first @ frame.center, self._second @ frame.center, angle])

    def speed(self, frame: CentralFrame) -> Numeric:
        v = frame.center_velocity
        return np.array([self._first @ v, self._second @ v, self._normal @ frame.placement.angular])

    def place(self, pose: Numeric) -> tuple[Numeric, Numeric]:
        s, c, across = ops.sin(pose[2]), ops.cos(pose[2]), ops.skew(self._normal)
        turn = np.eye(3) + s * across + (1.0 - c) * (across @ across)
        return turn @ self._axes, self._first * pose[0] + self._second * pose[1] + self._normal * self._height

    def velocity(self, rotation: Numeric, speed: Numeric) -> tuple[Numeric, Numeric]:
        return self._first * speed[0] + self._second * speed[1], self._normal * speed[2]

    def rate(self, pose: Numeric, speed: Numeric) -> Numeric:
        return speed

    def moved(self, pose: Numeric, change: Numeric) -> Numeric:
        return pose + change
