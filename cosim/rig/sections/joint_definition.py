"""The keys of a joint in bodies and loops: type, frame and axes, losses, spring and limits."""

from __future__ import annotations

import math
from dataclasses import MISSING, dataclass, field, fields
from typing import TypeVar, dataclass_transform

import numpy as np

from cosim.core.errors import SourceLocation
from cosim.core.plugin_loading import JOINT, entry_names, unknown
from cosim.core.types import param, params
from cosim.core.units import TURN
from cosim.mechanics.multibody.description.diagnostics import Diagnostics
from cosim.mechanics.multibody.joints import GENERAL, JOINTS, GeneralMotion, units_of
from cosim.mechanics.multibody.mechanism import Joint, Mimic, Torsion
from cosim.rig.reading.names import Name
from cosim.rig.reading.schema import Reading, read_fields
from cosim.rig.reading.yaml_source import YamlValue
from cosim.rig.sections.directions import NOT_TURNED, Directions, Orientation, directional
from cosim.rig.sections.geometry import Direction, NotZero, Origin, perpendicular
from cosim.rig.sections.user_code import read_motion

TYPES = tuple(kind for kind in JOINTS if kind != GENERAL)
DEFAULT_TYPE = "revolute"
Z = (0.0, 0.0, 1.0)
RIGHT_ANGLE = 1e-6  # rad, tolerance of a second axis
T = TypeVar("T")
K = TypeVar("K", bound="JointKeys")

# keys without effect on a type, and keys of one type only
_OF_A_SPRING = ("stiffness", "unloaded_position", "unloaded_orientation")
MOVING_KEYS = ("axis", "damping", "friction", *_OF_A_SPRING, "limits", "mimic")
IDLE_KEYS = {"fixed": MOVING_KEYS, **{kind: ("axis",) for kind, entry in JOINTS.items() if not entry.has_axis}}
KEYS_OF = {
    "second_axis": ("universal", "only a universal joint has a second axis; leave it out"),
    "unloaded_orientation": ("spherical", "only a spherical joint has an unloaded orientation; use unloaded_position"),
    "pitch": ("screw", "only a screw has a pitch; leave it out"),
    "params": (GENERAL, "only a user-defined joint has parameters; leave them out"),
}


@params
class LimitKeys:
    lower: float = param(unit="joint position", default=-math.inf)
    upper: float = param(unit="joint position", default=math.inf)
    velocity: float = param(unit="joint velocity", min=0, default=math.inf)
    effort: float = param(unit="joint effort", min=0, default=math.inf)

    def __post_init__(self) -> None:
        if self.lower > self.upper:
            raise ValueError(f"lower {self.lower:g} is above upper {self.upper:g}; swap them")


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(param, field))
def keyed(cls: type[T]) -> type[T]:
    """As `params`, for a class whose subclasses add required keys."""
    return dataclass(frozen=True, kw_only=True)(cls)


@keyed
class JointKeys:
    name: Name = param()
    type: str = param(default=DEFAULT_TYPE)
    params: dict | None = param(default=None)
    origin: Origin = param(default=Origin())
    axis: Direction = param(default=Z)
    second_axis: Direction | None = param(default=None)
    pitch: NotZero | None = param(unit="m", default=None)
    damping: float = param(unit="joint damping", min=0, default=0.0)
    friction: float = param(unit="joint effort", min=0, default=0.0)
    stiffness: Directions = param(unit="joint stiffness", min=0, default=Directions((0.0,)))
    unloaded_position: float = param(unit="joint position", default=0.0)
    unloaded_orientation: Orientation | None = param(unit="rad", default=None)
    limits: LimitKeys = param(default=LimitKeys())


@dataclass(frozen=True)
class JointType:
    """The meaning of a `type`; units: of its coordinates, None if the type could not be read."""

    kind: str
    units: tuple[str, ...] | None
    motion: GeneralMotion | None = None


def read_connection(
    cls: type[K], data: YamlValue, path: tuple, reading: Reading, findings: Diagnostics, named_by: str
) -> tuple[K, JointType] | None:
    """The keys at `path` and the type of the joint; None if a required key is missing or wrong.

    named_by: the key of its name. Errors are recorded; a default replaces a wrong value.
    """
    joint_type = _read_type(data, path, reading)
    _check_names(data, named_by, path, reading)
    values = read_fields(cls, data, path, reading.of({"": representative_kind(joint_type.units)}))
    if any(field.default is MISSING and field.name not in values for field in fields(cls)):
        return None
    keys = cls(**values)
    if joint_type.units is not None:
        _check(keys, joint_type, data, path, reading, findings)
    return keys, joint_type


