"""Bodies written in a rig: the list `mechanism.bodies`, each entry a link with the joint that carries it.

The numbers of a body with `frame: base` are in the base frame with every joint at position 0, as CAD systems have them.
Here they become numbers in the frames of parent and body, on which everything else is built.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Annotated, Literal

import numpy as np

from cosim.core.types import param, params
from cosim.mechanics.multibody.description.diagnostics import Diagnostics
from cosim.mechanics.multibody.description.inertia import check_inertia, inertia_matrix
from cosim.mechanics.multibody.mechanism import Inertial, Joint, Link, Mimic, Pose
from cosim.rig.reading.names import Name, Reference
from cosim.rig.reading.schema import SMALLEST_NUMBER, Reading
from cosim.rig.reading.yaml_source import YamlValue
from cosim.rig.sections.geometry import ORIGIN, Vector
from cosim.rig.sections.joint_definition import JointKeys, as_joint, keyed, read_connection
from cosim.rig.sections.schedule import MOST_BODIES

BASE = "base"  # name of the ground
ROUNDING = 1e-15  # of a distance, of the largest number that it is the difference of


def three_or_six(moments: tuple[float, ...]) -> tuple[float, ...]:
    if len(moments) not in (3, 6):
        raise ValueError(f"expected 3 or 6 numbers, got {len(moments)}")
    return moments


@params
class MimicKeys:
    joint: Reference = param()
    multiplier: float = param(default=1.0)
    offset: float = param(unit="joint position", default=0.0)


@keyed
class BodyKeys(JointKeys):
    joint: Name | None = param(default=None)
    parent: Reference | None = param(default=None)
    mimic: MimicKeys | None = param(default=None)
    mass: float | None = param(unit="kg", default=None)
    com: Vector = param(unit="m", default=ORIGIN)
    inertia: Annotated[tuple[float, ...], three_or_six] = param(unit="kg*m^2", default=ORIGIN)
    frame: Literal["parent", "base"] = param(default="parent", doc="of its numbers")
    repeat: int | None = param(min=1, max=MOST_BODIES, default=None)


def read_bodies(
    bodies: Sequence[YamlValue], at: tuple, first: str, reading: Reading, findings: Diagnostics
) -> tuple[list[Link], list[Joint]]:
    """The links and joints of the list at the path `at`; the parent of the first body is the link `first` unless
    `parent` names another. Errors are recorded, and a default replaces the wrong value."""
    links: list[Link] = []
    joints: list[Joint] = []
    of_base: set[str] = set()
    if not bodies:
        reading.fail(at, "the list is empty; give it a body")
    for i, data in enumerate(bodies):
        previous = links[-1].name if links else first
        body = _body(data, (*at, i), previous, reading, findings)
        if len(links) + len(body[0]) > MOST_BODIES:
            reading.fail((*at, i), f"more than {MOST_BODIES:,} bodies; use fewer")
            break
        links += body[0]
        joints += body[1]
        if body[0] and data.get("frame") == "base":
            of_base.add(body[0][0].name)
    return in_own_frames(links, joints, of_base)


def _body(
    data: YamlValue, path: tuple, previous: str, reading: Reading, findings: Diagnostics
) -> tuple[list[Link], list[Joint]]:
    """The link and joint of an entry; several for `repeat`, none without a name."""
    if isinstance(data, dict) and data.get("name") is None:
        what = "a body without a name; an entry is a body and the joint that carries it, add 'name'"
        reading.fail(path, what)
        return [], []
    found = read_connection(BodyKeys, data, path, reading, findings, named_by="joint")
    if found is None:
        return [], []
    keys, joint_type = found
    if keys.name == BASE:
        reading.fail((*path, "name"), f"'{BASE}' is the ground; give the body another name")
        return [], []
    if keys.frame == "base" and keys.repeat is not None:
        what = "copies are placed in the frames of one another; take out 'frame' or 'repeat'"
        reading.fail((*path, "frame"), what)
    place = reading.place(path)
    findings.angles.append((reading.place((*path, "origin")), keys.origin.rpy))
    mimic = Mimic(keys.mimic.joint, keys.mimic.multiplier, keys.mimic.offset) if keys.mimic else None
    joint = as_joint(
        keys,
        joint_type,
        keys.joint or keys.name,
        keys.parent or previous,
        keys.name,
        place,
        mimic if joint_type.kind != "fixed" else None,
    )
    link = Link(keys.name, _inertial(keys, data, joint.kind, path, reading, findings), place)
    if keys.repeat is None:
        return [link], [joint]
    numbers = range(1, keys.repeat + 1)
    links = [replace(link, name=f"{link.name}_{k}") for k in numbers]
    parents = [joint.parent, *(copy.name for copy in links)]
    return links, [
        replace(joint, name=f"{joint.name}_{k}", parent=parents[k - 1], child=f"{link.name}_{k}") for k in numbers
    ]


def _inertial(
    keys: BodyKeys, data: dict, kind: str, path: tuple, reading: Reading, findings: Diagnostics
) -> Inertial | None:
    """None for a massless body: one without `mass`, or a fixed one with mass 0."""
    mass, moments = keys.mass, keys.inertia
    if data.get("mass") is None:
        for key in ("com", "inertia"):
            if key in data:
                reading.fail((*path, key), "a body without mass; give it a mass or leave this out")
        return None
    if mass is None:  # it could not be read
        return None
    if mass < 0.0 or (mass == 0.0 and kind != "fixed"):
        what = f"must be more than 0, got {mass:g}; leave the mass out for a massless body"
        reading.fail((*path, "mass"), what)
        return None
    if 0.0 < mass < SMALLEST_NUMBER:
        return reading.fail((*path, "mass"), f"is {mass:.3g} kg, too close to 0; give at least {SMALLEST_NUMBER:g} kg")
    if mass == 0.0:
        if any(moments):
            reading.fail((*path, "inertia"), "a body of mass 0 has no inertia; give it a mass")
        return None
    inertia = inertia_matrix(*moments, *ORIGIN[len(moments) - 3 :])
    error, note = check_inertia(mass, inertia)
    if error:
        reading.fail((*path, "inertia"), error)
    if note:
        findings.note(note, reading.place((*path, "inertia")))
    return Inertial(mass, np.array(keys.com), inertia)


def in_own_frames(
    links: Sequence[Link], joints: Sequence[Joint], of_base: Collection[str]
) -> tuple[list[Link], list[Joint]]:
    """The links and joints with all numbers in the frames of parents and bodies.

    of_base: the links whose joint has its origin and axes, and that have their centre of mass and inertia, in the base
    frame. Links that are no child of a joint are at rest in it.
    """
    if not of_base:
        return list(links), list(joints)
    by_child = {joint.child: joint for joint in joints}
    placed: dict[str, Pose] = {}

    def place(link: str, below: frozenset[str] = frozenset()) -> Pose:
        """The frame of a link in the base."""
        joint = by_child.get(link)
        if joint is None or link in below:  # joints in a circle are reported where the tree is built
            return Pose.identity()
        if link not in placed:
            above = Pose.identity() if link in of_base else place(joint.parent, below | {link}) @ at_zero(joint)
            placed[link] = above @ joint.pose if link in of_base else above
        return placed[link]

    own_links = [_link(link, place(link.name)) if link.name in of_base else link for link in links]
    own_joints = [
        _joint(joint, place(joint.parent), place(joint.child)) if joint.child in of_base else joint for joint in joints
    ]
    return own_links, own_joints


def at_zero(joint: Joint) -> Pose:
    """The frame of a joint's child in its parent at position 0; a user-defined joint may have moved there."""
    return joint.pose @ _moved(joint)


def _moved(joint: Joint) -> Pose:
    if joint.motion is None:
        return Pose.identity()
    rotation, position = joint.motion.place(np.zeros(len(joint.motion.names)), 0.0)
    return Pose(np.asarray(rotation, dtype=float), np.asarray(position, dtype=float))


def _link(link: Link, here: Pose) -> Link:
    if link.inertial is None:
        return link
    turn, given = here.rotation.T, link.inertial
    com = turn @ _difference(given.com, here.position)
    return replace(link, inertial=Inertial(given.mass, com, turn @ given.inertia @ turn.T))


def _joint(joint: Joint, parent: Pose, child: Pose) -> Joint:
    turn = child.rotation.T
    offset = parent.rotation.T @ _difference(child.position, parent.position)
    pose = Pose(parent.rotation.T @ child.rotation, offset) @ _moved(joint).inverse()
    second = None if joint.second_axis is None else turn @ joint.second_axis
    return replace(joint, pose=pose, axis=turn @ joint.axis, second_axis=second)


def _difference(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a − b with exact zeros in place of rounding."""
    distance = a - b
    return np.where(np.abs(distance) <= ROUNDING * np.maximum(np.abs(a), np.abs(b)), 0.0, distance)
