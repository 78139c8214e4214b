"""Joints of SDF: their kind, axes, frames on both links, and what is passive in them.

A joint of several axes that has no equal here, or whose axes differ in limits or friction, becomes joints in series
with massless links between them, which is the same motion.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from cosim.core.errors import SourceLocation
from cosim.mechanics.multibody.description.joint_ranges import in_order, warn_of_unused
from cosim.mechanics.multibody.description.sdf.scopes import Scope, SdfPart
from cosim.mechanics.multibody.description.sdf.values import UNIT, SdfValues
from cosim.mechanics.multibody.description.xmltree import XmlElement
from cosim.mechanics.multibody.mechanism import GROUND_LINK, Joint, Link, LoopJoint, Mimic, Pose

KINDS = {  # type of a joint -> its kind here, and its number of axes
    "revolute": ("revolute", 1),
    "continuous": ("continuous", 1),
    "prismatic": ("prismatic", 1),
    "screw": ("screw", 1),
    "fixed": ("fixed", 0),
    "ball": ("spherical", 0),
    "universal": ("universal", 2),
    "revolute2": ("universal", 2),
}
GEARBOX = "gearbox"
AXES = ("axis", "axis2")
SECOND = "_axis2"  # after the name of a joint: its second axis
ORTHOGONAL = 1e-9  # cosine up to which two axes are at a right angle
OLD_AXES = (1, 5)  # before this version axes were in the frame of the model
ROTOR, RATIO = "drake:rotor_inertia", "drake:gear_ratio"
Z = np.array([0.0, 0.0, 1.0])
# of a joint without <axis>, as fields of Joint
UNLIMITED = {
    **{"lower": -math.inf, "upper": math.inf, "max_velocity": math.inf, "max_effort": math.inf},
    **{"damping": 0.0, "friction": 0.0, "stiffness": 0.0, "rest": 0.0, "mimic": None},
}


@dataclass(frozen=True)
class Gearbox:
    """θ₂ = −ratio θ₁; θ₁, θ₂: the angles of `first` and `second` against `base` about the axes, in ground axes."""

    name: str
    base: str
    first: tuple[str, np.ndarray]
    second: tuple[str, np.ndarray]
    ratio: float
    place: SourceLocation


@dataclass
class SdfJoints:
    """The joints of all scopes: each with its frame on both links, where it may close a loop."""

    values: SdfValues
    joints: list[LoopJoint] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)  # between axes
    gearboxes: list[Gearbox] = field(default_factory=list)
    start: dict[str, float] = field(default_factory=dict)  # joint -> position at which it begins
    axes: dict[str, np.ndarray] = field(default_factory=dict)  # hinge -> its axis in ground axes, at coordinate 0
    last: set[str] = field(default_factory=set)  # joints at which loops are to be cut

    def add(self, part: SdfPart, scope: Scope) -> None:
        values, element = self.values, part.element
        written = element.attributes.get("type", "").strip()
        ends = [scope.body(Scope.within(part, values.text(element, end)), element) for end in ("parent", "child")]
        parent, child = map(scope.flat, ends)
        if not part.name or not all(ends):
            return
        if parent == child:
            both = "the ground" if parent == GROUND_LINK else f"link '{parent}'"
            return values.error(element, f"the joint connects {both} with itself; name two links")
        if written == GEARBOX:
            return self._gearbox(part, scope)
        if written not in KINDS:
            known = ", ".join([*KINDS, GEARBOX])
            return values.error(element, f"joint type '{written}' is not supported (supported: {known})")
        kind, count = KINDS[written]
        name, frame = scope.prefix + part.name, scope.frame_of(part)
        on_parent, on_child = (_on(scope, end, frame, element) for end in ends)
        whole = Joint(name, kind, parent, child, on_parent, place=values.place(element))
        axes = [self._axis(part, scope, tag) for tag in AXES[:count]]
        passive = [self._passive(values.child(element, tag), kind, scope.prefix) for tag in AXES[:count]]
        if kind == "screw":
            whole = replace(whole, pitch=self._pitch(element))
        if kind == "spherical":
            whole = replace(whole, **self._of_ball(element))  # its axis is no axis
        if count == 1:
            whole = replace(whole, axis=axes[0], **passive[0])
        if kind in ("revolute", "continuous"):
            self.axes[name] = scope.relative(GROUND_LINK, frame, element).rotation @ axes[0]
        if count < len(AXES):
            whole = self._with_vendor(whole, element, scope.prefix)
            self.joints.append(LoopJoint(whole, on_child))
            self._note_start(element, [name])
        else:
            self._of_two_axes(whole, on_child, axes, passive, element)
        physics = values.child(element, "physics")
        simbody = None if physics is None else values.child(physics, "simbody")
        if simbody is not None and values.flag(simbody, "must_be_loop_joint"):
            self.last.add(name)
        return None

    def _of_two_axes(
        self, whole: Joint, child_pose: Pose, axes: list[np.ndarray], passive: list[dict], element: XmlElement
    ) -> None:
        first, second = axes
        limited = any(math.isfinite(passive[0][key]) for key in ("lower", "upper", "max_velocity", "max_effort"))
        if abs(first @ second) <= ORTHOGONAL and passive[0] == passive[1] and not limited and not passive[0]["mimic"]:
            kept = {key: value for key, value in passive[0].items() if key in ("damping", "friction", "stiffness")}
            if not passive[0]["rest"]:
                universal = replace(whole, axis=first, second_axis=second, **kept)
                return self.joints.append(LoopJoint(universal, child_pose))
        between = f"{whole.name}_link"
        self.links.append(Link(between, place=whole.place))
        hinge = replace(whole, kind="revolute", child=between, axis=first, **passive[0])
        after = replace(hinge, name=whole.name + SECOND, parent=between, child=whole.child, pose=Pose.identity())
        self.joints.append(LoopJoint(hinge, Pose.identity()))
        self.joints.append(LoopJoint(replace(after, axis=second, **passive[1]), child_pose))
        return self._note_start(element, [hinge.name, after.name])

    def _note_start(self, element: XmlElement, names: list[str]) -> None:
        for name, tag in zip(names, AXES, strict=False):
            axis = self.values.child(element, tag)
            position = self.values.number(axis, "initial_position", 0.0)
            if position:
                self.start[name] = position

    def _axis(self, part: SdfPart, scope: Scope, tag: str) -> np.ndarray:
        """The unit axis in the frame of the joint (3,)."""
        values, axis = self.values, self.values.child(part.element, tag)
        if axis is None:
            values.error(part.element, f"the joint has no <{tag}>; add it")
            return Z
        xyz = values.child(axis, "xyz")
        given = values.numbers(xyz, xyz.text, 3) if xyz is not None and xyz.text else [0.0, 0.0, 1.0]
        if xyz is None:
            values.note(axis, f"<{tag}> without <xyz>; taken as 0 0 1")
        length = math.hypot(*(given or Z))
        if given is None or length == 0.0:
            if given is not None:
                values.error(xyz or axis, "the axis is zero; give it a direction")
            return Z
        if abs(length - 1.0) > UNIT:
            values.note(xyz or axis, f"the axis has the length {length:.6g}; normalised")
        frame = "" if xyz is None else xyz.attributes.get("expressed_in", "").strip()
        if scope.files.version(part.element) < OLD_AXES or values.flag(axis, "use_parent_model_frame"):
            frame = frame or part.model_frame
        direction = np.array(given) / length
        if not frame:
            return direction
        frame = Scope.within(part, frame)
        return scope.relative(scope.frame_of(part), frame, xyz or axis).rotation @ direction

    def _passive(self, axis: XmlElement | None, kind: str, prefix: str) -> dict:
        """What a joint has about an axis, as fields of Joint."""
        values = self.values
        if axis is None:
            return dict(UNLIMITED)
        limit, dynamics = values.child(axis, "limit"), values.child(axis, "dynamics")
        lower, upper = values.bound(limit, "lower", -math.inf), values.bound(limit, "upper", math.inf)
        if limit is not None:
            warn = partial(values.warn, limit)
            if kind == "continuous":
                warn_of_unused(lower, upper, warn)
                lower, upper = -math.inf, math.inf
            lower, upper = in_order(lower, upper, warn, "<limit> ")
        velocity, effort = (values.bound(limit, key, math.inf) for key in ("velocity", "effort"))
        if limit is not None and values.child(limit, "stiffness") is not None and math.isfinite(upper - lower):
            what = "the stiffness and dissipation of its stops are not taken; give joints.<joint>.stops"
            values.warn(limit, what)
        return {
            "lower": lower,
            "upper": upper,
            "max_velocity": math.inf if velocity < 0.0 else velocity,
            "max_effort": math.inf if effort < 0.0 else effort,
            "damping": values.not_negative(dynamics, "damping"),
            "friction": values.not_negative(dynamics, "friction"),
            "stiffness": values.not_negative(dynamics, "spring_stiffness"),
            "rest": values.number(dynamics, "spring_reference", 0.0),
            "mimic": self._mimic(axis, prefix),
        }

    def _mimic(self, axis: XmlElement, prefix: str) -> Mimic | None:
        """q = multiplier (q_leader − reference) + offset."""
        values, element = self.values, self.values.child(axis, "mimic")
        if element is None:
            return None
        leader = element.attributes.get("joint", "").strip()
        if not leader:
            values.error(element, "<mimic> has no 'joint'; name the joint that is followed")
            return None
        if element.attributes.get("axis", "axis").strip() == AXES[1]:
            leader += SECOND
        multiplier = values.number(element, "multiplier", 1.0)
        offset = values.number(element, "offset", 0.0) - multiplier * values.number(element, "reference", 0.0)
        return Mimic(prefix + leader, multiplier, offset)

    def _of_ball(self, element: XmlElement) -> dict:
        """The damping of a ball joint, which some files give in an <axis>."""
        axis = self.values.child(element, "axis")
        found = self._passive(axis, "spherical", "")
        if found["stiffness"]:
            self.values.warn(axis or element, "the spring of a ball joint is not taken; use mechanism.torsion_springs")
        return {key: found[key] for key in ("damping", "friction")}

    def _pitch(self, element: XmlElement) -> float:
        """m/rad. `thread_pitch` is in rad/m, positive for a left-handed thread."""
        values = self.values
        if values.child(element, "screw_thread_pitch") is not None:
            pitch = values.number(element, "screw_thread_pitch", 1.0) / (2.0 * math.pi)
        elif values.child(element, "thread_pitch") is not None:
            turns = values.number(element, "thread_pitch", 1.0)
            pitch = -1.0 / turns if turns else 0.0
        else:
            values.note(element, "a screw without <screw_thread_pitch> advances by 1 m per turn in SDF")
            pitch = 1.0 / (2.0 * math.pi)
        if pitch == 0.0:
            values.error(element, "the pitch of the screw is 0; give the advance per turn, or use a revolute joint")
        return pitch or 1.0

    def _with_vendor(self, joint: Joint, element: XmlElement, prefix: str) -> Joint:
        """With the rotor inertia and the mimic that Drake reads."""
        values = self.values
        rotor, ratio = values.not_negative(element, ROTOR), values.number(element, RATIO, 1.0)
        mimic = values.child(element, "drake:mimic")
        if mimic is not None and mimic.attributes.get("joint"):
            of = mimic.attributes
            multiplier, offset = (
                (values.numbers(mimic, of[key], 1) or [default])[0] if key in of else default
                for key, default in (("multiplier", 1.0), ("offset", 0.0))
            )
            joint = replace(joint, mimic=Mimic(prefix + of["joint"], multiplier, offset))
        return replace(joint, rotor_inertia=rotor * ratio * ratio)

    def _gearbox(self, part: SdfPart, scope: Scope) -> None:
        values, element = self.values, part.element
        base = values.text(element, "gearbox_reference_body")
        ends = [base, *(values.text(element, end) for end in ("parent", "child"))]
        frames = [Scope.within(part, end) for end in ends]
        bodies = [scope.body(frame, element) for frame in frames]
        if not all(bodies):
            return
        frame = scope.frame_of(part)
        turn = scope.relative(GROUND_LINK, frame, element).rotation
        axes = [turn @ self._axis(part, scope, tag) for tag in AXES]
        reference, first, second = map(scope.flat, bodies)
        ratio = values.number(element, "gearbox_ratio", 1.0)
        name, place = scope.prefix + part.name, values.place(element)
        self.gearboxes.append(Gearbox(name, reference, (first, axes[0]), (second, axes[1]), ratio, place))


def _on(scope: Scope, body: str, frame: str, user: XmlElement) -> Pose:
    """The frame of a joint in one of its links."""
    fixed = scope.flat(body) == GROUND_LINK
    return scope.relative(GROUND_LINK if fixed else body, frame, user)
