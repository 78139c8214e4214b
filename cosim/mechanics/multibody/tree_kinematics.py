"""Positions and velocities in a mechanism as pure functions, in its independent coordinates.

Frames and their Jacobians, the centre of mass, momentum.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from cosim.core import ops
from cosim.core.compile.trace import Shape, column
from cosim.core.types import Numeric
from cosim.mechanics.multibody import dynamics, kinematics
from cosim.mechanics.multibody.bodies import AnyMotion
from cosim.mechanics.multibody.configuration_space import ConfigurationSpace
from cosim.mechanics.multibody.differentiate import Derived, along
from cosim.mechanics.multibody.elastic_joints import NodeKind
from cosim.mechanics.multibody.kinematics import Placement
from cosim.mechanics.multibody.mechanism import Pose
from cosim.mechanics.multibody.mimics import mimic_maps
from cosim.mechanics.multibody.tree import Tree


class TreeKinematics(ConfigurationSpace):
    """Pure functions of the motion of one tree; arguments and results as in `Model`, for one state.

    t: time [s], used only by joints that depend on it.
    """

    def __init__(self, tree: Tree) -> None:
        pairs = zip(tree.joints, tree.kinds, strict=True)
        super().__init__([kind for joint, kind in pairs if joint.mimic is None])
        self.tree, self.sweeps = tree, tree.sweeps
        self.q_map, self.v_map = mimic_maps(tree)  # from the independent coordinates to all joints'
        self.nv_tree = len(self.v_map.leader)

    @cached_property
    def dofs_of_tree(self) -> list[tuple[str, str]]:
        """(name, unit rad or m) of all dofs of the tree, mimic joints included."""
        pairs = zip(self.tree.joints, self.tree.kinds, strict=True)
        return [
            (name, unit)
            for joint, kind in pairs
            for name, (_, unit) in zip(kind.named(joint.name, kind.dofs), kind.dofs, strict=True)
        ]

    def placements(self, q_tree: Numeric, v_tree: Numeric, t: Numeric) -> tuple[list[AnyMotion], list[Placement]]:
        moving = dynamics.body_motions(self.sweeps, q_tree, v_tree, t)
        return moving, kinematics.placements(self.sweeps, moving)

    def _project_rows(self, jacobian: Numeric) -> Numeric:
        """J P: a Jacobian of all dofs of the tree as one of the independent dofs."""
        return jacobian if self.v_map.trivial else ops.array([self.v_map.project(row) for row in jacobian])

    # --- frames ---

    def frame_pose(self, q: Numeric, body: int, frame: Pose, t: Numeric = 0.0) -> Numeric:
        return kinematics.frame_pose(self.sweeps, self.q_map.positions(q), body, frame, t)

    def body_poses(self, q: Numeric, t: Numeric = 0.0) -> Numeric:
        """(n, 3, 4): axes (3, 3) and origin of every moving body, in the order of `tree.joints`, in ground axes."""
        _, placed = self.placements(self.q_map.positions(q), np.zeros(self.nv_tree), t)
        rows = [[[*here.rotation[i], here.position[i]] for i in range(3)] for here in placed]
        return ops.array(rows).reshape(len(placed), 3, 4)

    def moving_base_poses(self, q: Numeric, t: Numeric) -> dict[str, dict[str, Numeric]]:
        """Poses of the bodies whose joints depend on time alone, by joint: x, y, z [m], roll, pitch, yaw [rad] in
        ground axes."""
        found = {}
        for k, (joint, kind) in enumerate(zip(self.tree.joints, self.tree.kinds, strict=True)):
            if kind.timed and not kind.nv:
                pose = self.frame_pose(q, k, Pose.identity(), t)
                found[joint.name] = kinematics.pose_parts(pose[:3, :3], pose[:3, 3])
        return found

    def named_frames(
        self, q: Numeric, v: Numeric, t: Numeric = 0.0
    ) -> dict[str, tuple[dict[str, Numeric], dict[str, Numeric]]]:
        """Of each named frame the pose as in `moving_base_poses`, and the velocity x, y, z of its origin [m/s]."""
        named = self.tree.mechanism.frames
        if not named:
            return {}
        _, placed = self.placements(self.q_map.positions(q), self.v_map.expand(v), t)
        found = {}
        for frame in named:
            body, pose = self.tree.frames[frame.name]
            here = kinematics.GROUND_PLACEMENT if body < 0 else placed[body]
            reach = here.rotation @ pose.position
            velocity = here.linear + ops.cross(here.angular, reach)
            parts = kinematics.pose_parts(here.rotation @ pose.rotation, here.position + reach)
            found[frame.name] = parts, dict(zip("xyz", velocity, strict=True))
        return found

    def deflections(self, q: Numeric) -> dict[str, Numeric]:
        """Of each named frame on an elastic link: (3,) how far its origin is from its place in the undeformed link,
        along the axes of the modes [m]."""
        found, coordinates = {}, self.sweeps.by_q(self.q_map.positions(q))
        for frame in self.tree.mechanism.frames:
            body, pose = self.tree.frames[frame.name]
            if body >= 0 and isinstance(node := self.tree.kinds[body], NodeKind):
                eta = coordinates[self.tree.parents[body]]
                places = (node.place(eta, 0.0), node.place(np.zeros(len(eta)), 0.0))
            elif pieces := self._rigid_elements_to(body):
                at_rest = [np.zeros(kind.nq) for kind in self.tree.kinds]
                places = self._placed(pieces, coordinates), self._placed(pieces, at_rest)
            else:
                continue
            now, undeformed = (origin + turn @ pose.position for turn, origin in places)
            found[frame.name] = now - undeformed
        return found

    def _rigid_elements_to(self, body: int) -> list[int]:
        """The bodies from the first joint of a link of rigid elements to `body`, none for other bodies."""
        found = []
        while body >= 0 and "@" in self.tree.joints[body].child:
            found.insert(0, body)
            body = self.tree.parents[body]
        return found

    def _placed(self, bodies: Sequence[int], coordinates: Sequence[Numeric]) -> tuple[Numeric, Numeric]:
        """(axes (3, 3), origin (3,)) of the last of a chain of bodies, in the frame in which the first joint is."""
        axes, origin = np.eye(3), np.zeros(3)
        for k, body in enumerate(bodies):
            if k:
                origin = origin + axes @ self.tree.bodies[body].position
                axes = axes @ self.tree.bodies[body].rotation
            turn, slide = self.tree.kinds[body].place(coordinates[body], 0.0)
            axes, origin = axes @ turn, origin + axes @ slide
        return axes, origin

    def frame_jacobian(self, q: Numeric, body: int, frame: Pose, t: Numeric = 0.0) -> Numeric:
        return self._project_rows(
            kinematics.frame_jacobian(self.sweeps, self.q_map.positions(q), self.nv_tree, body, frame, t)
        )

    def frame_jacobian_rate(self, q: Numeric, v: Numeric, body: int, frame: Pose, t: Numeric = 0.0) -> Numeric:
        """J̇ (6, nv): see `Model.frame_jacobian_rate`."""

        def make(columns: list[Numeric], arrays: list[Numeric]) -> list[tuple[Numeric, Shape]]:
            by_columns = column(np.transpose(self.frame_jacobian(arrays[0], body, frame, arrays[2])))
            rates = (columns[0], column(self.rate(arrays[0], arrays[1]))), (columns[2], column(1.0))
            return [(along(by_columns, rates), (6, self.nv))]

        (rate,) = Derived("jacobian_rate", [(self.nq,), (self.nv,), ()], make)(q, v, t)
        return rate

    # --- centre of mass, momentum ---

    def center_of_mass(self, q: Numeric, t: Numeric = 0.0) -> Numeric:
        moving, placed = self.placements(self.q_map.positions(q), np.zeros(self.nv_tree), t)
        return kinematics.center_of_mass(self.tree.bodies, moving, placed)

    def center_of_mass_jacobian(self, q: Numeric, t: Numeric = 0.0) -> Numeric:
        return self.centroidal_momentum_matrix(q, t)[:3] / kinematics.total_mass(self.tree.bodies)

    def centroidal_momentum(self, q: Numeric, v: Numeric, t: Numeric = 0.0) -> Numeric:
        moving, placed = self.placements(self.q_map.positions(q), self.v_map.expand(v), t)
        return kinematics.centroidal_momentum(self.tree.bodies, moving, placed)

    def centroidal_momentum_matrix(self, q: Numeric, t: Numeric = 0.0) -> Numeric:
        moving, placed = self.placements(self.q_map.positions(q), np.zeros(self.nv_tree), t)
        return self._project_rows(kinematics.centroidal_momentum_matrix(self.sweeps, moving, placed, self.nv_tree))
