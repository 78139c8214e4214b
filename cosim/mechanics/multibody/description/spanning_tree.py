"""From joints between links, of which some close loops, to a tree that stands on the ground: of SDF and USD files.

Of several joints with the same child the first one stays in the tree, the others close loops. A link that no joint
leads to from the ground is reached against the direction of its joint; what no joint connects with the ground is free.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from cosim.mechanics.multibody.mechanism import GROUND_LINK, ROOT_JOINT, Joint, Link, LoopJoint, Pose


@dataclass
class SpanningTree:
    """joints: of the tree; links: massless ones between a joint and its child; loops: the other joints; bases: free
    joint -> its link."""

    joints: list[Joint] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    loops: list[LoopJoint] = field(default_factory=list)
    bases: dict[str, str] = field(default_factory=dict)
    swapped: list[str] = field(default_factory=list)  # joints whose two axes changed places


def spanning_tree(
    links: Sequence[Link], joints: Sequence[LoopJoint], last: Collection[str], own_name: Callable[[str], str]
) -> SpanningTree:
    """links: without the ground; last: joints at which loops are cut first; own_name: makes a name unique."""
    found = SpanningTree()
    chosen = _chosen(joints, last)
    around: dict[str, list[LoopJoint]] = defaultdict(list)
    for joint in chosen:
        around[joint.joint.parent].append(joint)
        around[joint.joint.child].append(joint)
    placed: dict[str, LoopJoint] = {}  # joint -> in the direction of the tree
    reached = {GROUND_LINK}
    _reach(GROUND_LINK, around, reached, placed)
    children = {joint.joint.child for joint in joints}
    for link in [*(link for link in links if link.name not in children), *links]:
        if link.name in reached:
            continue
        name = own_name(ROOT_JOINT if not found.bases else f"{link.name}_free")
        free = Joint(name, "free", GROUND_LINK, link.name, Pose.identity(), place=link.place)
        found.joints.append(free)
        found.bases[name] = link.name
        reached.add(link.name)
        _reach(link.name, around, reached, placed)
    for joint in joints:
        if joint.joint.name in placed:
            if joint.joint.second_axis is not None and placed[joint.joint.name] is not joint:
                found.swapped.append(joint.joint.name)
            _add(found, placed[joint.joint.name], own_name)
        else:
            found.loops.append(joint)
    return found


def _chosen(joints: Sequence[LoopJoint], last: Collection[str]) -> list[LoopJoint]:
    """Joints that connect without a loop, the first one of each child before others (Kruskal)."""
    above: dict[str, str] = {}
    group: dict[str, str] = {}

    def root(name: str) -> str:
        while name in group:
            group[name] = name = group.get(group[name], group[name])
        return name

    for joint in joints:
        if joint.joint.name not in last:
            above.setdefault(joint.joint.child, joint.joint.name)
    ordered = sorted(joints, key=lambda each: (each.joint.name in last, above.get(each.joint.child) != each.joint.name))
    found = []
    for joint in ordered:
        parent, child = root(joint.joint.parent), root(joint.joint.child)
        if parent != child:
            group[child] = parent
            found.append(joint)
    return found


def _reach(base: str, around: dict[str, list[LoopJoint]], reached: set[str], placed: dict[str, LoopJoint]) -> None:
    """Turn all joints that lead away from a link."""
    stack = [base]
    while stack:
        link = stack.pop()
        for joint in around[link]:
            forward = joint.joint.parent == link
            other = joint.joint.child if forward else joint.joint.parent
            if other in reached or joint.joint.name in placed:
                continue
            placed[joint.joint.name] = joint if forward else reversed_joint(joint)
            reached.add(other)
            stack.append(other)


def reversed_joint(joint: LoopJoint) -> LoopJoint:
    """The same joint from its child to its parent. Its coordinates stay, with the axis turned over; two axes change
    places, and a rotation becomes its inverse."""
    of = joint.joint
    axis, second = -of.axis, None
    if of.second_axis is not None:
        axis, second = -of.second_axis, -of.axis
    turned = replace(of, parent=of.child, child=of.parent, pose=joint.child_pose, axis=axis + 0.0, second_axis=second)
    return LoopJoint(turned, of.pose, joint.coordinates)


def _add(tree: SpanningTree, joint: LoopJoint, own_name: Callable[[str], str]) -> None:
    """A joint of the tree, with a massless link where its frame is not that of its child."""
    of, pose = joint.joint, joint.child_pose
    if not pose.position.any() and np.array_equal(pose.rotation, np.eye(3)):
        tree.joints.append(of)
        return
    to_child = pose.inverse()
    if of.kind == "fixed":
        tree.joints.append(replace(of, pose=of.pose @ to_child))
        return
    between = own_name(f"{of.name}_link")
    tree.links.append(Link(between, place=of.place))
    tree.joints.append(replace(of, child=between))
    tree.joints.append(Joint(own_name(f"{of.name}_mount"), "fixed", between, of.child, to_child, place=of.place))


def needs_coordinates(joint: Joint) -> bool:
    """Whether a joint has a spring, friction, a rotor or limits, for which it needs coordinates where it closes a
    loop."""
    passive = joint.damping or joint.friction or joint.stiffness or joint.rotor_inertia
    limits = (joint.lower, joint.upper, joint.max_effort, joint.max_velocity)
    return bool(passive) or any(map(math.isfinite, limits))
