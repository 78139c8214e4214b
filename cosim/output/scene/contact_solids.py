"""The shapes that may touch, as solids of a scene."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cosim.mechanics.multibody.contact.shape_words import in_words
from cosim.mechanics.multibody.contact.shapes import (
    BallShape,
    BoxShape,
    CapsuleShape,
    ContactShape,
    CylinderShape,
    HalfSpace,
)
from cosim.mechanics.multibody.mechanism import Pose
from cosim.mechanics.multibody.tree import Tree
from cosim.output.scene.scene import Color, Shape, ShapeKind, placement

POINT = 0.02  # diameter of a point, over the extent of the mechanism
PLANE = 2.0, 0.004  # edge and thickness of the plate that a half-space is shown as, likewise
PLATE = (0.87, 0.88, 0.9, 1.0)  # its colour

Solid = tuple[ShapeKind, tuple[float, float, float], float]  # kind, edges [m], height of its centre along z


def contact_solids(tree: Tree, extent: float) -> tuple[list[tuple[int, Shape]], list[str]]:
    """(body of the scene and shape of each, notes on what is not shown). extent: of the mechanism [m]."""
    found: list[tuple[int, Shape]] = []
    seen: set[tuple] = set()
    hidden: list[str] = []
    for contact in tree.mechanism.contacts:
        for (link, pose), shape in zip(contact.ends, contact.shapes, strict=True):
            body, frame = tree.frames[link]
            solids, color = _solids(shape, extent), PLATE if isinstance(shape, HalfSpace) else None
            if not solids:
                hidden.append(f"the {in_words(shape)} of contact '{contact.name}'")
            for kind, size, height in solids:
                drawn = _shape(link, frame @ pose, kind, size, height, color)
                if (body, drawn) not in seen:  # the ground, that many contacts share
                    seen.add((body, drawn))
                    found.append((body + 1, drawn))
    notes = [f"{what} is not drawn" for what in hidden[:1]]
    return found, notes


def touching_sizes(tree: Tree) -> list[float]:
    """Diagonals [m] of the boxes around the shapes of bodies that may touch, but points."""
    shapes = (
        shape for contact in tree.mechanism.contacts for shape in contact.shapes if not isinstance(shape, HalfSpace)
    )
    boxes = [[np.add(size, (0.0, 0.0, 2.0 * abs(z))) for _, size, z in _solids(shape, 0.0)] for shape in shapes]
    return [float(np.linalg.norm(np.max(box, axis=0))) for box in boxes if box]


def _shape(link: str, frame: Pose, kind: ShapeKind, size: Sequence[float], height: float, color: Color | None) -> Shape:
    position = frame.position + frame.rotation @ np.array([0.0, 0.0, height])
    x, y, z = map(float, size)
    return Shape(kind, "contact", link, placement(np.asarray(frame.rotation), position), (x, y, z), color)


def _solids(shape: ContactShape, extent: float) -> list[Solid]:
    """None of a terrain and of a mesh."""
    if isinstance(shape, BallShape):
        across = 2.0 * float(shape.radius) or POINT * extent
        return [("ellipsoid", (across, across, across), 0.0)]
    if isinstance(shape, CapsuleShape):
        across, half = 2.0 * float(shape.radius), 0.5 * float(shape.length)
        balls: list[Solid] = [("ellipsoid", (across, across, across), end) for end in (-half, half)]
        return [("cylinder", (across, across, 2.0 * half), 0.0), *balls]
    if isinstance(shape, BoxShape):
        x, y, z = map(float, shape.size)
        return [("box", (x, y, z), 0.0)]
    if isinstance(shape, CylinderShape):
        across = 2.0 * float(shape.radius)
        return [("cylinder", (across, across, float(shape.length)), 0.0)]
    if isinstance(shape, HalfSpace):
        edge, thick = (part * extent for part in PLANE)
        return [("box", (edge, edge, thick), -0.5 * thick)]
    return []
