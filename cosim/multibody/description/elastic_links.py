"""From a mechanism with elastic links to one of joints and links alone.

An elastic link becomes its frame, which is massless, the body on it whose joint are the modes, and a link at each
node: a place at which a joint, a loop, a constraint, a spring, a force or a frame is attached. Where nothing moves
relative to the frame, they stay on the frame.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from cosim.errors import InputError, InputErrors, SourceLocation
from cosim.multibody.elastic.link import ElasticLink
from cosim.multibody.elastic_joints import MODES
from cosim.multibody.mechanism import GeneralMotion, Joint, Link, Mechanism, Pose
from cosim.types import Array


def with_nodes(mechanism: Mechanism) -> Mechanism:
    """The mechanism without elastic links. Raises InputErrors for attachments at points that have no node."""
    elastic = {link.name: _Nodes(link, link.elastic) for link in mechanism.links if link.elastic is not None}
    if not elastic:
        return mechanism
    errors: list[InputError] = []

    def on_node(link: str, pose: Pose, place: SourceLocation) -> tuple[str, Pose]:
        try:
            return elastic[link].at(pose) if link in elastic else (link, pose)
        except InputError as error:
            errors.append(InputError(f"elastic link '{link}': {error.what}", place))
            return link, pose

    def mounted(joint: Joint) -> Joint:
        parent, pose = on_node(joint.parent, joint.pose, joint.place)
        return replace(joint, parent=parent, pose=pose)

    joints = [mounted(joint) for joint in mechanism.joints]
    loops = []
    for loop in mechanism.loops:
        child, child_pose = on_node(loop.joint.child, loop.child_pose, loop.joint.place)
        loops.append(replace(loop, joint=replace(mounted(loop.joint), child=child), child_pose=child_pose))
    constraints, forces = (
        tuple(replace(item, frames=tuple(on_node(*frame, item.place) for frame in item.frames)) for item in items)
        for items in (mechanism.constraints, mechanism.forces)
    )
    springs = []
    for spring in mechanism.springs:
        ends = [on_node(link, Pose(np.eye(3), point), spring.place) for link, point in spring.ends]
        springs.append(replace(spring, ends=tuple((link, pose.position) for link, pose in ends)))
    frames = []
    for frame in mechanism.frames:
        link, pose = on_node(frame.link, frame.pose, frame.place)
        frames.append(replace(frame, link=link, pose=pose))
    if errors:
        raise InputErrors(errors)
    rigid = [replace(link, elastic=None) for link in mechanism.links]
    return replace(
        mechanism,
        links=(*rigid, *(link for nodes in elastic.values() for link in nodes.links)),
        joints=(*(joint for nodes in elastic.values() for joint in nodes.joints), *joints),
        loops=tuple(loops),
        constraints=constraints,
        springs=tuple(springs),
        frames=tuple(frames),
        forces=forces,
    )


@dataclass
class _Nodes:
    """The body of an elastic link and its nodes."""

    link: Link
    elastic: ElasticLink
    links: list[Link] = field(init=False)
    joints: list[Joint] = field(init=False)
    positions: list[Array] = field(default_factory=list)  # of the nodes, undeformed

    def __post_init__(self) -> None:
        name, place = self.link.name, self.link.place
        names, units = zip(*self.elastic.modes, strict=True)
        motion = GeneralMotion(names, units, lambda q, t: (np.eye(3), np.zeros(3)))
        carrier, frame = name + MODES, self.link.elastic_frame
        self.links = [Link(carrier, None, place, self.elastic)]
        self.joints = [Joint(carrier, "modes", name, carrier, frame, motion=motion, place=place)]

    def at(self, pose: Pose) -> tuple[str, Pose]:
        """(link, pose in it) of a pose in the undeformed elastic link; a new node unless there is one at its place."""
        there = self.link.elastic_frame.inverse() @ pose
        displacement = self.elastic.displacement(there.position)
        if displacement.is_none:
            return self.link.name, pose
        inner = Pose(there.rotation, np.zeros(3))
        for joint, position in zip(self.joints[1:], self.positions, strict=True):
            if np.array_equal(position, there.position):
                return joint.child, inner
        name, place = f"{self.link.name}@{len(self.joints)}", self.link.place
        self.positions.append(there.position)
        self.links.append(Link(name, place=place))
        self.joints.append(
            Joint(name, "node", self.links[0].name, name, Pose.identity(), node=displacement, place=place)
        )
        return name, inner
