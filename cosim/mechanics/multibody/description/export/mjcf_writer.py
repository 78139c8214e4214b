"""A mechanism as MJCF.

Format: the MuJoCo XML reference, https://mujoco.readthedocs.io/en/stable/XMLreference.html. A link without mass between
two joints is no body there: both joints belong to the body behind it. Loops are equality constraints between sites,
which MuJoCo lets give way a little.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from cosim.core.errors import InputError
from cosim.mechanics.multibody.description.export.prepared import FormatLimits, PreparedRobot
from cosim.mechanics.multibody.description.export.text import add, element, number, numbers, quaternion, xml_text
from cosim.mechanics.multibody.description.inertia import merged_inertials
from cosim.mechanics.multibody.description.xmltree import XmlElement
from cosim.mechanics.multibody.mechanism import GROUND_LINK, Inertial, Joint, Link, Pose

MJCF = FormatLimits(
    "MJCF",
    ("revolute", "continuous", "prismatic", "spherical", "free", "fixed"),
    ("revolute", "continuous", "spherical", "fixed"),
    massless=False,
    coupled_rotors=True,
)
TYPES = {"revolute": "hinge", "continuous": "hinge", "prismatic": "slide", "spherical": "ball", "free": "free"}
LEAST_INERTIA = 1e-14  # kg m², of bodies that move; MuJoCo refuses less
HINGE = 0.1  # m: between the two points of a hinge that closes a loop
ROUNDING = 1e-9  # relative excess of a moment of inertia over the sum of the others, which MuJoCo refuses


@dataclass
class _BodyWithJoints:
    """A body with its joints in series, each with its frame in the parent of the body, at coordinates 0."""

    link: str
    joints: list[tuple[Joint, Pose]]
    pose: Pose


@dataclass
class MjcfWriter:
    """start: free joint -> the pose in which its body begins."""

    robot: PreparedRobot
    start: Mapping[str, Pose] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.links = {link.name: link for link in self.robot.links}
        self.below: dict[str, list[Joint]] = defaultdict(list)
        for joint in self.robot.joints:
            self.below[joint.parent].append(joint)
        self.sites: dict[str, list[tuple[str, Pose]]] = defaultdict(list)
        self.inertials = _inertials(self.robot)
        self.welded = {link: self._welded(link) for link in self.links}

    def text(self) -> str:
        """The file; what it cannot say is added to `robot.lost`."""
        robot = self.robot
        root = element("mujoco", {"model": robot.name})
        compiler = {"angle": "radian", "autolimits": "true", "inertiafromgeom": "false"}
        least = min((float(np.linalg.eigvalsh(i.inertia)[0]) for i in self.inertials.values()), default=1.0)
        if least < LEAST_INERTIA:
            compiler["boundinertia"] = number(LEAST_INERTIA)
        add(root, "compiler", compiler)
        add(root, "option", {"gravity": numbers(robot.gravity)})
        world = add(root, "worldbody")
        equality, tendon = element("equality"), element("tendon")
        self._couplings(equality, tendon)
        self._bodies(world)
        root.children += [part for part in (tendon, equality) if part.children]
        self._name_lost()
        return xml_text(root)

    def _name_lost(self) -> None:
        robot = self.robot
        robot.note("MJCF has no limits of velocity: those of {} are not written", robot.joints_with("max_velocity"))
        along = (
            "MJCF has friction and rotor inertia of free bodies along the axes of the world: those of {} act otherwise"
        )
        robot.lose(along, robot.free_with("friction", "rotor_inertia"))
        useless = [joint.name for joint in robot.joints if joint.max_effort == 0.0]
        robot.note("MJCF has no limit of effort of 0: those of {} are not written", useless)
        for loop in robot.loops:
            of = loop.joint
            limits = (of.lower, of.upper, of.max_effort)
            if any(map(math.isfinite, limits)):
                robot.lost.append(
                    f"MJCF has no limits of a joint that closes a loop: those of '{of.name}' are not written"
                )
            if of.damping or of.friction or of.stiffness or of.rotor_inertia:
                what = f"the spring, damping, friction and rotor of loop joint '{of.name}' are not written"
                robot.lost.append(what)

    # --- bodies ---

    def _bodies(self, world: XmlElement) -> None:
        robot = self.robot
        base = world
        if robot.root != GROUND_LINK:
            base = add(world, "body", {"name": robot.root})
            self._content(base, robot.root)
        else:
            self._sites(world, robot.root)
        stack = [(joint, base) for joint in reversed(self.below[robot.root])]
        while stack:
            joint, parent = stack.pop()
            chain = self._chain(joint)
            free = joint.kind == "free"
            pose = chain.pose @ self.start.get(joint.name, Pose.identity()) if free else chain.pose
            attributes = {"name": chain.link, **_pose(pose)}
            if chain.link in robot.carried:
                attributes["gravcomp"] = number(robot.carried[chain.link])
            body = add(world if free else parent, "body", attributes)
            for each, frame in chain.joints:
                self._joint(body, each, chain.pose.inverse() @ frame)
            self._content(body, chain.link)
            stack += [(below, body) for below in reversed(self.below[chain.link])]

    def _chain(self, joint: Joint) -> _BodyWithJoints:
        """A joint and those behind it up to a link with mass."""
        joints = [(joint, joint.pose)] if joint.kind != "fixed" else []
        link, pose = joint.child, joint.pose
        while joints and self._is_between(link):
            (after,) = self.below[link]
            pose = pose @ after.pose
            link = after.child
            if after.kind != "fixed":
                joints.append((after, pose))
        moves = joint.kind != "fixed"
        if moves and not self.welded[link]:
            what = f"link '{link}' moves without mass, which MuJoCo refuses; give it mass, or write SDF"
            raise InputError(what, self.links[link].place)
        return _BodyWithJoints(link, joints, pose)

    def _is_between(self, link: str) -> bool:
        """Whether a link is nothing but a place between two joints."""
        after = self.below[link]
        plain = self.links[link].inertial is None and link not in self.sites and link not in self.robot.carried
        if not plain or len(after) != 1 or self.welded[link]:
            return False
        turned = not np.array_equal(after[0].pose.rotation, np.eye(3))
        above = next(joint for joint in self.robot.joints if joint.child == link)
        return not (above.kind == "spherical" and turned) and above.kind != "free"

    def _welded(self, link: str) -> bool:
        """Whether a link or one that is fixed to it has mass."""
        stack = [link]
        while stack:
            at = stack.pop()
            inertial = self.inertials.get(at)
            if inertial is not None and inertial.mass > 0.0:
                return True
            stack += [joint.child for joint in self.below[at] if joint.kind == "fixed"]
        return False

    def _content(self, body: XmlElement, link: str) -> None:
        inertial = self.inertials.get(link)
        if inertial is not None:
            _inertial(body, inertial, self.links[link])
        self._sites(body, link)

    def _sites(self, body: XmlElement, link: str) -> None:
        for name, pose in self.sites.get(link, ()):
            add(body, "site", {"name": name, **_pose(pose)})

    def _joint(self, body: XmlElement, joint: Joint, frame: Pose) -> None:
        """frame: of the joint, in the body."""
        given = {"name": joint.name, "type": TYPES[joint.kind]}
        single = joint.kind not in ("spherical", "free")
        if joint.kind != "free" and frame.position.any():
            given["pos"] = numbers(frame.position)
        if single:
            given["axis"] = numbers(frame.rotation @ joint.axis)
            if math.isfinite(joint.lower) or math.isfinite(joint.upper):
                bounds = (max(joint.lower, -_UNLIMITED), min(joint.upper, _UNLIMITED))
                given["range"] = numbers(bounds)
            if 0.0 < joint.max_effort < math.inf:
                given["actuatorfrcrange"] = numbers((-joint.max_effort, joint.max_effort))
        keys = {"damping": joint.damping, "frictionloss": joint.friction, "armature": joint.rotor_inertia}
        if single and joint.stiffness:
            keys |= {"stiffness": joint.stiffness, "springref": joint.rest}
        if joint.torsion is not None:
            isotropic = np.ndim(joint.torsion.stiffness) == 0 and not np.any(joint.torsion.rest[:3])
            if isotropic and joint.kind == "spherical":
                keys["stiffness"] = float(joint.torsion.stiffness)
            else:
                self.robot.lost.append(f"the spring of joint '{joint.name}' is not written: it differs by direction")
        add(body, "joint", given | {key: number(value) for key, value in keys.items() if value})

    # --- what couples bodies ---

    def _site(self, wanted: str, link: str, pose: Pose) -> str:
        name = self.robot.own_name(wanted)
        self.sites[link].append((name, pose))
        return name

    def _couplings(self, equality: XmlElement, tendon: XmlElement) -> None:
        robot = self.robot
        for frame in robot.frames:
            self.sites[frame.link].append((frame.name, frame.pose))
        for loop in robot.loops:
            joint = loop.joint
            points = [("", np.zeros(3))]
            if joint.kind in ("revolute", "continuous"):
                points.append(("_2", HINGE * joint.axis))
            for suffix, point in points:
                at = Pose(np.eye(3), point)
                ends = (("parent", joint.parent, joint.pose), ("child", joint.child, loop.child_pose))
                names = [self._site(f"{joint.name}{suffix}_{end}", link, pose @ at) for end, link, pose in ends]
                tag = "weld" if joint.kind == "fixed" else "connect"
                name = robot.own_name(joint.name + suffix) if suffix else joint.name
                add(equality, tag, {"name": name, "site1": names[0], "site2": names[1]})
        for joint in robot.joints:
            if joint.mimic is not None:
                of = joint.mimic
                given = {
                    "joint1": joint.name,
                    "joint2": of.joint,
                    "polycoef": numbers((of.offset, of.multiplier, 0, 0, 0)),
                }
                add(equality, "joint", given)
        for spring in robot.springs:
            law = {"springlength": spring.length, "stiffness": spring.stiffness, "damping": spring.damping}
            written = add(tendon, "spatial", {"name": spring.name} | {key: number(x) for key, x in law.items()})
            for end, (link, point) in zip("ab", spring.ends, strict=True):
                add(written, "site", {"site": self._site(f"{spring.name}_{end}", link, Pose(np.eye(3), point))})
        for rotor in robot.rotors:
            law = {"armature": rotor.inertia, "damping": rotor.damping, "frictionloss": rotor.friction}
            given = {key: number(value) for key, value in law.items() if value}
            written = add(tendon, "fixed", {"name": rotor.name} | given)
            for joint, turns in rotor.turns:
                add(written, "joint", {"joint": joint, "coef": number(turns)})


_UNLIMITED = 1e16  # where only the other bound is finite


def _pose(pose: Pose) -> dict[str, str]:
    found = {}
    if pose.position.any():
        found["pos"] = numbers(pose.position)
    if not np.array_equal(pose.rotation, np.eye(3)):
        x, y, z, w = quaternion(pose.rotation)
        found["quat"] = numbers((w, x, y, z))
    return found


def _inertials(robot: PreparedRobot) -> dict[str, Inertial]:
    """Link -> inertial; where a link alone has an impossible one, which MuJoCo refuses, the first link of its rigid
    body has the whole of it."""
    found = {link.name: link.inertial for link in robot.links if link.inertial is not None}
    wrong = {name for name, inertial in found.items() if not _is_possible(inertial)}
    if not wrong:
        return found
    bodies = merged_inertials(robot.links, robot.joints)
    fixed = {joint.child: joint.parent for joint in robot.joints if joint.kind == "fixed"}

    def first(name: str) -> str:
        while name in fixed:
            name = fixed[name]
        return name

    for group in {first(name) for name in wrong}:
        members = [name for name in found if first(name) == group]
        body = bodies[members[0]]
        for name in members:
            del found[name]
        found[group] = body
    return found


def _is_possible(inertial: Inertial) -> bool:
    small, middle, large = np.linalg.eigvalsh(inertial.inertia).tolist()
    return large <= (small + middle) * (1.0 + ROUNDING) + LEAST_INERTIA and small >= -LEAST_INERTIA


def _inertial(body: XmlElement, inertial: Inertial, link: Link) -> None:
    if not _is_possible(inertial):
        what = f"the inertia of link '{link.name}' is physically impossible, which MuJoCo refuses; correct it"
        raise InputError(what, link.place)
    moments, axes = np.linalg.eigh(inertial.inertia)
    off = inertial.inertia - np.diag(inertial.inertia.diagonal())
    if not off.any():
        moments, axes = inertial.inertia.diagonal(), np.eye(3)
    elif np.linalg.det(axes) < 0.0:
        axes = -axes
    given = {"pos": numbers(inertial.com), "mass": number(inertial.mass)}
    x, y, z, w = quaternion(axes)
    if off.any():
        given["quat"] = numbers((w, x, y, z))
    add(body, "inertial", given | {"diaginertia": numbers(np.maximum(moments, 0.0))})
