"""Collision shapes of a URDF: `<collision>` of its links, with the friction that Gazebo, Bullet and Drake give them.

Formats: https://wiki.ros.org/urdf/XML/link; capsules as of urdfdom 4 and `drake:capsule`;
https://classic.gazebosim.org/tutorials?tut=ros_urdf (mu1, mu2 of <gazebo>); `<contact>` of Bullet;
https://drake.mit.edu/doxygen_cxx/group__multibody__parsing.html (drake:proximity_properties).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from cosim.core.errors import SourceLocation
from cosim.mechanics.multibody.description.collisions import CollisionShape, SurfaceFriction, primitive
from cosim.mechanics.multibody.description.xmltree import XmlElement, written_numbers
from cosim.mechanics.multibody.mechanism import pose_of

DRAKE = "drake:"
# shape -> the attributes of its sizes, in the order of `primitive`
SIZES = {
    "sphere": ("radius",),
    "capsule": ("radius", "length"),
    "cylinder": ("radius", "length"),
    "box": ("size",),
}


@dataclass(frozen=True)
class _Surface:
    """friction of a link or a shape, and what of it is not taken."""

    friction: SurfaceFriction | None = None
    lost: tuple[str, ...] = ()


def collisions_of(robot: XmlElement) -> tuple[CollisionShape, ...]:
    """The collision shapes of the links of a robot, in the order of the file."""
    surfaces = dict(_of_gazebo(robot))
    return tuple(
        _shape(collision, link, surfaces)
        for link in robot.children
        if link.tag == "link"
        for collision in link.children
        if collision.tag == "collision"
    )


def _shape(collision: XmlElement, link: XmlElement, surfaces: Mapping[str, _Surface]) -> CollisionShape:
    name = link.attributes.get("name", "")
    place = SourceLocation(collision.file, collision.line, f"link '{name}'")
    origin, geometry = _child(collision, "origin"), _child(collision, "geometry")
    element = next(iter(geometry.children), None) if geometry is not None else None
    kind = "shape without geometry" if element is None else element.tag.removeprefix(DRAKE)
    surface = _of_drake(collision) or _of_bullet(link) or surfaces.get(name, _Surface())
    try:
        xyz, rpy = (_numbers(origin, key, 3) for key in ("xyz", "rpy"))
        sizes = [size for key in SIZES.get(kind, ()) for size in _numbers(element, key, 3 if key == "size" else 1)]
        shape, lost = primitive(kind, sizes), surface.lost
    except ValueError as error:
        xyz = rpy = [0.0] * 3
        shape, lost = None, (str(error),)
    return CollisionShape(name, kind, pose_of(xyz, rpy), shape, surface.friction, lost, place=place)


def _numbers(element: XmlElement | None, key: str, count: int) -> list[float]:
    """The numbers of an attribute; zeros of an origin without it. Raises ValueError."""
    if element is None or (key not in element.attributes and element.tag == "origin"):
        return [0.0] * count
    text = element.attributes.get(key, "").strip()
    values = written_numbers(text)
    if len(values) != count or not all(map(math.isfinite, values)):
        raise ValueError(f"<{element.tag}> {key}: expected {count} finite number{'s' * (count > 1)}, got '{text}'")
    return values


def _of_gazebo(robot: XmlElement) -> Iterator[tuple[str, _Surface]]:
    """(link, its surface) of <gazebo reference="link">."""
    for element in robot.children:
        if element.tag == "gazebo" and (name := element.attributes.get("reference")):
            first, second = (_value(element, tag) for tag in ("mu1", "mu2"))
            if first is not None:
                yield name, _Surface(SurfaceFriction(first, first), unequal(first, second))


def unequal(first: float, second: float | None) -> tuple[str, ...]:
    """What is lost of two coefficients of friction along two directions."""
    if second is None or second == first:
        return ()
    return (f"its friction of {first:g} and {second:g} along two directions is {first:g} along all",)


def _of_bullet(link: XmlElement) -> _Surface | None:
    contact = _child(link, "contact")
    value = None if contact is None else _value(contact, "lateral_friction")
    return None if value is None else _Surface(SurfaceFriction(value, value))


def _of_drake(collision: XmlElement) -> _Surface | None:
    properties = _child(collision, "drake:proximity_properties")
    if properties is None:
        return None
    static, sliding = (_value(properties, f"drake:{key}") for key in ("mu_static", "mu_dynamic"))
    given = [each for each in (static, sliding) if each is not None]
    return _Surface(SurfaceFriction(max(given), min(given))) if given else None


def _value(parent: XmlElement, tag: str) -> float | None:
    """The number of a child, in its text or its attribute `value`; None without one that is 0 or more."""
    element = _child(parent, tag)
    if element is None:
        return None
    values = written_numbers(element.text or element.attributes.get("value", ""))
    return values[0] if len(values) == 1 and 0.0 <= values[0] < math.inf else None


def _child(parent: XmlElement, tag: str) -> XmlElement | None:
    return next((child for child in parent.children if child.tag == tag), None)
