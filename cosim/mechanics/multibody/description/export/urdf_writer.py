"""A mechanism as URDF.

Format: the URDF XML specification, https://wiki.ros.org/urdf/XML. It has no loops, no springs, no rotor inertia, no
gravity, and no ball joints.
"""

from __future__ import annotations

import math

import numpy as np

from cosim.mechanics.multibody.description.export.prepared import FormatLimits, PreparedRobot
from cosim.mechanics.multibody.description.export.text import (
    add,
    element,
    is_identity,
    number,
    numbers,
    roll_pitch_yaw,
    xml_text,
)
from cosim.mechanics.multibody.description.xmltree import XmlElement
from cosim.mechanics.multibody.mechanism import GRAVITY, Inertial, Joint, Pose

URDF = FormatLimits("URDF", ("revolute", "continuous", "prismatic", "fixed", "free", "planar"))
TYPES = {"free": "floating"}  # of kinds with another name
UNLIMITED = 1e16  # where the format asks for a limit and there is none


def urdf_text(robot: PreparedRobot) -> str:
    """The file; what it cannot say is added to `robot.lost`."""
    root = element("robot", {"name": robot.name})
    for link in robot.links:
        written = add(root, "link", {"name": link.name})
        if link.inertial is not None:
            _inertial(written, link.inertial)
    for joint in robot.joints:
        _joint(root, joint)
    for frame in robot.frames:
        add(root, "link", {"name": frame.name})
        mount = Joint(robot.own_name(f"{frame.name}_mount"), "fixed", frame.link, frame.name, frame.pose)
        _joint(root, mount)
    _name_lost(robot)
    return xml_text(root)


def _name_lost(robot: PreparedRobot) -> None:
    robot.lose("URDF has no rotor inertia: that of {} is not written", robot.joints_with("rotor_inertia"))
    robot.lose("URDF has no damping of free bodies: that of {} is not written", robot.free_with("damping", "friction"))
    robot.lose("URDF has no springs in joints: those of {} are not written", robot.joints_with("stiffness"))
    robot.lose("URDF has no springs: {} are not written", [spring.name for spring in robot.springs])
    torsion = [joint.name for joint in robot.joints if joint.torsion is not None]
    robot.lose("URDF has no springs in joints: those of {} are not written", torsion)
    robot.lose("URDF compensates no weight: links {} have theirs", list(robot.carried))
    if robot.gravity != GRAVITY:
        robot.lost.append(f"URDF has no gravity: give {numbers(robot.gravity)} m/s^2 where it is read")


def _inertial(link: XmlElement, inertial: Inertial) -> None:
    written = add(link, "inertial")
    _origin(written, Pose(np.eye(3), inertial.com))
    add(written, "mass", {"value": number(inertial.mass)})
    i = inertial.inertia
    pairs = ("ixx", 0, 0), ("ixy", 0, 1), ("ixz", 0, 2), ("iyy", 1, 1), ("iyz", 1, 2), ("izz", 2, 2)
    add(written, "inertia", {key: number(i[row, column]) for key, row, column in pairs})


def _origin(parent: XmlElement, pose: Pose) -> None:
    if not is_identity(pose):
        rpy = numbers(roll_pitch_yaw(pose.rotation))
        add(parent, "origin", {"xyz": numbers(pose.position), "rpy": rpy})


def _joint(root: XmlElement, joint: Joint) -> None:
    ranged = math.isfinite(joint.lower) or math.isfinite(joint.upper)
    kind = "continuous" if joint.kind == "revolute" and not ranged else joint.kind
    written = add(root, "joint", {"name": joint.name, "type": TYPES.get(kind, kind)})
    _origin(written, joint.pose)
    add(written, "parent", {"link": joint.parent})
    add(written, "child", {"link": joint.child})
    if kind in ("fixed", "free"):
        return
    add(written, "axis", {"xyz": numbers(joint.axis)})
    limits = {"effort": joint.max_effort, "velocity": joint.max_velocity}
    if kind in ("revolute", "prismatic"):
        limits = {"lower": joint.lower, "upper": joint.upper, **limits}
    if kind in ("revolute", "prismatic") or any(map(math.isfinite, limits.values())):
        finite = {key: math.copysign(min(abs(value), UNLIMITED), value) for key, value in limits.items()}
        add(written, "limit", {key: number(value) for key, value in finite.items()})
    if joint.damping or joint.friction:
        add(written, "dynamics", {"damping": number(joint.damping), "friction": number(joint.friction)})
    if joint.mimic is not None:
        of = joint.mimic
        given = {"joint": of.joint, "multiplier": number(of.multiplier), "offset": number(of.offset)}
        add(written, "mimic", given)
