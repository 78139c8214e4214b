"""What extensions of a URDF state of the motion: transmissions, `ros2_control` and Gazebo.

What acts in a rig is taken over: gear ratios, limits, positions at the start, springs of joints. What changes the
motion and has no counterpart is warned of; what only concerns drawings, contacts, sensors and solvers is left alone.
Formats: https://wiki.ros.org/urdf/XML/Transmission, https://control.ros.org (ros2_control), and
https://classic.gazebosim.org/tutorials?tut=ros_urdf.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from cosim.core.errors import SourceLocation, listed
from cosim.mechanics.multibody.description.diagnostics import Diagnostics
from cosim.mechanics.multibody.description.follower_limits import (
    NO_RANGE,
    leaves_no_range,
    limits_of_leader,
)
from cosim.mechanics.multibody.description.robot_file import FileActuator, NamedState
from cosim.mechanics.multibody.description.xmltree import XmlElement
from cosim.mechanics.multibody.mechanism import Joint

TRUE = ("true", "1", "yes")
IDEAL = "ideal"  # the actuator of a rig whose effort on a joint is that of a motor without inertia behind a gear
# plug-ins of Gazebo that move the robot, by a part of their names
MOVING_PLUGINS = re.compile(
    r"mimic|underactuated|disable_?link|lift_?drag|buoyancy|hydrodynamics|wind|motor_?model|propeller|thruster|planar_move",
    re.IGNORECASE,
)
LOOP_CLOSURE_FRAME = re.compile(r"^(closing_.+)_1$")  # the first frame of a closed loop
# interface of ros2_control -> limits of a rig for its minimum and maximum
LIMITS_OF = {"position": ("lower", "upper"), "velocity": ("velocity", "velocity"), "effort": ("effort", "effort")}
LIMITS_OF_JOINT = {"lower": "lower", "upper": "upper", "velocity": "max_velocity", "effort": "max_effort"}
INITIAL = "initial_value"
STIFFNESS, REFERENCE = "springStiffness", "springReference"


@dataclass
class Extensions:
    """What the extensions state: joints with the springs of Gazebo, and the parts of a `RobotFile`."""

    joints: list[Joint]
    actuators: list[FileActuator] = field(default_factory=list)
    start: dict[str, float] = field(default_factory=dict)  # joint -> position
    velocities: dict[str, float] = field(default_factory=dict)
    start_place: SourceLocation | None = None
    limits: dict[str, dict[str, float]] = field(default_factory=dict)

    def bound(self, joint: str, key: str, value: float) -> None:
        """A limit beside others of this joint: the narrower one counts."""
        known = self.limits.setdefault(joint, {})
        narrower = max if key == "lower" else min
        known[key] = narrower(known[key], value) if key in known else value

    def narrow(self, diagnostics: Diagnostics) -> dict[str, dict[str, float]]:
        """The limits that are narrower than those of the joints; of followers as limits of their leaders."""
        found: dict[str, dict[str, float]] = {}
        by_name = {joint.name: joint for joint in self.joints}
        for joint in self.joints:
            if joint.mimic is not None:
                given, leader = self.limits.pop(joint.name, {}), joint.mimic.joint
                new = limits_of_leader(joint.mimic, given)
                known = {key: getattr(by_name[leader], name) for key, name in LIMITS_OF_JOINT.items()}
                if leaves_no_range(known, new):
                    both = " to ".join(f"{given[key]:.6g}" for key in ("lower", "upper") if key in given)
                    diagnostics.warn(NO_RANGE.format(both, leader), joint.place)
                    new = {}
                for key, value in new.items():
                    self.bound(leader, key, value)
        for joint in self.joints:
            own = {key: getattr(joint, name) for key, name in LIMITS_OF_JOINT.items()}
            inside = {
                key: value
                for key, value in self.limits.get(joint.name, {}).items()
                if (value > own[key] if key == "lower" else value < own[key])
            }
            if inside and joint.kind != "fixed":
                found[joint.name] = inside
        return found

    @property
    def initial(self) -> NamedState | None:
        """The state in which the robot begins."""
        if self.start_place is None:
            return None
        positions, velocities = (
            {name: (value,) for name, value in values.items()} for values in (self.start, self.velocities)
        )
        return NamedState(INITIAL, positions, velocities, self.start_place)


def read_extensions(robot: XmlElement, joints: Sequence[Joint], diagnostics: Diagnostics) -> Extensions:
    """What the extensions of a robot with these joints state; warnings are recorded."""
    found = Extensions(list(joints))
    reader = _ExtensionReader(found, {joint.name: joint for joint in joints}, diagnostics)
    for element in robot.children:
        match element.tag:
            case "transmission":
                reader.add_transmission(element)
            case "ros2_control":
                reader.add_control(element)
            case "gazebo":
                reader.add_gazebo(element)
            case "joint":
                reader.warn_of_properties(element)
    reader.warn_of_groups()
    reader.warn_of_loop_closures([element for element in robot.children if element.tag == "link"])
    return found


@dataclass
class _ExtensionReader:
    found: Extensions
    known: Mapping[str, Joint]
    diagnostics: Diagnostics
    groups: dict[str, tuple[SourceLocation, list[str]]] = field(default_factory=dict)  # what is lost -> of which parts

    def add_transmission(self, element: XmlElement) -> None:
        """The gear between motors and joints: motion of a motor = ratio · motion of the joint."""
        name = element.attributes.get("name", "")
        place = replace(element.place, key=f"transmission '{name}'")
        kind = (_word(element, "type") or _word(element, "plugin")).rpartition("/")[2] or "transmission"
        joints = [joint for joint in _named(element, "joint") if joint in self.known]
        missing = [joint for joint in _named(element, "joint") if joint not in self.known]
        if missing:
            self.diagnostics.warn(f"there is no joint {_quoted(missing)}; the transmission is left out", place)
            return
        if not joints:
            return
        if len(joints) > 1:
            what = (
                f"the motors of a {kind} act on {_quoted(joints)} together, and here each joint has a drive of its own"
            )
            self.diagnostics.warn(f"{what}; a bond graph of these joints has both motors", place)
            self.found.actuators += self._coupled(element, kind, joints, place)
            return
        ratio = math.prod(self._reductions(element, place))
        if ratio == 0.0:
            self.diagnostics.warn("its reduction is 0, which is none; taken as 1", place)
            ratio = 1.0
        motor = next(iter(_named(element, "actuator")), name)
        self.found.actuators.append(FileActuator(motor, {joints[0]: ratio}, IDEAL, place=place))

    def _reductions(self, element: XmlElement, place: SourceLocation) -> Iterator[float]:
        """All reductions in an element."""
        for part in element.walk():
            if part.tag in ("mechanicalReduction", "mechanical_reduction"):
                yield 1.0 if (ratio := self._number(part.text, f"<{part.tag}>", place)) is None else ratio

    def _coupled(
        self, element: XmlElement, kind: str, joints: Sequence[str], place: SourceLocation
    ) -> Iterator[FileActuator]:
        """The motors of a differential with their efforts on its joints, as `DifferentialTransmission` of ROS."""
        motors = [child for child in element.children if child.tag == "actuator"]
        if kind != "DifferentialTransmission" or len(motors) != 2 or len(joints) != 2:
            return
        ends = [child for child in element.children if child.tag == "joint"]
        of_motor, of_joint = ([math.prod(self._reductions(each, place)) for each in parts] for parts in (motors, ends))
        for k, motor in enumerate(motors):
            signs = (1.0, 1.0 - 2.0 * k)
            efforts = {
                joint: sign * of_motor[k] * ratio for joint, sign, ratio in zip(joints, signs, of_joint, strict=True)
            }
            yield FileActuator(motor.attributes.get("name", f"{k}"), efforts, place=place)

    def add_control(self, element: XmlElement) -> None:
        """Limits and positions at the start in `ros2_control`."""
        for joint in (child for child in element.children if child.tag == "joint"):
            name = joint.attributes.get("name", "")
            place = replace(joint.place, key=f"ros2_control joint '{name}'")
            if name not in self.known:
                self.diagnostics.warn(f"there is no joint '{name}'; its settings are left out", place)
                continue
            own = _params(joint)
            if "mimic" in own and self.known[name].mimic is None:
                fix = f'<mimic joint="{own["mimic"]}"/> in the joint makes it follow'
                self.diagnostics.warn(f"it mimics '{own['mimic']}' here alone, so it moves on its own; {fix}", place)
            for interface in joint.children:
                self._add_interface(interface, name, place)
        for part in element.children:
            if part.tag == "transmission":
                self.add_transmission(part)

    def _add_interface(self, interface: XmlElement, joint: str, place: SourceLocation) -> None:
        kind, given = interface.attributes.get("name", ""), _params(interface)
        if interface.tag == "command_interface" and kind in LIMITS_OF:
            sides = {side: self._number(given[side], side, place) for side in ("min", "max") if side in given}
            lower, upper = LIMITS_OF[kind]
            for key, side, factor in ((lower, "min", -1.0), (upper, "max", 1.0)):
                bound = sides.get(side)
                if bound is None:
                    continue
                if lower != upper:
                    self.found.bound(joint, key, bound)
                elif factor * bound > 0.0:  # one limit for both directions: the smaller one is safe
                    self.found.bound(joint, key, factor * bound)
            if lower == upper and len(sides) == 2 and sides["min"] != -(sides["max"] or 0.0):
                what = f"the {kind} is limited to {given['min']} and {given['max']}"
                self.diagnostics.warn(f"{what}; the smaller of both is taken for both directions", place)
        if interface.tag == "state_interface" and INITIAL in given:
            value = self._number(given[INITIAL], INITIAL, place)
            values = {"position": self.found.start, "velocity": self.found.velocities}.get(kind)
            if value is not None and values is not None:
                values[joint] = value
                self.found.start_place = self.found.start_place or place

    def add_gazebo(self, element: XmlElement) -> None:
        """Springs of joints; gravity, joints and plug-ins of Gazebo are lost."""
        name = element.attributes.get("reference", "")
        place = replace(element.place, key=f"gazebo '{name}'" if name else "gazebo")
        if _is(element, "turnGravityOff", TRUE) or _is(element, "gravity", ("false", "0")):
            self._lost(
                "gravity does not act on {} in Gazebo, and it acts here; carry the weight by a law of mechanism.forces",
                name,
                place,
            )
        if _is(element, "kinematic", TRUE):
            self._lost("no force moves {} in Gazebo, and here forces do; prescribe or latch its joint", name, place)
        if _is(element, "static", TRUE):
            self._lost("Gazebo holds the robot still, and here it moves; latch its joints", name, place)
        for child in element.children:
            if child.tag == "joint":
                what = "the joint {} of Gazebo is left out; close the loop with mechanism.loops"
                self._lost(what, child.attributes.get("name", ""), place)
            if child.tag == "plugin":
                called = f"{child.attributes.get('filename', '')} {child.attributes.get('name', '')}"
                if MOVING_PLUGINS.search(called):
                    self._lost(
                        "{} of Gazebo moves the robot and is left out; give what it does in the rig",
                        _plugin(child, called),
                        place,
                    )
        if name in self.known:
            self._add_spring(element, name, place)

    def _add_spring(self, element: XmlElement, name: str, place: SourceLocation) -> None:
        """effort = −stiffness · (position − reference), beside what limits and dampers do."""
        stiffness, reference = (self._number(_word(element, tag), tag, place) for tag in (STIFFNESS, REFERENCE))
        if not stiffness:
            return
        k = next(k for k, joint in enumerate(self.found.joints) if joint.name == name)
        if self.known[name].kind in ("fixed", "planar", "free") or stiffness < 0.0:
            why = "a stiffness below 0" if stiffness < 0.0 else f"a {self.known[name].kind} joint"
            self.diagnostics.warn(f"the spring of {why} is left out; use mechanism.springs", place)
            return
        self.found.joints[k] = replace(self.found.joints[k], stiffness=stiffness, rest=reference or 0.0)

    def warn_of_properties(self, element: XmlElement) -> None:
        """onshape-to-robot writes friction and damping of a joint where nothing reads them."""
        for properties in (child for child in element.children if child.tag == "joint_properties"):
            given = [key for key in ("friction", "damping") if _other_than_zero(properties.attributes.get(key, ""))]
            if given:
                place = replace(element.place, key=f"joint '{element.attributes.get('name', '')}'")
                what = f"{' and '.join(given)} of <joint_properties> {'are' if len(given) > 1 else 'is'} left out"
                self.diagnostics.warn(f"{what}; write <dynamics> in its place", place)

    def warn_of_loop_closures(self, links: Sequence[XmlElement]) -> None:
        """onshape-to-robot names frames that coincide where a loop is closed."""
        named = {link.attributes.get("name", ""): link for link in links}
        for name, link in named.items():
            other = LOOP_CLOSURE_FRAME.sub(r"\g<1>_2", name)
            if other != name and other in named:
                what = f"it is to coincide with link '{other}'; a joint of mechanism.loops between them closes the loop"
                self.diagnostics.warn(what, replace(link.place, key=f"link '{name}'"))

    def _lost(self, what: str, part: str, place: SourceLocation) -> None:
        self.groups.setdefault(what, (place, []))[1].append(part)

    def warn_of_groups(self) -> None:
        for what, (place, parts) in self.groups.items():
            named = _quoted([part for part in dict.fromkeys(parts) if part])
            self.diagnostics.warn(what.format(named), SourceLocation(place.file, place.line, "gazebo"))

    def _number(self, text: str, what: str, place: SourceLocation) -> float | None:
        """A finite number; None for nothing, and with a warning for anything else."""
        if not text.strip():
            return None
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if math.isfinite(value):
            return value
        self.diagnostics.warn(f"{what}: expected a number, got '{text.strip()}'; it is left out", place)
        return None


def _other_than_zero(text: str) -> bool:
    try:
        return float(text or 0.0) != 0.0
    except ValueError:
        return True


def _plugin(element: XmlElement, called: str) -> str:
    """A plug-in of Gazebo and the joint that it moves."""
    joint = _word(element, "joint") or _word(element, "mimicJoint")
    return f"{called.split()[0]} of {joint}" if joint else called.split()[0]


def _is(element: XmlElement, tag: str, words: tuple[str, ...]) -> bool:
    return _word(element, tag).lower() in words


def _word(element: XmlElement, tag: str) -> str:
    """The text of the first child of this tag, or of its attribute `value`; of the attribute `tag`, without a child."""
    for child in element.children:
        if child.tag == tag:
            return child.text or child.attributes.get("value", "").strip()
    return element.attributes.get(tag, "").strip()


def _named(element: XmlElement, tag: str) -> list[str]:
    return [child.attributes.get("name", "") for child in element.children if child.tag == tag]


def _params(element: XmlElement) -> dict[str, str]:
    """The parameters in an element of `ros2_control`: <param name="…">text</param>."""
    found = (child for child in element.children if child.tag == "param")
    return {child.attributes.get("name", ""): child.text for child in found}


def _quoted(names: Sequence[str]) -> str:
    return listed([f"'{name}'" for name in names])
