"""URDF files: a strict reader of their kinematics and inertias; xacro in them is expanded first.

All errors of a file are reported together, each with its line. Of elements for other tools `urdf_extensions` takes what
states the motion, `urdf_collisions` the shapes of <collision>; others (visual, ...) and vendor extensions are ignored.
Format: the URDF XML specification, https://wiki.ros.org/urdf/XML.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from cosim.core.errors import InputError, InputErrors, SourceLocation, listed
from cosim.core.paths import find_package, read_file
from cosim.mechanics.multibody.description.diagnostics import Diagnostics
from cosim.mechanics.multibody.description.inertia import inertia_findings, inertia_matrix, merged_inertials
from cosim.mechanics.multibody.description.joint_ranges import in_order, warn_of_unused
from cosim.mechanics.multibody.description.plausible_units import note_of_point_masses
from cosim.mechanics.multibody.description.robot_file import RobotFile
from cosim.mechanics.multibody.description.topology import build_mechanism
from cosim.mechanics.multibody.description.urdf_collisions import collisions_of
from cosim.mechanics.multibody.description.urdf_extensions import Extensions, read_extensions
from cosim.mechanics.multibody.description.xacro import MACRO, expand_xacro, uses_xacro
from cosim.mechanics.multibody.description.xmltree import (
    BLANK,
    XmlElement,
    begins_blank,
    only_child,
    parse_xml,
    written_numbers,
)
from cosim.mechanics.multibody.mechanism import Inertial, Joint, Link, Mechanism, Mimic, Pose, pose_of

# URDF joint type -> joint kind
KINDS = {
    "revolute": "revolute",
    "continuous": "continuous",
    "prismatic": "prismatic",
    "floating": "free",
    "planar": "planar",
    "fixed": "fixed",
}
BOUNDED = ("revolute", "prismatic")  # kinds with position limits

# element -> (children, attributes) that are read
READ = {
    "link": (("inertial",), ("name",)),
    "inertial": (("origin", "mass", "inertia"), ()),
    "mass": ((), ("value",)),
    "inertia": ((), ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")),
    "joint": (
        ("parent", "child", "origin", "axis", "limit", "dynamics", "mimic", "safety_controller"),
        ("name", "type"),
    ),
    "parent": ((), ("link",)),
    "child": ((), ("link",)),
    "origin": ((), ("xyz", "rpy")),
    "axis": ((), ("xyz",)),
    "limit": ((), ("lower", "upper", "effort", "velocity")),
    "dynamics": ((), ("damping", "friction")),
    "mimic": ((), ("joint", "multiplier", "offset")),
    "safety_controller": ((), ("soft_lower_limit", "soft_upper_limit", "k_position", "k_velocity")),
}
# root element of a file that is no URDF -> what it is, and the fix
OTHER_ROOTS = {
    "mujoco": "is an MJCF file; name it under mechanism.mjcf instead of mechanism.urdf",
    "sdf": "is an SDF file; name it under mechanism.sdf instead of mechanism.urdf",
}
SOFT = {"lower": "soft_lower_limit", "upper": "soft_upper_limit"}  # limit of a rig -> attribute
UNIT_AXIS = 1e-4  # largest deviation of an axis from length 1 that counts as rounding
SIMILARITY = 0.8  # from which a name counts as a misspelling of a known one


def read_urdf(
    path: str | Path, xacro_arguments: Mapping[str, str] | None = None, packages: Sequence[Path] = ()
) -> RobotFile:
    """What the URDF or xacro file at `path` states.

    xacro_arguments: values of its arguments; packages: folders in which `$(find PACKAGE)` searches first. Raises
    InputError (InputErrors for errors in the file).
    """
    return parse_robot(read_text(path), str(path), xacro_arguments, packages)


def read_text(path: str | Path) -> bytes:
    """The content of a file. Raises InputError."""
    try:
        return read_file(path)
    except FileNotFoundError:
        raise InputError("no such file", SourceLocation(str(path))) from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", SourceLocation(str(path))) from None


def parse_urdf(text: str | bytes, file: str = "<string>") -> Mechanism:
    """The mechanism in the URDF `text`, see `parse_robot`."""
    return parse_robot(text, file).mechanism


def parse_robot(
    text: str | bytes,
    file: str = "<string>",
    xacro_arguments: Mapping[str, str] | None = None,
    packages: Sequence[Path] = (),
) -> RobotFile:
    """What the URDF `text` states; `file` is its name in messages. Text with xacro is expanded, see `read_urdf`.

    Lengths in m, angles in rad, masses in kg as in URDF; the inertia of a link is expressed along the axes of the
    link frame. A link without <inertial>, or with zero mass and zero inertia, is massless.
    Raises InputErrors with every error, in the order of the lines.
    """
    robot, diagnostics = parse_xml(text, file), Diagnostics()
    if begins_blank(text):
        diagnostics.note(BLANK, SourceLocation(file, 1))
    macros = [element.attributes.get("name", "") for element in robot.children if element.tag == MACRO]
    if robot.tag != "robot":
        what = OTHER_ROOTS.get(robot.tag, f"expected the element <robot>, got <{robot.tag}>")
        raise InputErrors([InputError(what, robot.place)])
    if uses_xacro(robot):
        near = Path(file).parent
        robot = expand_xacro(robot, xacro_arguments or {}, lambda name: find_package(name, packages, near), diagnostics)
    elif xacro_arguments:
        what = "the file does not use xacro, so it takes no xacro arguments; take them out"
        raise InputErrors([InputError(what, robot.place)])
    if not robot.attributes.get("name"):
        diagnostics.note("<robot> has no name; called 'robot'", robot.place)
    links, joints = (
        [_ElementReader(element, diagnostics) for element in robot.children if element.tag == tag]
        for tag in ("link", "joint")
    )
    if not links:
        diagnostics.error(f"the robot has no <link>{_uncalled(macros)}", robot.place)
    known = [link for part in links if (link := _link(part)).name]
    connected = [_joint(part) for part in joints]
    _check_inertias(links, merged_inertials(known, connected))
    diagnostics.notes += note_of_point_masses(known, connected)
    beside = read_extensions(robot, connected, diagnostics)
    for part in joints:
        _add_soft_limits(part, beside)
    mechanism = build_mechanism(robot.attributes.get("name") or "robot", known, beside.joints, diagnostics)
    beside.joints, of_followers = list(mechanism.joints), Diagnostics()
    limits = beside.narrow(of_followers)
    mechanism = replace(mechanism, warnings=(*mechanism.warnings, *of_followers.warnings))
    return RobotFile(
        mechanism,
        actuators=tuple(beside.actuators),
        start=beside.initial,
        limits=limits,
        collisions=collisions_of(robot),
    )


def _uncalled(macros: Sequence[str]) -> str:
    """Why a file of macros has no links."""
    names = listed([f"'{name}'" for name in macros])
    one = len(macros) == 1
    what, it = (f"the macro {names}", "it") if one else (f"the macros {names}", "them")
    fix = f"name the file that includes and calls {it}, or call {it} here"
    return f": the file defines {what} and does not call {it}; {fix}" if macros else ""


@dataclass
class _ElementReader:
    """A link or a joint being read: parses values from its elements and records errors."""

    element: XmlElement
    diagnostics: Diagnostics
    inertia: tuple[XmlElement, float, np.ndarray] | None = None  # of a link: its element, mass and inertia

    def __post_init__(self) -> None:
        self.name = self.element.attributes.get("name", "")
        if not self.name:
            self.error(self.element, f"a {self.element.tag} needs a name")
        self._note_misspellings()

    def place(self, element: XmlElement) -> SourceLocation:
        return SourceLocation(element.file, element.line, f"{self.element.tag} '{self.name}'" if self.name else "")

    def error(self, element: XmlElement, what: str) -> None:
        self.diagnostics.error(what, self.place(element))

    def note(self, element: XmlElement, what: str) -> None:
        self.diagnostics.note(what, self.place(element))

    def warn(self, element: XmlElement, what: str) -> None:
        self.diagnostics.warn(what, self.place(element))

    def child(self, parent: XmlElement, tag: str, required: bool = False) -> XmlElement | None:
        found = only_child(parent, tag, self.error, self.warn)
        if required and found is None:
            self.error(parent, f"<{parent.tag}> has no <{tag}>; add it" + ", 0 for a point mass" * (tag == "inertia"))
        return found

    def text(self, element: XmlElement | None, attribute: str) -> str:
        """The attribute, "" with an error recorded if it is missing; "" for a missing element."""
        if element is None:
            return ""
        text = element.attributes.get(attribute, "").strip()
        if not text:
            self.error(element, f"<{element.tag}> has no '{attribute}'")
        return text

    def numbers(
        self, element: XmlElement, attribute: str, count: int, default: float | None = None
    ) -> list[float] | None:
        """The `count` numbers of an attribute; None with an error recorded if they cannot be read."""
        if default is not None and attribute not in element.attributes:
            return [default] * count
        text = self.text(element, attribute)
        if not text:
            return None
        values = written_numbers(text)
        if len(values) == count and all(map(math.isfinite, values)):
            return values
        expected = "a finite number" if count == 1 else f"{count} finite numbers"
        self.error(element, f"<{element.tag}> {attribute}: expected {expected}, got '{text}'")
        return None

    def number(self, element: XmlElement, attribute: str, default: float | None = None) -> float | None:
        values = self.numbers(element, attribute, 1, default)
        return values[0] if values else None

    def not_negative(self, element: XmlElement, attribute: str, default: float | None = None) -> float:
        """The number, 0 with an error recorded if it is missing, unreadable or negative."""
        value = self.number(element, attribute, default) or 0.0
        if value < 0.0:
            self.error(element, f"<{element.tag}> {attribute} is negative ({value:g}); it must be 0 or more")
        return value

    def pose(self, parent: XmlElement) -> Pose:
        origin = self.child(parent, "origin")
        if origin is None:
            return Pose.identity()
        xyz, rpy = (self.numbers(origin, attribute, 3, default=0.0) for attribute in READ["origin"][1])
        self.diagnostics.angles.append((self.place(origin), rpy or (0.0,)))
        return pose_of(xyz or (0.0, 0.0, 0.0), rpy or (0.0, 0.0, 0.0))

    def _note_misspellings(self) -> None:
        """Notes on ignored elements and attributes whose names resemble known ones."""
        stack = [self.element]
        while stack:
            element = stack.pop()
            children, attributes = READ[element.tag]
            stack += [child for child in element.children if child.tag in children]
            for form, given, known in (
                ("<{}>", [child.tag for child in element.children], children),
                ("'{}'", element.attributes, attributes),
            ):
                for name in given:
                    if name not in known and (close := difflib.get_close_matches(name, known, 1, SIMILARITY)):
                        written_as, meant = form.format(name), form.format(close[0])
                        self.note(element, f"{written_as} of <{element.tag}> is ignored; did you mean {meant}?")


def _link(part: _ElementReader) -> Link:
    return Link(part.name, _inertial(part), part.place(part.element))


def _check_inertias(parts: Sequence[_ElementReader], bodies: Mapping[str, Inertial]) -> None:
    """Errors and notes about the inertias of links, see `inertia_findings`."""
    for part in parts:
        if part.inertia is None:
            continue
        element, mass, inertia = part.inertia
        mistake, note = inertia_findings(Inertial(mass, np.zeros(3), inertia), bodies.get(part.name))
        if mistake:
            part.error(element, mistake)
        if note:
            part.note(element, note)


def _inertial(part: _ElementReader) -> Inertial | None:
    inertial = part.child(part.element, "inertial")
    if inertial is None:
        return None
    pose = part.pose(inertial)
    mass_element, inertia_element = (part.child(inertial, tag, required=True) for tag in ("mass", "inertia"))
    mass = part.not_negative(mass_element, "value") if mass_element else 0.0
    if inertia_element is None:
        return None
    moments = [part.number(inertia_element, attribute) for attribute in READ["inertia"][1]]
    known = [moment for moment in moments if moment is not None]
    if len(known) < len(moments) or (mass == 0.0 and not any(known)):
        return None
    inertia = inertia_matrix(*known)
    part.inertia = inertia_element, mass, inertia
    if mass == 0.0:
        part.note(inertia_element, "an inertia without mass; used as given")
    return Inertial(mass, pose.position, pose.rotation @ inertia @ pose.rotation.T)


def _joint(part: _ElementReader) -> Joint:
    element = part.element
    written = part.text(element, "type")
    if written and written not in KINDS:
        part.error(element, f"joint type '{written}' is not supported (supported: {', '.join(KINDS)})")
    kind = KINDS.get(written, "fixed")
    parent, child = (part.text(part.child(element, end, required=True), "link") for end in ("parent", "child"))
    pose = part.pose(element)
    place = part.place(element)
    if kind == "fixed":
        return Joint(part.name, "fixed", parent, child, pose, place=place)
    lower, upper, velocity, effort = _limits(part, kind)
    damping, friction = _friction(part)
    return Joint(
        part.name,
        kind,
        parent,
        child,
        pose,
        axis=_axis(part) if kind != "free" else np.array([0.0, 0.0, 1.0]),
        lower=lower,
        upper=upper,
        max_velocity=velocity,
        max_effort=effort,
        damping=damping,
        friction=friction,
        mimic=_mimic(part),
        place=place,
    )


def _axis(part: _ElementReader) -> np.ndarray:
    default = np.array([1.0, 0.0, 0.0])
    element = part.child(part.element, "axis")
    xyz = part.numbers(element, "xyz", 3) if element else None
    if element is None:
        part.note(part.element, "a joint that moves without <axis>; taken as 1 0 0")
    if element is None or xyz is None:
        return default
    length = math.hypot(*xyz)
    if length == 0.0:
        part.error(element, "the axis is zero; give it a direction")
        return default
    if abs(length - 1.0) > UNIT_AXIS:
        part.note(element, f"the axis has the length {length:.6g}; normalised")
    return np.array(xyz) / length


def _limits(part: _ElementReader, kind: str) -> tuple[float, float, float, float]:
    """(lower, upper, velocity, effort); infinite where the file sets no limit."""
    element = part.child(part.element, "limit")
    if element is None:
        if kind in BOUNDED:
            part.note(part.element, f"a {kind} joint without <limit>; taken as unlimited")
        return -math.inf, math.inf, math.inf, math.inf
    velocity, effort = part.not_negative(element, "velocity"), part.not_negative(element, "effort")
    lower, upper = -math.inf, math.inf
    if kind in BOUNDED:
        given = [bound for bound in ("lower", "upper") if bound in element.attributes]
        if given:
            lower, upper = (part.number(element, bound, default=0.0) or 0.0 for bound in ("lower", "upper"))
        if len(given) < 2:
            taken = "the other one is 0" if given else "taken as unlimited"
            part.note(element, f"<limit> without {'both' if given else 'any'} of lower and upper; {taken}")
    elif element.attributes.keys() & {"lower", "upper"} and kind == "continuous":
        lowest, highest = (part.number(element, bound, default=0.0) or 0.0 for bound in ("lower", "upper"))
        warn_of_unused(lowest, highest, partial(part.warn, element))
    return *in_order(lower, upper, partial(part.warn, element), "<limit> "), velocity, effort


def _add_soft_limits(part: _ElementReader, beside: Extensions) -> None:
    """The range of <safety_controller>, in which the robot is to stay: limits of a rig, no mechanics."""
    element = part.child(part.element, "safety_controller")
    if element is None or part.element.attributes.get("type") not in BOUNDED:
        return
    given = {key: part.number(element, name) for key, name in SOFT.items() if name in element.attributes}
    lower, upper = given.get("lower"), given.get("upper")
    if lower is not None and upper is not None and lower >= upper:
        if lower != upper or lower:  # 0 and 0 stand for none
            what = f"the soft limits {lower:g} and {upper:g} leave no range; they are left out"
            part.warn(element, what)
        return
    for key, bound in given.items():
        if bound is not None:
            beside.bound(part.name, key, bound)


def _friction(part: _ElementReader) -> tuple[float, float]:
    element = part.child(part.element, "dynamics")
    if element is None:
        return 0.0, 0.0
    return part.not_negative(element, "damping", 0.0), part.not_negative(element, "friction", 0.0)


def _mimic(part: _ElementReader) -> Mimic | None:
    element = part.child(part.element, "mimic")
    if element is None:
        return None
    leader = part.text(element, "joint")
    multiplier, offset = part.number(element, "multiplier", 1.0), part.number(element, "offset", 0.0)
    return Mimic(leader, multiplier or 0.0, offset or 0.0) if leader else None
