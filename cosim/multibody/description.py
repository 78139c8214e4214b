"""What a mechanism file says, before any dynamics: links, joints, where each was written.

URDF files and inline `bodies:` of a rig both end here; `Model` starts from here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from cosim.errors import Place

NOWHERE = Place("<inline>")


@dataclass(frozen=True)
class Pose:
    """A frame in another: `rotation` (3, 3) takes vectors from it to the other, `position` (3,) is its origin."""

    rotation: np.ndarray
    position: np.ndarray

    @staticmethod
    def identity() -> Pose:
        return Pose(np.eye(3), np.zeros(3))

    def __matmul__(self, inner: Pose) -> Pose:
        return Pose(self.rotation @ inner.rotation, self.position + self.rotation @ inner.position)

    def inverse(self) -> Pose:
        return Pose(self.rotation.T, -self.rotation.T @ self.position)


@dataclass(frozen=True)
class Inertial:
    """Mass [kg], centre of mass (3,) in the link frame [m], inertia (3, 3) about the centre of mass
    along the axes of the link frame [kg m²]."""

    mass: float
    com: np.ndarray
    inertia: np.ndarray


@dataclass(frozen=True)
class Link:
    name: str
    inertial: Inertial | None = None  # None: massless
    place: Place = NOWHERE


@dataclass(frozen=True)
class Mimic:
    """position = multiplier · (position of `joint`) + offset."""

    joint: str
    multiplier: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True)
class Joint:
    """A joint as the file gives it: `pose` is the child link's frame in the parent's at position 0,
    `axis` a unit vector in the child's frame."""

    name: str
    kind: str  # revolute, continuous, prismatic or fixed
    parent: str
    child: str
    pose: Pose
    axis: np.ndarray = field(default_factory=lambda: np.array([0.0, 0.0, 1.0]))
    lower: float = -math.inf
    upper: float = math.inf
    max_velocity: float = math.inf
    max_effort: float = math.inf
    damping: float = 0.0  # N m s/rad or N s/m
    friction: float = 0.0  # Coulomb, N m or N
    mimic: Mimic | None = None
    place: Place = NOWHERE


@dataclass(frozen=True)
class Mechanism:
    """A tree of links and joints; `notes` are remarks on the file that are not errors."""

    name: str
    root: str
    links: tuple[Link, ...]  # file order
    joints: tuple[Joint, ...]  # file order
    notes: tuple[str, ...] = ()
