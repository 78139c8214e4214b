"""The shapes that may touch, as solids of a scene."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise, product

import numpy as np

from cosim.mechanics.multibody.contact.shape_words import in_words
from cosim.mechanics.multibody.contact.shapes import (
    BallShape,
    BoxShape,
    CapsuleShape,
    ContactShape,
    CylinderShape,
    HalfSpace,
    TerrainShape,
)
from cosim.mechanics.multibody.mechanism import Pose
from cosim.mechanics.multibody.tree import Tree
from cosim.output.scene.scene import Color, Shape, ShapeKind, placement

POINT = 0.02  # diameter of a point, over the extent of the mechanism
PLANE = 2.0, 0.004  # edge and thickness of the plate that a half-space is shown as, likewise
PLATE = (0.87, 0.88, 0.9, 1.0)  # its colour
TERRAIN = 3.0, 20  # what is drawn of a terrain: to both sides of the mechanism, likewise; plates in a row of it
OVERLAP = 1.02  # of edges of plates, so that none shows a gap
SHADES = 0.12  # by which plates that fall along x are darker, per slope

Solid = tuple[ShapeKind, tuple[float, float, float], float]  # kind, edges [m], height of its centre along z


def contact_solids(tree: Tree, extent: float, middle: np.ndarray) -> tuple[list[tuple[int, Shape]], list[str]]:
    """(body of the scene and shape of each, notes on what is not shown). extent: of the mechanism [m]; middle (3,): of
    it at the start."""
    found: list[tuple[int, Shape]] = []
    hidden: list[str] = []
    seen: set[tuple] = set()
    for contact in tree.mechanism.contacts:
        for (link, pose), shape in zip(contact.ends, contact.shapes, strict=True):
            body, frame = tree.frames[link]
            every = list(_drawn(shape, link, frame @ pose, extent, middle))
            if not every:
                hidden.append(f"the {in_words(shape)} of contact '{contact.name}'")
            for drawn in every:
                if (body, drawn) not in seen:  # the ground, that many contacts share
                    seen.add((body, drawn))
                    found.append((body + 1, drawn))
    return found, [f"{what} is not drawn" for what in hidden[:1]]


def _drawn(shape: ContactShape, link: str, frame: Pose, extent: float, middle: np.ndarray) -> Iterator[Shape]:
    if isinstance(shape, TerrainShape):
        yield from _plates(shape, link, frame, extent, middle)
    color = PLATE if isinstance(shape, HalfSpace) else None
    for kind, size, height in _solids(shape, extent):
        yield _shape(link, frame, kind, size, height, color)


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


def _plates(shape: TerrainShape, link: str, frame: Pose, extent: float, middle: np.ndarray) -> Iterator[Shape]:
    """A terrain as plates, each through the middle of the heights at its four corners and with their mean slopes."""
    reach, count = TERRAIN
    x0, y0, _ = frame.rotation.T @ (middle - frame.position)
    rows, columns = (_corners(axis, at, reach * extent, count) for axis, at in ((shape.x, x0), (shape.y, y0)))
    thick = PLANE[1] * extent
    for (i, next_i), (j, next_j) in product(pairwise(rows), pairwise(columns)):
        heights = np.asarray(shape.heights, dtype=float)[np.ix_([i, next_i], [j, next_j])]
        long, wide = float(shape.x[next_i] - shape.x[i]), float(shape.y[next_j] - shape.y[j])
        slopes = np.array([np.diff(heights, axis=0).mean() / long, np.diff(heights, axis=1).mean() / wide])
        along, up = np.array([1.0, 0.0, slopes[0]]), np.array([-slopes[0], -slopes[1], 1.0])
        along, up = along / np.linalg.norm(along), up / np.linalg.norm(up)
        axes = np.column_stack([along, np.cross(up, along), up])
        centre = np.array([shape.x[i] + 0.5 * long, shape.y[j] + 0.5 * wide, heights.mean()]) - 0.5 * thick * up
        edges = zip((long, wide), slopes, strict=True)
        length, width = (OVERLAP * edge * float(np.hypot(1.0, slope)) for edge, slope in edges)
        shade = float(np.clip(1.0 - SHADES * (slopes[0] + slopes[1]), 0.6, 1.1))
        red, green, blue = (shade * part for part in PLATE[:3])
        where = placement(np.asarray(frame.rotation) @ axes, frame.position + frame.rotation @ centre)
        yield Shape("box", "contact", link, where, (length, width, thick), (red, green, blue, 1.0))


def _corners(axis: np.ndarray, middle: float, reach: float, count: int) -> list[int]:
    """Indices of heights along an axis, as far as they are within reach, for `count` plates or fewer; at least two."""
    near = np.flatnonzero(np.abs(axis - middle) <= reach)
    first, last = (int(near[0]), int(near[-1])) if len(near) else (int(np.argmin(np.abs(axis - middle))),) * 2
    first, last = max(first - 1, 0), min(last + 1, len(axis) - 1)
    return np.unique(np.linspace(first, last, count + 1).round().astype(int)).tolist()


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
