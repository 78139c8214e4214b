"""The shape of a link in an entry of `mechanism.contacts`, and where it is in the link."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cosim.core.types import param, params
from cosim.mechanics.multibody.contact.shape_words import in_words
from cosim.mechanics.multibody.contact.shapes import (
    BallShape,
    BoxShape,
    CapsuleShape,
    ContactShape,
    CylinderShape,
    HalfSpace,
    HullShape,
)
from cosim.mechanics.multibody.mechanism import Pose
from cosim.rig.reading.names import Reference
from cosim.rig.reading.schema import KeyPath, Reading
from cosim.rig.sections.contact_meshes import MeshKeys, read_hull
from cosim.rig.sections.geometry import Origin, Vector, at_point
from cosim.rig.sections.joint_definition import keyed


@params
class RoundKeys:
    radius: float = param(unit="m", above=0)
    length: float = param(unit="m", above=0, doc="along z; of a capsule between the centres of its ends")


@keyed
class ShapeKeys:
    link: Reference | None = param(default=None, doc="that has the shape")
    point: Vector | None = param(unit="m", default=None, doc="in the frame of the link")
    sphere: float | None = param(unit="m", above=0, default=None, doc="its radius")
    capsule: RoundKeys | None = param(default=None, doc="radius and length, along z")
    cylinder: RoundKeys | None = param(default=None, doc="radius and length, along z")
    box: Vector | None = param(unit="m", above=0, default=None, doc="its edges along x, y and z")
    mesh: MeshKeys | None = param(default=None, doc="the convex hull of a file")
    plane: Origin | None = param(default=None, doc="frame whose z points out of the body")
    at: Vector | None = param(unit="m", default=None, doc="the middle of the shape in the link; default: its origin")
    origin: Origin | None = param(default=None, doc="frame of the shape in the link, in place of `at`")


SHAPES = ("point", "sphere", "capsule", "cylinder", "box", "mesh", "plane")
PLACED = ("point", "plane")  # shapes that have their place themselves


class PlacedShape(NamedTuple):
    """A shape and its frame in the link. lost: what of it is not taken, in words."""

    shape: ContactShape
    pose: Pose
    lost: str = ""


def placed_shape(keys: ShapeKeys, path: KeyPath, reading: Reading) -> PlacedShape | None:
    """The shape of an entry at `path`; None after an error, which is recorded."""
    given = [name for name in SHAPES if getattr(keys, name) is not None]
    if len(given) != 1:
        what = "no shape is given" if not given else f"the shapes {' and '.join(map(repr, given))} are given"
        return reading.fail(path, f"{what}; give one of {', '.join(SHAPES)}")
    (name,) = given
    places = [key for key in ("at", "origin") if getattr(keys, key) is not None]
    if len(places) == 2:
        return reading.fail((*path, "at"), "'at' and 'origin' are given; keep one of them")
    if places and name in PLACED:
        return reading.fail((*path, places[0]), f"a {name} has its place in '{name}'; take this out")
    pose = Pose.identity() if keys.origin is None else keys.origin.pose
    if keys.at is not None:
        pose = at_point(keys.at)
    if keys.point is not None:
        pose = at_point(keys.point)
    if keys.plane is not None:
        pose = keys.plane.pose
    if keys.mesh is None:
        return PlacedShape(_shape(keys), pose)
    found = read_hull(keys.mesh, (*path, "mesh"), reading)
    return None if found is None else PlacedShape(found[0], pose, found[1])


def _shape(keys: ShapeKeys) -> ContactShape:
    if keys.sphere is not None:
        return BallShape(keys.sphere)
    if keys.box is not None:
        return BoxShape(keys.box)
    if keys.capsule is not None:
        return CapsuleShape(keys.capsule.radius, keys.capsule.length)
    if keys.cylinder is not None:
        return CylinderShape(keys.cylinder.radius, keys.cylinder.length)
    return HalfSpace() if keys.plane is not None else BallShape()


def extent(shape: ContactShape) -> str:
    """A shape with its sizes: `sphere 20 mm`, `box 100 x 40 x 20 mm`."""
    match shape:
        case BallShape(radius):
            sizes = [radius] if radius else []
        case CapsuleShape(radius, length) | CylinderShape(radius, length):
            sizes = [radius, length]
        case BoxShape(size):
            sizes = list(size)
        case HullShape(corners):
            sizes = np.ptp(corners, axis=0).tolist()
        case _:
            sizes = []
    shown = " x ".join(f"{float(size) * 1e3:.6g}" for size in sizes)
    return f"{in_words(shape)} {shown} mm" if shown else in_words(shape)