def as_joint(
    keys: JointKeys,
    joint_type: JointType,
    name: str,
    parent: str,
    child: str,
    place: SourceLocation,
    mimic: Mimic | None = None,
) -> Joint:
    """The joint of these keys between two links."""
    kind, limits = joint_type.kind, keys.limits
    axis = np.array(keys.axis if JOINTS[kind].has_axis else Z)
    return Joint(
        name=name,
        kind=kind,
        parent=parent,
        child=child,
        pose=keys.origin.pose,
        axis=axis,
        second_axis=perpendicular(axis, _second(keys)) if kind == "universal" else None,
        pitch=(keys.pitch or 0.0) / TURN if kind == "screw" else 0.0,
        motion=joint_type.motion,
        lower=limits.lower,
        upper=limits.upper,
        max_velocity=limits.velocity,
        max_effort=limits.effort,
        damping=keys.damping,
        friction=keys.friction,
        stiffness=0.0 if kind == "spherical" else keys.stiffness[0],
        torsion=_torsion(keys) if kind == "spherical" and any(keys.stiffness) else None,
        rest=keys.unloaded_position,
        mimic=mimic,
        place=place,
    )


def representative_kind(units: tuple[str, ...] | None) -> str | None:
    """A kind of joint with a coordinate of these units, None if they differ or are unknown."""
    first, *others = set(units or ()) or {""}
    return None if others else {"rad": "revolute", "m": "prismatic"}.get(first)


def _read_type(data: YamlValue, path: tuple, reading: Reading) -> JointType:
    written = data.get("type", DEFAULT_TYPE) if isinstance(data, dict) else DEFAULT_TYPE
    if not isinstance(written, str):
        return JointType("fixed", None)
    installed = entry_names(JOINT)
    if written.endswith(".py") or (written in installed and written not in TYPES):
        motion = read_motion(written, data.get("params"), path, reading)
        return JointType("fixed", None) if motion is None else JointType(GENERAL, motion.units, motion)
    if written not in TYPES:
        reading.fail((*path, "type"), unknown(JOINT, written, TYPES))
        return JointType("fixed", None)
    return JointType(written, units_of(written))


def _check_names(data: YamlValue, named_by: str, path: tuple, reading: Reading) -> None:
    """Record a joint without a type that is called like one: it would silently be a hinge."""
    name = data.get(named_by) if isinstance(data, dict) and data.get("type") is None else None
    if isinstance(name, str) and (name in TYPES or name in entry_names(JOINT)):
        names = f"'{named_by}' is the name of the joint, and '{name}' a type"
        fix = f"write 'type: {name}', or 'type: {DEFAULT_TYPE}' for a {DEFAULT_TYPE} joint of this name"
        reading.fail((*path, named_by), f"{names}; {fix}")


def _check(
    keys: JointKeys, joint_type: JointType, data: dict, path: tuple, reading: Reading, findings: Diagnostics
) -> None:
    """Record keys that do not fit the type."""
    kind, count = joint_type.kind, len(joint_type.units or ())
    for key, (owner, what) in KEYS_OF.items():
        if data.get(key) is not None and kind != owner:
            reading.fail((*path, key), what)
    word = "user-defined joint" if kind == GENERAL else f"{kind} joint"
    for key in IDLE_KEYS.get(kind, ()):
        if key in data:
            findings.note(f"without effect on a {word}", reading.place((*path, key)))
    bounded = (keys.limits.lower, keys.limits.upper) != (-math.inf, math.inf)
    if bounded and kind == "continuous":
        reading.fail((*path, "limits"), "a continuous joint has no lower and upper; make it revolute")
    elif bounded and kind != "fixed" and count != 1:
        what = f"lower and upper are for joints with one coordinate, type '{keys.type}' has {count}"
        reading.fail((*path, "limits"), f"{what}; leave them out")
    if kind == "free" and any(keys.stiffness):
        what = "a free joint has no coordinate for a spring; use mechanism.springs and mechanism.torsion_springs"
        reading.fail((*path, "stiffness"), what)
    elif len(keys.stiffness) > 1 and kind != "spherical" and joint_type.units is not None:
        reading.fail((*path, "stiffness"), f"a {word} has one stiffness; give one number")
    if kind == "spherical" and data.get("unloaded_position") is not None:
        what = "a spherical joint has no position that is a number; use unloaded_orientation"
        reading.fail((*path, "unloaded_position"), what)
    if kind == "screw" and data.get("pitch") is None:
        reading.fail(path, "missing key 'pitch', the advance of the screw per turn")
    if kind == "universal" and keys.second_axis is not None:
        slope = float(np.dot(keys.axis, keys.second_axis))
        if abs(slope) > RIGHT_ANGLE:
            angle = math.degrees(math.acos(min(1.0, abs(slope))))
            what = f"must be perpendicular to the axis, is at {angle:.3g} deg to it; make it perpendicular"
            reading.fail((*path, "second_axis"), what)


def _torsion(keys: JointKeys) -> Torsion:
    return Torsion(directional(keys.stiffness), np.array(keys.unloaded_orientation or NOT_TURNED))


def _second(keys: JointKeys) -> Direction | None:
    """The second axis if it is perpendicular to the axis, else None."""
    if keys.second_axis is None or abs(np.dot(keys.axis, keys.second_axis)) > RIGHT_ANGLE:
        return None
    return keys.second_axis
