"""The lists `loops`, `springs` and `frames` of a mechanism, and the parts that they may name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cosim.core.types import param, params
from cosim.mechanics.multibody.description.diagnostics import Diagnostics
from cosim.mechanics.multibody.joints import JointKind, kind_of
from cosim.mechanics.multibody.mechanism import Frame, Joint, Link, LoopJoint, Spring
from cosim.rig.reading.names import Name, Reference
from cosim.rig.reading.schema import Reading, read
from cosim.rig.reading.yaml_source import YamlValue
from cosim.rig.sections.bodies import BASE
from cosim.rig.sections.geometry import ORIGIN, Origin, Vector
from cosim.rig.sections.joint_definition import GENERAL, JointKeys, JointType, as_joint, keyed, read_connection

# keys of a loop about its coordinates
COORDINATE_KEYS = ("stiffness", "damping", "friction", "limits")


@dataclass(frozen=True)
class Parts:
    """The links and joints that couplings may name; `ground` is the link that does not move."""

    ground: str
    links: Mapping[str, Link]
    joints: Mapping[str, Joint]

    def link(self, name: str | None) -> str:
        """The link with this name; `base` and None are the ground."""
        return self.ground if name is None or (name == BASE and name not in self.links) else name

    def kind(self, joint: object) -> JointKind | None:
        """The kind of a joint, None if there is no such joint."""
        known = self.joints.get(joint) if isinstance(joint, str) else None
        return None if known is None else kind_of(known)

    def units(self, joint: object) -> tuple[str, ...] | None:
        """The units of the coordinates of a joint, None if there is no such joint."""
        kind = self.kind(joint)
        return None if kind is None else tuple(unit for _, unit in kind.dofs)


# --- loops ------------------------------------------------------------------------------------------------


@keyed
class LoopKeys(JointKeys):
    parent: Reference = param()
    child: Reference = param()
    child_origin: Origin = param(default=Origin())
    coordinates: bool = param(default=False)


def read_loops(
    items: Sequence[YamlValue], at: tuple, parts: Parts, reading: Reading, findings: Diagnostics
) -> list[LoopJoint]:
    """The loops of the list at the path `at`; errors and remarks are recorded."""
    loops = []
    for i, data in enumerate(items):
        found = read_connection(LoopKeys, data, (*at, i), reading, findings, named_by="name")
        if found is not None:
            loops.append(_loop(*found, data, (*at, i), parts, reading))
            for key, frame in (("origin", found[0].origin), ("child_origin", found[0].child_origin)):
                findings.angles.append((reading.place((*at, i, key)), frame.rpy))
    return loops


def _loop(keys: LoopKeys, joint_type: JointType, data: dict, path: tuple, parts: Parts, reading: Reading) -> LoopJoint:
    kind, parent, child = joint_type.kind, parts.link(keys.parent), parts.link(keys.child)
    joint = as_joint(keys, joint_type, keys.name, parent, child, reading.place(path))
    own = kind == GENERAL or any(data.get(key) is not None for key in COORDINATE_KEYS)
    coordinates = (keys.coordinates or own) and kind != "fixed"
    if kind == "free":
        reading.fail((*path, "type"), "a free joint closes no loop; leave it out")
    elif kind == "fixed" and keys.coordinates:
        reading.fail((*path, "coordinates"), "a fixed joint has no coordinates; leave this out")
    elif coordinates and child == parts.ground:
        what = "a joint with coordinates cuts the loop through its child, which cannot be the ground"
        reading.fail((*path, "child"), f"{what}; swap parent and child")
    elif coordinates and child in parts.links and parts.links[child].inertial is None:
        what = f"a joint with coordinates cuts the loop through its child, and link '{child}' has no mass"
        reading.fail((*path, "child"), f"{what}; swap parent and child")
    return LoopJoint(joint, keys.child_origin.pose, coordinates)


# --- springs ----------------------------------------------------------------------------------------------


@params
class SpringKeys:
    name: Name = param()
    between: tuple[Reference, Reference] = param()
    points: tuple[Vector, Vector] = param(unit="m", default=(ORIGIN, ORIGIN))
    stiffness: float = param(unit="N/m", min=0, default=0.0)
    damping: float = param(unit="N*s/m", min=0, default=0.0)
    unloaded_length: float = param(unit="m", min=0, default=0.0)


def read_springs(items: Sequence[YamlValue], at: tuple, parts: Parts, reading: Reading) -> list[Spring]:
    """The springs of the list at the path `at`; errors are recorded."""
    springs = []
    for i, data in enumerate(items):
        keys = read(SpringKeys, data, (*at, i), reading)
        if keys is not None:
            (a, b), (p, r) = keys.between, keys.points
            ends = (parts.link(a), np.array(p)), (parts.link(b), np.array(r))
            place = reading.place((*at, i))
            springs.append(Spring(keys.name, ends, keys.stiffness, keys.damping, keys.unloaded_length, place))
    return springs


# --- frames -----------------------------------------------------------------------------------------------


@params
class FrameKeys:
    name: Name = param()
    link: Reference = param()
    origin: Origin = param(default=Origin())


def read_frames(
    items: Sequence[YamlValue], at: tuple, parts: Parts, reading: Reading, findings: Diagnostics
) -> list[Frame]:
    """The frames of the list at the path `at`; errors and remarks are recorded."""
    found = [(read(FrameKeys, data, (*at, i), reading), reading.place((*at, i))) for i, data in enumerate(items)]
    findings.angles.extend((place, keys.origin.rpy) for keys, place in found if keys)
    return [Frame(keys.name, parts.link(keys.link), keys.origin.pose, place) for keys, place in found if keys]
