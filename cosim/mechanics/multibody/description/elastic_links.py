"""From a mechanism with elastic links to one of joints and links alone.

An elastic link becomes its frame, which is massless, the body on it whose joint are the modes, and a link at each
node: a place at which a joint, a loop, a constraint, a spring, a force, a frame or a shape that may touch others is
attached. Where nothing moves relative to the frame, they stay on the frame. A link of rigid elements becomes a chain.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from cosim.core.errors import InputError, InputErrors, SourceLocation
from cosim.core.types import Array
from cosim.mechanics.multibody.elastic.link import Displacement, ElasticLink, fixed_point, secant, with_bars_to
from cosim.mechanics.multibody.elastic.rigid_elements import RigidElements, RigidPiece
from cosim.mechanics.multibody.elastic_joints import MODES
from cosim.mechanics.multibody.mechanism import Constraint, GeneralMotion, Inertial, Joint, Link, Mechanism, Pose
from cosim.mechanics.multibody.part_names import part_of


def with_nodes(mechanism: Mechanism) -> Mechanism:
    """The mechanism without elastic links. Raises InputErrors for attachments at points that have no node."""
    elastic = {link.name: parts for link in mechanism.links if (parts := _parts(link)) is not None}
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

    def in_guide(item: Constraint) -> Constraint:
        """What a beam slides through keeps its first frame, of the undeformed beam, and takes the modes."""
        frames = tuple(on_node(*frame, item.place) for frame in item.frames[bool(item.beam) :])
        if not item.beam:
            return replace(item, frames=frames)
        return replace(item, frames=(item.frames[0], *frames), joints=(item.beam + MODES,))

    constraints = tuple(map(in_guide, mechanism.constraints))
    forces = tuple(
        replace(item, frames=tuple(on_node(*frame, item.place) for frame in item.frames)) for item in mechanism.forces
    )
    springs = []
    for spring in mechanism.springs:
        ends = [on_node(link, Pose(np.eye(3), point), spring.place) for link, point in spring.ends]
        springs.append(replace(spring, ends=tuple((link, pose.position) for link, pose in ends)))
    torsion_springs = []
    for spring in mechanism.torsion_springs:
        (a, b) = (on_node(*end, spring.place) for end in spring.ends)
        torsion_springs.append(replace(spring, ends=(a, b)))
    contacts = []
    for contact in mechanism.contacts:
        (a, b) = (on_node(*end, contact.place) for end in contact.ends)
        contacts.append(replace(contact, ends=(a, b)))
    frames = []
    for frame in mechanism.frames:
        link, pose = on_node(frame.link, frame.pose, frame.place)
        frames.append(replace(frame, link=link, pose=pose))
    if errors:
        raise InputErrors(errors)
    for parts in elastic.values():
        parts.add_pieces()
    rigid = [replace(link, elastic=None) for link in mechanism.links]
    return replace(
        mechanism,
        links=(*rigid, *(link for nodes in elastic.values() for link in nodes.links)),
        joints=(*(joint for nodes in elastic.values() for joint in nodes.joints), *joints),
        loops=tuple(loops),
        constraints=constraints,
        springs=tuple(springs),
        torsion_springs=tuple(torsion_springs),
        frames=tuple(frames),
        forces=forces,
        contacts=tuple(contacts),
    )


def _parts(link: Link) -> _Nodes | _Chain | None:
    match link.elastic:
        case ElasticLink():
            return _Nodes(link, link.elastic)
        case RigidElements():
            return _Chain(link, link.elastic)
    return None


@dataclass
class _Chain:
    """The rigid pieces of a link and the joints between them; the first piece is the link itself."""

    link: Link
    elastic: RigidElements
    links: list[Link] = field(init=False)
    joints: list[Joint] = field(init=False)
    names: list[str] = field(init=False)  # of the pieces

    def __post_init__(self) -> None:
        name, place, frame = self.link.name, self.link.place, self.link.elastic_frame
        self.names = [name, *(part_of(name, k) for k in range(1, len(self.elastic.pieces)))]
        self.links = [Link(part_of(name, 0), _inertial(self.elastic.pieces[0]), place)]
        self.joints = [Joint(part_of(name, 0), "fixed", name, part_of(name, 0), frame, place=place)]
        for k, (piece, springs) in enumerate(zip(self.elastic.pieces[1:], self.elastic.joints, strict=True)):
            parent = self.names[k] if k else part_of(name, 0)
            step = piece.start - self.elastic.pieces[k].start
            pose = Pose(np.eye(3), np.array([step, 0.0, 0.0]))
            for spring in springs:
                last = spring is springs[-1]
                child = self.names[k + 1] if last else part_of(name, spring.name)
                self.links.append(Link(child, _inertial(piece) if last else None, place))
                kind = "prismatic" if spring.linear else "revolute"
                self.joints.append(
                    Joint(
                        f"{name}.{spring.name}",
                        kind,
                        parent,
                        child,
                        pose,
                        spring.axis,
                        stiffness=spring.stiffness,
                        damping=spring.damping,
                        place=place,
                    )
                )
                parent, pose = child, Pose.identity()

    def add_pieces(self) -> None:
        """Rigid pieces are drawn as they are."""

    def at(self, pose: Pose) -> tuple[str, Pose]:
        """(link, pose in it) of a pose in the undeformed link."""
        there = self.link.elastic_frame.inverse() @ pose
        k = self.elastic.piece_at(there.position)
        if k == 0:
            return self.link.name, pose
        start = np.array([self.elastic.pieces[k].start, 0.0, 0.0])
        return self.names[k], Pose(there.rotation, there.position - start)


def _inertial(piece: RigidPiece) -> Inertial:
    com = piece.moment / piece.mass
    about_com = piece.inertia - piece.mass * (com @ com * np.eye(3) - np.outer(com, com))
    return Inertial(piece.mass, com, about_com)


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

    def add_pieces(self) -> None:
        """Bodies for the pieces as which the link is drawn, where it is for drawings: bars to all attachments too."""
        if not self.elastic.drawn:
            return
        root = fixed_point(np.zeros(3), len(self.elastic.modes))
        attached = [joint.node for joint in self.joints if joint.node is not None]
        for piece in with_bars_to([root, *attached], self.elastic.pieces()):
            half = 0.5 * (piece.end.path.position - piece.start.path.position)
            self._add_node(secant(piece), (-half, half))

    def at(self, pose: Pose) -> tuple[str, Pose]:
        """(link, pose in it) of a pose in the undeformed elastic link; a new node unless there is one at its place."""
        return self._at(self.link.elastic_frame.inverse() @ pose) or (self.link.name, pose)

    def _at(self, there: Pose) -> tuple[str, Pose] | None:
        """Of a pose in the frame of the elastic link; None where nothing moves relative to it."""
        displacement = self.elastic.displacement(there.position)
        if displacement.is_none:
            return None
        inner = Pose(there.rotation, np.zeros(3))
        for joint, position in zip(self.joints[1:], self.positions, strict=True):
            if np.array_equal(position, there.position):
                return joint.child, inner
        self.positions.append(there.position)
        return self._add_node(displacement), inner

    def _add_node(self, displacement: Displacement, piece: tuple[Array, Array] | None = None) -> str:
        """The name of a new link that moves with a point."""
        name, place = part_of(self.link.name, len(self.joints)), self.link.place
        self.links.append(Link(name, place=place, piece=piece))
        self.joints.append(
            Joint(name, "node", self.links[0].name, name, Pose.identity(), node=displacement, place=place)
        )
        return name
