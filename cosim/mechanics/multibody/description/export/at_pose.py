"""A mechanism whose coordinates count from another pose, in which its loops are closed.

In SDF the pose of the file is coordinate 0 of every joint, also of those that close loops.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from cosim.mechanics.multibody.coordinates import rotation_of
from cosim.mechanics.multibody.description.export.prepared import PreparedRobot
from cosim.mechanics.multibody.mechanism import Joint, LoopJoint, Pose
from cosim.mechanics.multibody.rotations import rotation_by


def counted_from(robot: PreparedRobot, positions: Mapping[str, float | np.ndarray]) -> dict[str, Pose]:
    """Give the joints of a robot new zeros. positions: joint -> coordinate, or quaternion of a ball joint; others are
    at 0. Returns link -> pose of the links in the root, in that pose."""
    moved = [_moved(joint, positions) for joint in robot.joints]
    names = [joint.name for joint in robot.joints if np.any(positions.get(joint.name, 0.0))]
    if names:
        robot.note("positions count from the start, in which loops are closed: those of {}", names)
    poses = {robot.root: Pose.identity()}
    for joint in moved:
        poses[joint.child] = poses[joint.parent] @ joint.pose
    robot.joints[:] = moved
    robot.loops[:] = [_closed(loop, poses) for loop in robot.loops]
    return poses


def _moved(joint: Joint, positions: Mapping[str, float | np.ndarray]) -> Joint:
    at = positions.get(joint.name, 0.0)
    if not np.any(at):
        of = joint.mimic
        if of is None or not np.any(positions.get(of.joint, 0.0)):
            return joint
    if joint.kind == "free":
        return joint
    if joint.kind == "spherical":
        return replace(joint, pose=joint.pose @ Pose(np.array(rotation_of(np.array(at))), np.zeros(3)))
    q = float(np.ravel(at)[0])
    mimic = joint.mimic
    if mimic is not None:
        leader = float(np.ravel(positions.get(mimic.joint, 0.0))[0])
        mimic = replace(mimic, offset=mimic.offset + mimic.multiplier * leader - q)
    return replace(_counted(joint, q), pose=joint.pose @ _motion(joint, q), mimic=mimic)


def _motion(joint: Joint, q: float) -> Pose:
    slide = {"prismatic": 1.0, "screw": joint.pitch}.get(joint.kind, 0.0)
    turn = np.eye(3) if joint.kind == "prismatic" else rotation_by(q * joint.axis)
    return Pose(turn, slide * q * joint.axis)


def _counted(joint: Joint, q: float) -> Joint:
    return replace(joint, lower=joint.lower - q, upper=joint.upper - q, rest=joint.rest - q if joint.stiffness else 0.0)


def _closed(loop: LoopJoint, poses: Mapping[str, Pose]) -> LoopJoint:
    """With its frame on the parent where the one on the child is."""
    joint = loop.joint
    pose = poses[joint.parent].inverse() @ poses[joint.child] @ loop.child_pose
    between = joint.pose.inverse() @ pose
    if joint.kind == "prismatic":
        q = float(joint.axis @ between.position)
    elif joint.kind in ("revolute", "continuous", "screw"):
        skew = between.rotation - between.rotation.T
        sine = 0.5 * float(joint.axis @ np.array([skew[2, 1], skew[0, 2], skew[1, 0]]))
        cosine = 0.5 * (float(np.trace(between.rotation)) - 1.0)
        q = math.atan2(sine, cosine)
    else:
        q = 0.0
    return replace(loop, joint=replace(_counted(joint, q), pose=pose))
