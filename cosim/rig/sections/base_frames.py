"""Bodies with `frame: base`: their numbers are in the base frame with every joint at position 0, as CAD systems have
them. Here they become numbers in the frames of parent and body, on which everything else is built."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from cosim.mechanics.multibody.mechanism import Inertial, Joint, Link, Pose

ROUNDING = 1e-15  # of a distance, of the largest number that it is the difference of


def in_own_frames(
    links: Sequence[Link], joints: Sequence[Joint], of_base: Collection[str]
) -> tuple[list[Link], list[Joint]]:
    """The links and joints with all numbers in the frames of parents and bodies.

    of_base: the links whose joint has its origin and axes, and that have their centre of mass and inertia, in the base
    frame. Links that are no child of a joint are at rest in it.
    """
    if not of_base:
        return list(links), list(joints)
    by_child = {joint.child: joint for joint in joints}
    placed: dict[str, Pose] = {}

    def place(link: str, below: frozenset[str] = frozenset()) -> Pose:
        """The frame of a link in the base."""
        joint = by_child.get(link)
        if joint is None or link in below:  # joints in a circle are reported where the tree is built
            return Pose.identity()
        if link not in placed:
            above = Pose.identity() if link in of_base else place(joint.parent, below | {link}) @ at_zero(joint)
            placed[link] = above @ joint.pose if link in of_base else above
        return placed[link]

    own_links = [_link(link, place(link.name)) if link.name in of_base else link for link in links]
    own_joints = [
        _joint(joint, place(joint.parent), place(joint.child)) if joint.child in of_base else joint for joint in joints
    ]
    return own_links, own_joints


def at_zero(joint: Joint) -> Pose:
    """The frame of a joint's child in its parent at position 0; a user-defined joint may have moved there."""
    return joint.pose @ _moved(joint)


def _moved(joint: Joint) -> Pose:
    if joint.motion is None:
        return Pose.identity()
    rotation, position = joint.motion.place(np.zeros(len(joint.motion.names)), 0.0)
    return Pose(np.asarray(rotation, dtype=float), np.asarray(position, dtype=float))


def _link(link: Link, here: Pose) -> Link:
    if link.inertial is None:
        return link
    turn, given = here.rotation.T, link.inertial
    com = turn @ _difference(given.com, here.position)
    return replace(link, inertial=Inertial(given.mass, com, turn @ given.inertia @ turn.T))


def _joint(joint: Joint, parent: Pose, child: Pose) -> Joint:
    turn = child.rotation.T
    offset = parent.rotation.T @ _difference(child.position, parent.position)
    pose = Pose(parent.rotation.T @ child.rotation, offset) @ _moved(joint).inverse()
    second = None if joint.second_axis is None else turn @ joint.second_axis
    return replace(joint, pose=pose, axis=turn @ joint.axis, second_axis=second)


def _difference(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a − b with exact zeros in place of rounding."""
    distance = a - b
    return np.where(np.abs(distance) <= ROUNDING * np.maximum(np.abs(a), np.abs(b)), 0.0, distance)
