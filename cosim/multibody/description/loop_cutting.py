"""From a mechanism with loops to a tree and the constraints that close it (theory §3: cut joints, reduced tree).

A joint that closes a loop is cut: its closing rows of the joint table tie the two frames. One that keeps
coordinates stays in the tree; then the link behind it is cut through, each part has its share of the mass, and
a weld ties the parts.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from cosim.multibody.constraint_laws import FORCE, MOMENT, ConstraintLaw, ReactionSpec, closure
from cosim.multibody.joints import FIXED, JointKind, axes_of, kind_of
from cosim.multibody.mechanism import Constraint, Inertial, Joint, Link, LoopJoint, Mechanism, Pose

_ROWS = {f"f{axis}": ReactionSpec(f"force_{axis}", *FORCE) for axis in "xyz"}
_ROWS |= {f"m{axis}": ReactionSpec(f"moment_{axis}", *MOMENT) for axis in "xyz"}


def cut_loops(mechanism: Mechanism) -> tuple[Mechanism, tuple[Constraint, ...]]:
    """(the tree, all constraints: the loops' first, in their order)."""
    kept = [loop for loop in mechanism.loops if loop.coordinates]
    parts = Counter(loop.joint.child for loop in kept)
    shares = {name: 1.0 / (count + 1) for name, count in parts.items()}
    whole = {link.name: link for link in mechanism.links}
    links = [_lightened(link, shares.get(link.name, 1.0)) for link in mechanism.links]
    joints = list(mechanism.joints)
    ties = []
    for loop in mechanism.loops:
        if not loop.coordinates:
            ties.append(_cut(loop))
            continue
        part, joint, tie = _cut_through(loop, _lightened(whole[loop.joint.child], shares[loop.joint.child]))
        links.append(part)
        joints.append(joint)
        ties.append(tie)
    tree = replace(mechanism, links=tuple(links), joints=tuple(joints), loops=(), constraints=())
    return tree, (*ties, *mechanism.constraints)


def _cut(loop: LoopJoint) -> Constraint:
    joint = loop.joint
    aligned = Pose(axes_of(joint), np.zeros(3))
    frames = (joint.parent, joint.pose @ aligned), (joint.child, loop.child_pose @ aligned)
    return Constraint(joint.name, _law(kind_of(joint)), frames, place=joint.place)


def _law(kind: JointKind) -> ConstraintLaw:
    assert kind.closing is not None, "joints without closing rows keep their coordinates"
    return closure([_ROWS[name] for name in kind.reactions.split()], kind.closing, kind.right)


def _cut_through(loop: LoopJoint, share: Link) -> tuple[Link, Joint, Constraint]:
    """The part of the child that the joint carries, the joint of the tree, and the weld."""
    joint = loop.joint
    name = f"{joint.child}@{joint.name}"
    inertial = None if share.inertial is None else _seen_from(loop.child_pose, share.inertial)
    weld = Constraint(
        joint.name, _law(FIXED), ((name, Pose.identity()), (joint.child, loop.child_pose)), (), joint.place
    )
    return Link(name, inertial, share.place), replace(joint, child=name), weld


def _seen_from(frame: Pose, inertial: Inertial) -> Inertial:
    turned = frame.rotation.T
    return Inertial(
        inertial.mass,
        frame.inverse().rotation @ (inertial.com - frame.position),
        turned @ inertial.inertia @ frame.rotation,
    )


def _lightened(link: Link, share: float) -> Link:
    if link.inertial is None or share == 1.0:
        return link
    whole = link.inertial
    return replace(link, inertial=Inertial(whole.mass * share, whole.com, whole.inertia * share))
