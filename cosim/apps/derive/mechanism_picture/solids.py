"""Convex solids as faces, shaded and drawn from back to front."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from cosim.apps.derive.mechanism_picture.pen import INK, Pen, hull

SIDES = 44  # of a cylinder
LIGHT = np.array([-0.35, 0.62, 0.7])  # from where it comes, in axes of the view
DARKEST = 0.7  # of a face in the shade
RING = np.linspace(0.0, 2.0 * np.pi, SIDES, endpoint=False)
SIGNS = np.array(list(product((-0.5, 0.5), repeat=3)))
BOX_FACES = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))


class Solid(NamedTuple):
    """points (k, 3) in axes of the view, in; faces: numbers of points, counterclockwise from outside."""

    points: np.ndarray
    faces: Sequence[Sequence[int]]
    fill: Any  # a colour of matplotlib

    @property
    def depth(self) -> float:
        return float(self.points[:, 2].mean())


def cylinder(start: np.ndarray, end: np.ndarray, radius: float, fill: Any) -> Solid:
    """Between two points (3,)."""
    along = (end - start) / np.linalg.norm(end - start)
    across = np.cross(along, np.eye(3)[np.argmin(np.abs(along))])
    across /= np.linalg.norm(across)
    rim = radius * (np.outer(np.cos(RING), across) + np.outer(np.sin(RING), np.cross(along, across)))
    sides = [(k, (k + 1) % SIDES, (k + 1) % SIDES + SIDES, k + SIDES) for k in range(SIDES)]
    return Solid(np.vstack([start + rim, end + rim]), [*sides, [*range(SIDES)][::-1], [*range(SIDES, 2 * SIDES)]], fill)


def box(corners: np.ndarray, fill: Any) -> Solid:
    """corners (8, 3) in the order of SIGNS."""
    return Solid(corners, BOX_FACES, fill)


def ellipsoid(centre: np.ndarray, half_axes: np.ndarray, fill: Any) -> Solid:
    """half_axes (3, 3): its half axes as columns."""
    heights = np.linspace(-1.0, 1.0, SIDES // 2 + 1)[1:-1]
    rings = [np.column_stack([np.sqrt(1.0 - h * h) * np.cos(RING), np.sqrt(1.0 - h * h) * np.sin(RING),
                              np.full(SIDES, h)]) for h in np.sin(0.5 * np.pi * heights)]  # fmt: skip
    n = len(rings)
    faces = [
        (r * SIDES + k, r * SIDES + (k + 1) % SIDES, (r + 1) * SIDES + (k + 1) % SIDES, (r + 1) * SIDES + k)
        for r in range(n - 1)
        for k in range(SIDES)
    ]
    caps = [[*range(SIDES)][::-1], [*range((n - 1) * SIDES, n * SIDES)]]
    return Solid(np.vstack(rings) @ half_axes.T + centre, [*faces, *caps], fill)


def draw_solids(pen: Pen, solids: Sequence[Solid], above: float) -> None:
    """As one thing: the outlines, and above all of them the faces towards the eye."""
    for solid in sorted(solids, key=lambda solid: solid.depth):
        draw_solid(pen, solid, above)


def draw_solid(pen: Pen, solid: Solid, above: float) -> None:
    """Its outline, and the faces towards the eye."""
    from matplotlib.collections import PolyCollection
    from matplotlib.colors import to_rgb

    pen.polygon(hull(solid.points[:, :2]), solid.fill, INK, 1.5, above)
    light = LIGHT / np.linalg.norm(LIGHT)
    centre = solid.points.mean(axis=0)
    shown, colors = [], []
    for face in solid.faces:
        corners = solid.points[list(face)]
        normal = np.cross(corners[1] - corners[0], corners[2] - corners[1])
        normal *= np.sign(normal @ (corners.mean(axis=0) - centre)) / max(float(np.linalg.norm(normal)), 1e-12)
        if normal[2] > 0.0:
            bright = DARKEST + (1.08 - DARKEST) * max(float(normal @ light), 0.0)
            shown.append(corners[:, :2])
            colors.append(pen.tint([min(c * bright, 1.0) for c in to_rgb(solid.fill)]))
    faces = PolyCollection(
        shown, facecolors=colors, edgecolors=colors, linewidths=0.35, zorder=pen.order + above + 1e-4
    )
    pen.axes.add_collection(faces, autolim=False)
