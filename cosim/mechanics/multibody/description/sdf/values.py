"""Values in SDF elements: text, numbers, flags, vectors and poses, with the errors in them."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from cosim.core.errors import SourceLocation
from cosim.mechanics.multibody.coordinates import rotation_of
from cosim.mechanics.multibody.description.diagnostics import Diagnostics
from cosim.mechanics.multibody.description.xmltree import XmlElement, only_child, written_numbers
from cosim.mechanics.multibody.mechanism import Pose, pose_of

UNBOUNDED = 1e16  # which stands for infinite in files before version 1.9
UNIT = 1e-4  # largest deviation of an axis or a quaternion from length 1 that counts as rounding
SIMILARITY = 0.8  # from which a name counts as a misspelling of a known one
SCOPE = "::"  # between the names of a model and of what is in it
VENDOR = ":"  # in the tags of extensions, such as drake:rotor_inertia
NAMED = ("link", "joint", "model", "frame", "world", "collision")

# element -> children that are read, or that do not change the motion
KNOWN: dict[str, tuple[str, ...]] = {
    "model": (
        *("pose", "link", "joint", "frame", "model", "include", "static", "self_collide", "enable_wind", "plugin"),
        *("allow_auto_disable", "gripper"),
    ),
    "link": (
        *("pose", "inertial", "gravity", "enable_wind", "self_collide", "kinematic", "velocity_decay", "collision"),
        *("visual", "sensor", "must_be_base_link", "light", "battery", "audio_sink", "audio_source", "projector"),
        *("particle_emitter", "plugin"),
    ),
    "joint": (
        *("pose", "parent", "child", "axis", "axis2", "gearbox_ratio", "gearbox_reference_body", "thread_pitch"),
        *("screw_thread_pitch", "physics", "sensor", "plugin"),
    ),
    "axis": ("xyz", "dynamics", "limit", "mimic", "use_parent_model_frame", "initial_position"),
    "dynamics": ("damping", "friction", "spring_stiffness", "spring_reference"),
    "limit": ("lower", "upper", "effort", "velocity", "stiffness", "dissipation"),
    "mimic": ("multiplier", "offset", "reference"),
    "inertial": ("mass", "density", "pose", "inertia", "auto_inertia_params", "fluid_added_mass"),
    "inertia": ("ixx", "iyy", "izz", "ixy", "ixz", "iyz"),
    "frame": ("pose",),
    "include": ("uri", "name", "pose", "static", "placement_frame", "plugin"),
    "pose": (),
}
KNOWN["axis2"] = KNOWN["axis"]
ATTRIBUTES = {"pose": ("relative_to", "rotation_format", "degrees", "frame"), "xyz": ("expressed_in",)}


@dataclass
class SdfValues:
    """Reads values and records the errors in them. owners: id of an element -> the link, joint, … it is in."""

    diagnostics: Diagnostics
    owners: dict[int, str] = field(default_factory=dict)

    def own(self, root: XmlElement) -> None:
        """Note of each element below `root` which link, joint, … it is in."""
        stack = [(root, "")]
        while stack:
            element, owner = stack.pop()
            if element.tag in NAMED and element.attributes.get("name"):
                owner = f"{element.tag} '{element.attributes['name']}'"
            self.owners[id(element)] = owner
            stack += [(child, owner) for child in element.children]

    def place(self, element: XmlElement) -> SourceLocation:
        return SourceLocation(element.file, element.line, self.owners.get(id(element), ""))

    def error(self, element: XmlElement, what: str) -> None:
        """Record an error once, however often its element is read."""
        place = self.place(element)
        if all((error.what, error.place) != (what, place) for error in self.diagnostics.errors):
            self.diagnostics.error(what, place)

    def warn(self, element: XmlElement, what: str) -> None:
        self.diagnostics.warn(what, self.place(element))

    def note(self, element: XmlElement, what: str) -> None:
        self.diagnostics.note(what, self.place(element))

    # --- elements ---

    def child(self, parent: XmlElement, tag: str) -> XmlElement | None:
        return only_child(parent, tag, self.error, self.warn)

    def name(self, element: XmlElement) -> str:
        """The name of a link, a joint, a frame or a model, "" with an error where it has none that it may have."""
        name = element.attributes.get("name", "").strip()
        reserved = name == "world" or (name.startswith("__") and name.endswith("__"))
        if not name:
            self.error(element, f"a <{element.tag}> needs a name")
        elif reserved or SCOPE in name:
            self.error(element, f"the name '{name}' is reserved; rename the <{element.tag}>")
        return "" if reserved or SCOPE in name else name

    def warn_of_misspellings(self, element: XmlElement) -> None:
        """Warnings of elements and attributes that are ignored and whose names resemble known ones."""
        stack = [element]
        while stack:
            at = stack.pop()
            if at.tag not in KNOWN:
                continue
            stack += at.children
            self._note_ignored(at, "<{}>", [child.tag for child in at.children], KNOWN[at.tag])
            self._note_ignored(at, "'{}'", at.attributes, ATTRIBUTES.get(at.tag, ()))

    def _note_ignored(self, element: XmlElement, form: str, given: Iterable[str], known: Sequence[str]) -> None:
        for name in given:
            close = [] if name in known or VENDOR in name else difflib.get_close_matches(name, known, 1, SIMILARITY)
            if close:
                written_as, meant = form.format(name), form.format(close[0])
                self.warn(element, f"{written_as} of <{element.tag}> is ignored; did you mean {meant}?")

    # --- values ---

    def text(self, parent: XmlElement, tag: str, default: str | None = None) -> str:
        """The text of a child; without one the default, "" with an error where there is none."""
        element = self.child(parent, tag)
        if element is not None and element.text:
            return element.text
        if default is None:
            what = f"<{parent.tag}> has no <{tag}>; add it" if element is None else f"<{tag}> is empty; fill it in"
            self.error(element or parent, what)
        return default or ""

    def numbers(self, element: XmlElement, text: str, count: int, infinite: bool = False) -> list[float] | None:
        """The numbers of a text in an element; None with an error recorded if they cannot be read."""
        values = written_numbers(text)
        if len(values) == count and all(math.isfinite(x) or (infinite and not math.isnan(x)) for x in values):
            return values
        expected = "a number" if count == 1 else f"{count} numbers"
        self.error(element, f"<{element.tag}>: expected {expected}, got '{text}'")
        return None

    def number(self, parent: XmlElement | None, tag: str, default: float, infinite: bool = False) -> float:
        """The number in a child; the default without one."""
        element = None if parent is None else self.child(parent, tag)
        if element is None:
            return default
        if not element.text:
            self.error(element, f"<{tag}> is empty; fill it in")
            return default
        values = self.numbers(element, element.text, 1, infinite)
        return values[0] if values else default

    def not_negative(self, parent: XmlElement | None, tag: str, default: float = 0.0) -> float:
        value = self.number(parent, tag, default)
        if value < 0.0 and parent is not None:
            self.error(self.child(parent, tag) or parent, f"<{tag}> is negative ({value:g}); it must be 0 or more")
        return max(value, 0.0)

    def bound(self, parent: XmlElement | None, tag: str, default: float) -> float:
        """A limit; numbers that stand for infinite ones are."""
        value = self.number(parent, tag, default, infinite=True)
        return math.copysign(math.inf, value) if abs(value) >= UNBOUNDED else value

    def flag(self, parent: XmlElement, tag: str, default: bool = False) -> bool:
        element = self.child(parent, tag)
        return default if element is None or not element.text else self.truth(element, element.text)

    def truth(self, element: XmlElement, text: str) -> bool:
        word = text.strip().lower()
        if word not in ("true", "false", "1", "0"):
            self.error(element, f"<{element.tag}>: expected true or false, got '{text}'")
        return word in ("true", "1")

    def pose(self, parent: XmlElement) -> tuple[Pose, str]:
        """(the pose of an element, the frame that it is relative to, "" where it names none)."""
        element = self.child(parent, "pose")
        if element is None:
            return Pose.identity(), ""
        given = element.attributes
        if given.get("frame"):
            self.warn(element, "'frame' of <pose> is ignored, as by Gazebo; use 'relative_to' of version 1.7 or later")
        relative_to = given.get("relative_to", "").strip()
        format = given.get("rotation_format", "euler_rpy").strip()
        degrees = self.truth(element, given.get("degrees", "false"))
        if format not in ("euler_rpy", "quat_xyzw"):
            self.error(element, f"rotation_format is euler_rpy or quat_xyzw, got '{format}'")
            return Pose.identity(), relative_to
        if not element.text:
            return Pose.identity(), relative_to
        quaternion = format == "quat_xyzw"
        if quaternion and degrees:
            self.error(element, "a quaternion has no degrees; take 'degrees' out")
        values = self.numbers(element, element.text, 7 if quaternion else 6)
        if values is None:
            return Pose.identity(), relative_to
        xyz, turn = values[:3], np.array(values[3:])
        if not quaternion:
            if not degrees:
                self.diagnostics.angles.append((self.place(element), turn.tolist()))
            return pose_of(xyz, np.radians(turn).tolist() if degrees else turn.tolist()), relative_to
        length = float(np.linalg.norm(turn))
        if length == 0.0:
            self.error(element, "the quaternion is zero; 0 0 0 1 is no rotation")
            return Pose.identity(), relative_to
        if abs(length - 1.0) > UNIT:
            self.note(element, f"the quaternion has the length {length:.6g}; normalised")
        return Pose(np.array(rotation_of(turn / length)), np.array(xyz)), relative_to


def children(parent: XmlElement, tag: str) -> list[XmlElement]:
    return [child for child in parent.children if child.tag == tag]
