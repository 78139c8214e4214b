"""From a mechanism with loops to a tree and the constraints that close the loops (cut joints, reduced tree).

A joint that closes a loop is cut: the closure rows of the joint table constrain its two frames. A loop joint with
coordinates stays in the tree; then the link behind it is cut into parts of equal mass, and a weld joins the parts.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from cosim.mechanics.multibody.constraint_laws import WRENCH, ConstraintLaw, loop_closure
from cosim.mechanics.multibody.joints import FIXED, JointKind, joint_axes, kind_of
from cosim.mechanics.multibody.mechanism import (
    Constraint,
    Inertial,
    Joint,
    Link,
    LoopJoint,
    Mechanism,
    Pose,
)
from cosim.mechanics.multibody.part_names import part_of


def cut_loops(mechanism: Mechanism) -> tuple[Mechanism, tuple[Constraint, ...]]:
    """(the tree, all constraints: loop closures first, in their order)."""
    with_coordinates = [loop for loop in mechanism.loops if loop.coordinates]
    counts = Counter(loop.joint.child for loop in with_coordinates)
    fractions = {name: 1.0 / (count + 1) for name, count in counts.items()}
    whole = {link.name: link for link in mechanism.links}
    links = [_with_fraction(link, fractions.get(link.name, 1.0)) for link in mechanism.links]
    joints = list(mechanism.joints)
    closures = []
    for loop in mechanism.loops:
        if not loop.coordinates:
            closures.append(_cut_joint(loop))
            continue
        part, joint, closure = _cut_link(loop, _with_fraction(whole[loop.joint.child], fractions[loop.joint.child]))
        links.append(part)
        joints.append(joint)
        closures.append(closure)
    tree = replace(mechanism, links=tuple(links), joints=tuple(joints), loops=(), constraints=())
    return tree, (*closures, *mechanism.constraints)


def _cut_joint(loop: LoopJoint) -> Constraint:
    joint = loop.joint
    aligned = Pose(joint_axes(joint), np.zeros(3))
    frames = (joint.parent, joint.pose @ aligned), (joint.child, loop.child_pose @ aligned)
    return Constraint(joint.name, _law(kind_of(joint)), frames, place=joint.place)


def _law(kind: JointKind) -> ConstraintLaw:
    assert kind.closure is not None, "joints without closure rows keep their coordinates"
    rows, components = ([WRENCH[name] for name in names] for names in (kind.reactions.split(), kind.components))
    return loop_closure(rows, kind.closure, kind.branch, components)


def _cut_link(loop: LoopJoint, part_link: Link) -> tuple[Link, Joint, Constraint]:
    """(the part of the child on the joint, the joint of the tree, the weld)."""
    joint = loop.joint
    name = part_of(joint.child, joint.name)
    inertial = None if part_link.inertial is None else _in_frame(loop.child_pose, part_link.inertial)
    frames = (name, Pose.identity()), (joint.child, loop.child_pose)
    weld = Constraint(joint.name, _law(FIXED), frames, (), joint.place, weld_of=joint.name)
    return Link(name, inertial, part_link.place), replace(joint, child=name), weld


def _in_frame(frame: Pose, inertial: Inertial) -> Inertial:
    """An inertial of a link, in a frame of that link."""
    to_frame = frame.rotation.T
    com = frame.inverse().rotation @ (inertial.com - frame.position)
    return Inertial(inertial.mass, com, to_frame @ inertial.inertia @ frame.rotation)


def _with_fraction(link: Link, fraction: float) -> Link:
    """The link with a fraction of its mass and inertia."""
    if link.inertial is None or fraction == 1.0:
        return link
    whole = link.inertial
    return replace(link, inertial=Inertial(whole.mass * fraction, whole.com, whole.inertia * fraction))
