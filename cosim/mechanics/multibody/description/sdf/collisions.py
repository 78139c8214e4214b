"""Collision shapes of SDF: `<collision>` of links that move, and of models that stand, with `<surface>`.

Spinning resists with 3π/16 · a · coefficient per normal force, a the radius of the patch of contact, as in Gazebo:
https://classic.gazebosim.org/tutorials?tut=torsional_friction.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from cosim.mechanics.multibody.contact.shapes import ContactShape, HalfSpace
from cosim.mechanics.multibody.description.collisions import CollisionShape, SurfaceFriction, primitive
from cosim.mechanics.multibody.description.diagnostics import Diagnostics
from cosim.mechanics.multibody.description.sdf.scopes import Scope, SdfPart
from cosim.mechanics.multibody.description.sdf.values import SdfValues, children
from cosim.mechanics.multibody.description.urdf_collisions import unequal
from cosim.mechanics.multibody.description.xmltree import XmlElement
from cosim.mechanics.multibody.mechanism import GROUND_LINK, Pose

COEFFICIENT = 1.0  # of friction where the file has none
OF_PATCH = 3.0 * math.pi / 16.0
UP = (0.0, 0.0, 1.0)
# kind -> the elements of its sizes and how many numbers these have
SIZES = {
    "sphere": (("radius", 1),),
    "capsule": (("radius", 1), ("length", 1)),
    "cylinder": (("radius", 1), ("length", 1)),
    "box": (("size", 3),),
}


def collisions_of(scopes: Sequence[Scope]) -> tuple[CollisionShape, ...]:
    """Of the links in these scopes; those that stand are shapes of the ground."""
    return tuple(
        _shape(collision, part, scope)
        for scope in scopes
        for part in scope.links
        for collision in children(part.element, "collision")
    )


def _shape(collision: XmlElement, part: SdfPart, scope: Scope) -> CollisionShape:
    values = SdfValues(Diagnostics(), scope.values.owners)  # errors here are none of the file
    link = scope.flat(part.name)
    place, stands = scope.values.place(collision), link == GROUND_LINK
    of_frames = scope.values.diagnostics.errors
    before = len(of_frames)
    pose = _pose(collision, part, scope, values)
    values.diagnostics.errors += of_frames[before:]
    del of_frames[before:]
    geometry = values.child(collision, "geometry")
    element = next(iter(geometry.children), None) if geometry is not None else None
    kind = "shape without geometry" if element is None else element.tag
    shape, turn, lost = _geometry(element, kind, stands, values)
    friction, of_surface = _surface(collision, values)
    if values.diagnostics.errors:
        return CollisionShape(link, kind, pose, None, None, (values.diagnostics.errors[0].what,), place=place)
    turned = pose if turn is None else pose @ Pose(turn, np.zeros(3))
    return CollisionShape(link, kind, turned, shape, friction, (*lost, *of_surface), place=place)


def _pose(collision: XmlElement, part: SdfPart, scope: Scope, values: SdfValues) -> Pose:
    """In the link; in the root of one that stands."""
    pose, relative_to = values.pose(collision)
    if scope.flat(part.name) == GROUND_LINK:
        return scope.relative(GROUND_LINK, relative_to or part.name, collision) @ pose
    return scope.relative(part.name, relative_to, collision) @ pose if relative_to else pose


def _geometry(
    element: XmlElement | None, kind: str, stands: bool, values: SdfValues
) -> tuple[ContactShape | None, np.ndarray | None, tuple[str, ...]]:
    """(the shape, the rotation of its z axis if it has one, what is lost)."""
    if element is not None and kind == "plane" and stands:
        normal = values.child(element, "normal")
        x, y, z = UP if normal is None else values.numbers(normal, normal.text, 3) or UP
        length = math.hypot(x, y, z)
        return (HalfSpace(), _along(np.array([x, y, z]) / length), ()) if length else (None, None, ("its normal is 0",))
    sizes: list[float] = []
    parts = [] if element is None else [(values.child(element, tag), count) for tag, count in SIZES.get(kind, ())]
    for size, count in parts:
        sizes += [] if size is None else values.numbers(size, size.text, count) or []
    try:
        return primitive(kind, sizes), None, ()
    except ValueError as error:
        return None, None, (str(error),)


def _along(z: np.ndarray) -> np.ndarray:
    """(3, 3) a rotation with this z axis (3,)."""
    if np.array_equal(z, UP):
        return np.eye(3)
    x = np.cross([0.0, 1.0, 0.0] if abs(z[1]) < 0.9 else [1.0, 0.0, 0.0], z)
    x /= np.linalg.norm(x)
    return np.column_stack([x, np.cross(z, x), z])


def _surface(collision: XmlElement, values: SdfValues) -> tuple[SurfaceFriction, tuple[str, ...]]:
    """(friction, what of it is lost)."""
    surface = values.child(collision, "surface")
    friction = None if surface is None else values.child(surface, "friction")
    if surface is None or friction is None:
        return SurfaceFriction(COEFFICIENT, COEFFICIENT), ()
    ode, bullet = (values.child(friction, engine) for engine in ("ode", "bullet"))
    first = values.number(ode, "mu", COEFFICIENT) if ode is not None else values.number(bullet, "friction", COEFFICIENT)
    second = None if ode is None or values.child(ode, "mu2") is None else values.number(ode, "mu2", first)
    torsional = values.child(friction, "torsional")
    spinning = 0.0
    if torsional is not None:
        coefficient = values.number(torsional, "coefficient", COEFFICIENT)
        spinning = OF_PATCH * coefficient * values.number(torsional, "patch_radius", 0.0)
    sliding = max(first, 0.0)
    return SurfaceFriction(sliding, sliding, max(spinning, 0.0)), unequal(first, second)
