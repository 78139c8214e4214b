"""A mechanism as SDF 1.11.

Format: http://sdformat.org/spec. What is fixed to a link and has no mass is a <frame>. Rotor inertia and springs
between points are extensions that Drake reads.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from cosim.mechanics.multibody.description.export.at_pose import counted_from
from cosim.mechanics.multibody.description.export.prepared import FormatLimits, PreparedRobot
from cosim.mechanics.multibody.description.export.text import (
    add,
    element,
    is_identity,
    number,
    numbers,
    quaternion,
    xml_text,
)
from cosim.mechanics.multibody.description.xmltree import XmlElement
from cosim.mechanics.multibody.mechanism import GRAVITY, GROUND_LINK, Inertial, Joint, Link, Pose

KINDS = ("revolute", "continuous", "prismatic", "screw", "spherical", "universal", "fixed")
SDF = FormatLimits("SDF", (*KINDS, "free"), KINDS)
TYPES = {"spherical": "ball"}
VERSION = "1.11"
DRAKE = "http://drake.mit.edu"
LEAST = 1e-12  # kg and kg m² of a link without mass that moves, which the format does not have


class SdfWriter:
    """start: free joint -> the pose in which its link begins; positions: see `counted_from`."""

    def __init__(
        self,
        robot: PreparedRobot,
        start: Mapping[str, Pose],
        positions: Mapping[str, float | np.ndarray],
    ) -> None:
        self.robot, self.start = robot, start
        self.links = {link.name: link for link in robot.links}
        counted_from(robot, positions)
        self.names = self._names()

    def text(self) -> str:
        """The file; what it cannot say is added to `robot.lost`."""
        robot = self.robot
        joints = [*robot.joints, *(loop.joint for loop in robot.loops)]
        vendor = {"xmlns:drake": DRAKE} if any(joint.rotor_inertia for joint in joints) else {}
        root = element("sdf", {"version": VERSION, **vendor})
        parent = root
        if robot.gravity != GRAVITY:
            parent = add(root, "world", {"name": "default"})
            add(parent, "gravity", text=numbers(robot.gravity))
        model = add(parent, "model", {"name": self._free_name(robot.name or "robot", set())})
        self._root(model)
        above = {joint.child: joint for joint in robot.joints}
        for link in robot.links:
            if link.name in above:
                self._link(model, link, above[link.name])
        for joint in robot.joints:
            self._joint(model, joint, Pose.identity())
        for loop in robot.loops:
            self._joint(model, loop.joint, loop.child_pose)
        for frame in robot.frames:
            self._frame(model, frame.name, frame.link, frame.pose)
        self._name_lost(joints)
        return xml_text(root)

    def _name_lost(self, joints: list[Joint]) -> None:
        robot = self.robot
        robot.lose("SDF has no springs: {} are not written", [spring.name for spring in robot.springs])
        rotors = robot.joints_with("rotor_inertia")
        robot.lose("SDF has no rotor inertia: Drake reads that of {}, other programs do not", rotors)
        springs = [joint.name for joint in joints if joint.torsion is not None]
        robot.lose("SDF has no springs in ball joints: those of {} are not written", springs)
        robot.lose(
            "SDF has no damping of free bodies: that of {} is not written", robot.free_with("damping", "friction")
        )
        partly = [name for name, part in robot.carried.items() if part != 1.0]
        robot.lose("SDF carries the weight of a link as a whole or not at all: {} have theirs", partly)
        renamed = [f"{name}' as '{new}" for name, new in self.names.items() if new not in (name, GROUND_LINK)]
        renamed += [f"{name}' as '{new}" for name, new in self.joint_names.items() if new != name]
        robot.note("links and joints share their names in SDF, and :: is reserved: {} are written", renamed)

    # --- names ---

    def _names(self) -> dict[str, str]:
        """Name of a link, joint or frame -> in the file, where all share one space of names."""
        robot, used, found = self.robot, {GROUND_LINK}, {}
        self.joint_names: dict[str, str] = {}
        for joint in [*robot.joints, *(loop.joint for loop in robot.loops)]:
            if self._is_written(joint):
                self.joint_names[joint.name] = self._free_name(joint.name, used)
        for name in [*self.links, *(frame.name for frame in robot.frames)]:
            found[name] = self._free_name(name if name not in self.joint_names else f"{name}_link", used)
        if not self._has_root_link:
            found[robot.root] = GROUND_LINK
        return found

    @staticmethod
    def _free_name(name: str, used: set[str]) -> str:
        name = name.replace("::", "_").strip() or "unnamed"
        if name.startswith("__") and name.endswith("__"):
            name = f"_{name.strip('_')}_"
        while name in used:
            name += "_"
        used.add(name)
        return name

    @property
    def _has_root_link(self) -> bool:
        return self.links[self.robot.root].inertial is not None

    def _is_written(self, joint: Joint) -> bool:
        return joint.kind != "free" and not self._is_frame(joint)

    def _is_frame(self, joint: Joint) -> bool:
        """Whether a joint carries but a frame."""
        return joint.kind == "fixed" and self.links[joint.child].inertial is None

    # --- parts ---

    def _root(self, model: XmlElement) -> None:
        robot = self.robot
        if not self._has_root_link:
            return
        link = add(model, "link", {"name": self.names[robot.root]})
        self._inertial(link, self.links[robot.root])
        mount = self._free_name(f"{robot.root}_mount", {*self.names.values(), *self.joint_names.values()})
        joint = add(model, "joint", {"name": mount, "type": "fixed"})
        add(joint, "parent", text=GROUND_LINK)
        add(joint, "child", text=self.names[robot.root])

    def _link(self, model: XmlElement, link: Link, joint: Joint) -> None:
        pose, parent = joint.pose, joint.parent
        if joint.kind == "free":
            pose, parent = pose @ self.start.get(joint.name, Pose.identity()), GROUND_LINK
        if self._is_frame(joint):
            self._frame(model, link.name, parent, pose)
            return
        written = add(model, "link", {"name": self.names[link.name]})
        self._pose(written, pose, "" if self.names.get(parent, GROUND_LINK) == GROUND_LINK else self.names[parent])
        if self.robot.carried.get(link.name) == 1.0:
            add(written, "gravity", text="false")
        self._inertial(written, link)

    def _frame(self, model: XmlElement, name: str, link: str, pose: Pose) -> None:
        to = self.names[link]
        if to == GROUND_LINK and self.names[name] == GROUND_LINK:
            return
        written = add(model, "frame", {"name": self.names[name], "attached_to": to})
        self._pose(written, pose, "")

    @staticmethod
    def _pose(parent: XmlElement, pose: Pose, relative_to: str) -> None:
        """relative_to: "" for what it is relative to by default."""
        if is_identity(pose) and not relative_to:
            return
        attributes = {"relative_to": relative_to} if relative_to else {}
        if np.array_equal(pose.rotation, np.eye(3)):
            add(parent, "pose", attributes, numbers((*pose.position, 0, 0, 0)))
            return
        attributes["rotation_format"] = "quat_xyzw"
        add(parent, "pose", attributes, numbers((*pose.position, *quaternion(pose.rotation))))

    def _inertial(self, parent: XmlElement, link: Link) -> None:
        inertial = link.inertial or Inertial(LEAST, np.zeros(3), LEAST * np.eye(3))
        written = add(parent, "inertial")
        self._pose(written, Pose(np.eye(3), inertial.com), "")
        add(written, "mass", text=number(inertial.mass))
        moments, i = add(written, "inertia"), inertial.inertia
        for key, row, column in (
            ("ixx", 0, 0),
            ("ixy", 0, 1),
            ("ixz", 0, 2),
            ("iyy", 1, 1),
            ("iyz", 1, 2),
            ("izz", 2, 2),
        ):
            add(moments, key, text=number(i[row, column]))

    def _joint(self, model: XmlElement, joint: Joint, frame: Pose) -> None:
        """frame: of the joint, in its child."""
        if not self._is_written(joint):
            return
        written = add(model, "joint", {"name": self.joint_names[joint.name], "type": TYPES.get(joint.kind, joint.kind)})
        self._pose(written, frame, "")
        add(written, "parent", text=self.names[joint.parent])
        add(written, "child", text=self.names[joint.child])
        if joint.kind == "screw":
            add(written, "screw_thread_pitch", text=number(joint.pitch * 2.0 * math.pi))
        if joint.kind not in ("fixed", "spherical") or joint.damping or joint.friction:
            self._axis(written, "axis", joint, joint.axis)
        if joint.second_axis is not None:
            self._axis(written, "axis2", joint, joint.second_axis)
        if joint.rotor_inertia:
            add(written, "drake:rotor_inertia", text=number(joint.rotor_inertia))
            add(written, "drake:gear_ratio", text="1")

    def _axis(self, parent: XmlElement, tag: str, joint: Joint, axis: np.ndarray) -> None:
        written = add(parent, tag)
        add(written, "xyz", text=numbers(axis))
        bounds = {
            "lower": joint.lower,
            "upper": joint.upper,
            "effort": joint.max_effort,
            "velocity": joint.max_velocity,
        }
        finite = {key: bound for key, bound in bounds.items() if math.isfinite(bound)}
        if finite:
            limit = add(written, "limit")
            for key, bound in finite.items():
                add(limit, key, text=number(bound))
        law = {"damping": joint.damping, "friction": joint.friction}
        law |= {"spring_stiffness": joint.stiffness, "spring_reference": joint.rest if joint.stiffness else 0.0}
        if any(law.values()):
            dynamics = add(written, "dynamics")
            for key, value in law.items():
                if value:
                    add(dynamics, key, text=number(value))
        if joint.mimic is not None and joint.mimic.joint in self.joint_names:
            mimic = add(written, "mimic", {"joint": self.joint_names[joint.mimic.joint]})
            for key, value in (
                ("multiplier", joint.mimic.multiplier),
                ("offset", joint.mimic.offset),
                ("reference", 0.0),
            ):
                add(mimic, key, text=number(value))
