"""Shapes of links that may touch, each in a frame of its own, and the law of their contact."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cosim.core.types import Numeric


@dataclass(frozen=True)
class BallShape:
    """A sphere about the origin; of radius 0 a point. radius [m]"""

    radius: Numeric = 0.0


@dataclass(frozen=True)
class CapsuleShape:
    """All points within `radius` of a segment of this length along z, with the origin at its middle [m]."""

    radius: Numeric
    length: Numeric


@dataclass(frozen=True)
class BoxShape:
    """A box with its centre at the origin; size (3,): its edges along x, y and z [m]."""

    size: tuple[Numeric, Numeric, Numeric]


@dataclass(frozen=True)
class CylinderShape:
    """A cylinder about z with its centre at the origin [m]."""

    radius: Numeric
    length: Numeric


@dataclass(frozen=True)
class HalfSpace:
    """All points below z = 0."""


@dataclass(frozen=True, eq=False)
class TerrainShape:
    """All points below a surface over the plane z = 0: heights (n, m) [m] at x (n,) and y (m,) [m], which rise evenly;
    outside of the grid the surface goes on at the heights of its edge. Each cell is two triangles, on both sides of its
    diagonal from the corner of least x and y to the corner of greatest."""

    x: np.ndarray
    y: np.ndarray
    heights: np.ndarray


@dataclass(frozen=True, eq=False)
class HullShape:
    """A convex hull: corners (n, 3) [m], and by number the corners of each group, see `hulls`."""

    corners: np.ndarray
    groups: tuple[tuple[int, ...], ...]


ContactShape = BallShape | CapsuleShape | BoxShape | CylinderShape | HullShape | HalfSpace | TerrainShape


@dataclass(frozen=True)
class ContactLaw:
    """How two shapes act on each other where they touch.

    Coulomb friction: a contact that sticks begins to slide beyond `static` times its normal force, and slides with
    `sliding` times it. torsional, rolling: the moments about the normal and across it that resist spinning and rolling,
    per normal force [m]. stiffness: of a point of contact [N/m], None for a rigid one. restitution: the part of the
    normal velocity with which a body rebounds (Newton).
    """

    static: Numeric
    sliding: Numeric
    torsional: Numeric = 0.0
    rolling: Numeric = 0.0
    stiffness: Numeric | None = None
    restitution: Numeric = 0.0
