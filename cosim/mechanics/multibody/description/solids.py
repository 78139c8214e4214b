"""Homogeneous solids, of which collision shapes give an inertia: volume, centre on the z axis, moments per mass."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from cosim.mechanics.multibody.mechanism import Inertial


class SolidShape(NamedTuple):
    """volume [m³]; centre: its z [m]; moments: about the centre of mass along x, y and z, per mass [m²]."""

    volume: float
    centre: float
    moments: tuple[float, float, float]

    def inertial(self, mass: float) -> Inertial:
        return Inertial(mass, np.array([0.0, 0.0, self.centre]), mass * np.diag(self.moments))


def box(x: float, y: float, z: float) -> SolidShape:
    return SolidShape(x * y * z, 0.0, ((y * y + z * z) / 12, (x * x + z * z) / 12, (x * x + y * y) / 12))


def sphere(radius: float) -> SolidShape:
    return ellipsoid(radius, radius, radius)


def ellipsoid(a: float, b: float, c: float) -> SolidShape:
    return SolidShape(4 / 3 * math.pi * a * b * c, 0.0, ((b * b + c * c) / 5, (a * a + c * c) / 5, (a * a + b * b) / 5))


def cylinder(radius: float, length: float) -> SolidShape:
    across = radius * radius / 4 + length * length / 12
    return SolidShape(math.pi * radius * radius * length, 0.0, (across, across, radius * radius / 2))


def capsule(radius: float, length: float) -> SolidShape:
    """A cylinder of this length with half spheres at its ends, whose centres are 3/8 of the radius from their bases."""
    part, ball = math.pi * radius * radius * length, 4 / 3 * math.pi * radius**3
    of_ball = 0.4 * radius * radius + length * length / 4 + 3 / 8 * length * radius
    across = (part * (radius * radius / 4 + length * length / 12) + ball * of_ball) / (part + ball)
    along = (part * radius * radius / 2 + ball * 0.4 * radius * radius) / (part + ball)
    return SolidShape(part + ball, 0.0, (across, across, along))


def cone(radius: float, length: float) -> SolidShape:
    """Its base at −length/2, its tip at +length/2."""
    across = 3 / 80 * (4 * radius * radius + length * length)
    return SolidShape(math.pi * radius * radius * length / 3, -length / 4, (across, across, 0.3 * radius * radius))
