"""From a mechanism with elastic links to one of joints and links alone.

An elastic link becomes its frame, which is massless, the body on it whose joint are the modes, and a link at each node,
a place at which a joint, a loop, a constraint, a spring, a force or a frame is attached. Where nothing moves relative to
the frame, they stay on the frame.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from cosim.multibody.elastic.link import ElasticLink
from cosim.multibody.mechanism import GeneralMotion, Joint, Link, Mechanism, Pose
from cosim.types import Numeric


def with_nodes(mechanism: Mechanism) -> Mechanism:
    """The mechanism without elastic links."""
    elastic = {link.name: _Nodes(link, link.elastic) for link in mechanism.links if link.elastic is not None}
    if not elastic:
        return mechanism

    def on_node(link: str, pose: Pose) -> tuple[str, Pose]:
        return elastic[link].at(pose) if link in elastic else (link, pose)

    def mounted(joint: Joint) -> Joint:
        parent, pose = on_node(joint.parent, joint.pose)
        return replace(joint, parent=parent, pose=pose)

    joints = [mounted(joint) for joint in mechanism.joints]
    loops = []
    for loop in mechanism.loops:
        child, child_pose = on_node(loop.joint.child, loop.child_pose)
        loops.append(replace(loop, joint=replace(mounted(loop.joint), child=child), child_pose=child_pose))
    constraints = [
        replace(item, frames=tuple(on_node(*frame) for frame in item.frames)) for item in mechanism.constraints
    ]
    forces = [replace(item, frames=tuple(on_node(*frame) for frame in item.frames)) for item in mechanism.forces]
    springs = []
    for spring in mechanism.springs:
        ends = [on_node(link, Pose(np.eye(3), point)) for link, point in spring.ends]
        springs.append(replace(spring, ends=tuple((link, pose.position) for link, pose in ends)))
    frames = []
    for frame in mechanism.frames:
        link, pose = on_node(frame.link, frame.pose)
        frames.append(replace(frame, link=link, pose=pose))
    rigid = [replace(link, elastic=None, inertial=link.inertial) for link in mechanism.links]
    return replace(
        mechanism,
        links=(*rigid, *(link for nodes in elastic.values() for link in nodes.links)),
        joints=(*(joint for nodes in elastic.values() for joint in nodes.joints), *joints),
        loops=tuple(loops),
        constraints=tuple(constraints),
        springs=tuple(springs),
        frames=tuple(frames),
        forces=tuple(forces),
    )


@dataclass
class _Nodes:
    """The body of an elastic link and its nodes, as they are asked for."""

    link: Link
    elastic: ElasticLink
    links: list[Link] = field(init=False)
    joints: list[Joint] = field(init=False)

    def __post_init__(self) -> None:
        name, place = self.link.name, self.link.place
        motion = self._motion(lambda q, t: (np.eye(3), np.zeros(3)))
        self.links = [Link(f"{name}@modes", None, place, self.elastic)]
        self.joints = [Joint(name, "modes", name, self.links[0].name, Pose.identity(), motion=motion, place=place)]

    def at(self, pose: Pose) -> tuple[str, Pose]:
        """(link, pose in it) of a pose in the undeformed elastic link; a new node unless there is one at its place."""
        displacement = self.elastic.displacement(pose.position)
        if displacement.is_none:
            return self.link.name, pose
        inner = Pose(pose.rotation, np.zeros(3))
        for joint in self.joints[1:]:
            if np.array_equal(joint.pose.position, pose.position):
                return joint.child, inner
        name = f"{self.link.name}@{len(self.joints)}"
        motion = self._motion(lambda q, t: displacement.place(q))
        mount = Pose(np.eye(3), pose.position)
        self.links.append(Link(name, place=self.link.place))
        self.joints.append(Joint(name, "node", self.links[0].name, name, mount, motion=motion, place=self.link.place))
        return name, inner

    def _motion(self, place: Numeric) -> GeneralMotion:
        names, units = zip(*self.elastic.modes, strict=True)
        return GeneralMotion(names, units, place)
