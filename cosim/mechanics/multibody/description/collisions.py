"""Collision shapes of robot files: what links have to touch others with, and what of it is not taken.

They become contacts only where a rig declares these. A number that cannot be read is said there, and is no error of the
file, of which most rigs need no shapes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from cosim.core.errors import SourceLocation
from cosim.mechanics.multibody.contact.shapes import (
    BallShape,
    BoxShape,
    CapsuleShape,
    ContactShape,
    CylinderShape,
    TerrainShape,
)
from cosim.mechanics.multibody.mechanism import NOWHERE, Pose

PLURALS = {"box": "boxes", "mesh": "meshes"}
MESH = "mesh"
# shape that is not taken -> the nearest ones
NEAREST = {
    MESH: "spheres, boxes or capsules",
    "ellipsoid": "spheres or capsules",
    "cone": "cylinders or capsules",
    "plane": "boxes",
    "polyline": "boxes",
}


@dataclass(frozen=True)
class SurfaceFriction:
    """The friction of a surface in a robot file: coefficients of friction that sticks and that slides, and the moments
    that resist spinning and rolling, per normal force [m]."""

    static: float
    sliding: float
    torsional: float = 0.0
    rolling: float = 0.0

    def larger(self, other: SurfaceFriction) -> SurfaceFriction:
        """The larger one of each number, as MuJoCo combines two surfaces."""
        pairs = zip(self.numbers, other.numbers, strict=True)
        return SurfaceFriction(*(max(pair) for pair in pairs))

    @property
    def numbers(self) -> tuple[float, float, float, float]:
        return self.static, self.sliding, self.torsional, self.rolling


@dataclass(frozen=True)
class CollisionShape:
    """A shape of a link in a robot file.

    kind: what it is there, in words; shape: at `pose` in the link, None where it is not taken; lost: what else of it is
    not taken and changes the motion, or cannot be read, in words; remarks: what else is not taken.
    """

    link: str
    kind: str
    pose: Pose
    shape: ContactShape | None
    friction: SurfaceFriction | None = None
    lost: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    place: SourceLocation = NOWHERE


def finite(shape: CollisionShape) -> CollisionShape:
    """The shape, which is not taken where its place, its friction or its heights are no numbers."""
    friction = () if shape.friction is None else shape.friction.numbers
    heights = shape.shape.heights if isinstance(shape.shape, TerrainShape) else ()
    numbers = (shape.pose.position, shape.pose.rotation, friction, heights)
    if all(np.isfinite(each).all() for each in numbers):
        return shape
    return replace(shape, shape=None, friction=None, lost=("its numbers are not finite",))


def counted(shapes: Sequence[CollisionShape]) -> str:
    """`4 spheres, 1 box`, in the order of the file."""
    counts = Counter(shape.kind for shape in shapes)
    return ", ".join(f"{n} {kind if n == 1 else PLURALS.get(kind, f'{kind}s')}" for kind, n in counts.items())


def primitive(kind: str, sizes: Sequence[float]) -> ContactShape | None:
    """The shape of a kind with its sizes [m]: a sphere's radius, radius and length of a capsule or a cylinder, edges of
    a box. None for other kinds. Raises ValueError for sizes that are not above 0."""
    shapes = {
        "sphere": (BallShape, 1),
        "capsule": (CapsuleShape, 2),
        "cylinder": (CylinderShape, 2),
        "box": (BoxShape, 3),
    }
    if kind not in shapes:
        return None
    cls, count = shapes[kind]
    if len(sizes) != count or not all(np.isfinite(sizes)) or min(sizes) <= 0.0:
        shown = " ".join(f"{size:g}" for size in sizes)
        raise ValueError(f"a {kind} needs sizes above 0, got {shown or 'none'}")
    return BoxShape(tuple(map(float, sizes))) if cls is BoxShape else cls(*map(float, sizes))  # type: ignore[arg-type]
