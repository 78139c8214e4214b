"""A beam as a chain of rigid pieces with springs between them, to compare with its modes.

A beam of length L has n joints at L (k − ½) / n, each with the stiffness of the part of the beam around it, EI n / L
(Wittbrodt, Adamiec-Wójcik and Wojciech, Dynamics of Flexible Multibody Systems: Rigid Finite Element Method, 2006).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import pairwise

import numpy as np

from cosim.core.errors import InputError
from cosim.core.types import Array
from cosim.mechanics.multibody.elastic.beam import DIRECTIONS, Beam


@dataclass(frozen=True, eq=False)
class RigidPiece:
    """The mass properties of one rigid piece of a beam, in the axes of the beam. start: x at which it begins [m]; mass,
    m c (3,) and J (3, 3) about that point."""

    start: float
    mass: float
    moment: Array
    inertia: Array


@dataclass(frozen=True, eq=False)
class SpringJoint:
    """Between two pieces, at x [m]: linear or angular about an axis (3,); stiffness and damping."""

    name: str
    linear: bool
    axis: Array
    stiffness: float
    damping: float


@dataclass(frozen=True, eq=False)
class RigidElements:
    """A beam as a chain of rigid pieces with springs between them. pieces: n + 1; joints: n lists of those between
    them, in their order from the root."""

    length: float
    pieces: tuple[RigidPiece, ...]
    joints: tuple[tuple[SpringJoint, ...], ...]

    @property
    def mass(self) -> float:
        """kg"""
        return sum(piece.mass for piece in self.pieces)

    def piece_at(self, point: Array) -> int:
        """The piece to which a point (3,) of the undeformed beam belongs. Raises InputError beyond the ends."""
        x, beyond = float(point[0]), 1e-9 * self.length
        if not -beyond <= x <= self.length + beyond:
            what = f"x = {x:.10g} m is beyond the beam, which ends at {self.length:.10g} m"
            raise InputError(f"{what}; move it or lengthen the beam")
        return int(np.searchsorted([piece.start for piece in self.pieces[1:]], x, side="right"))


def rigid_elements(beam: Beam, count: int) -> RigidElements:
    """The beam with `count` joints for each kind of motion that has modes. Raises InputError for other ends than
    clamped and free."""
    if beam.ends != ("clamped", "free"):
        raise InputError("rigid_elements are for a beam that is clamped at its root and free at its tip")
    borders = np.array([0.0, *(beam.length * (np.arange(count) + 0.5) / count), beam.length])
    pieces = tuple(_piece(beam, start, end) for start, end in pairwise(borders.tolist()))
    lowest = dict(zip((name for name, _ in beam.mode_names), beam.frequencies, strict=True))
    joints = tuple(
        tuple(_joints_at(beam, k, float(x), beam.length / count, lowest)) for k, x in enumerate(borders[1:-1], 1)
    )
    return RigidElements(beam.length, pieces, joints)


def _piece(beam: Beam, start: float, end: float) -> RigidPiece:
    """Its mass by Gauss's formula."""
    nodes, weights = np.polynomial.legendre.leggauss(4)
    x, w = 0.5 * (end - start) * (nodes + 1.0), 0.5 * (end - start) * weights
    mass = w * beam.section.mass(start + x)
    spread = np.array([0.0, mass @ x**2, mass @ x**2])
    own = np.array([w @ about(start + x) for about in beam.section.inertia])
    return RigidPiece(start, float(mass.sum()), np.array([mass @ x, 0.0, 0.0]), np.diag(spread + own))


def _joints_at(beam: Beam, k: int, x: float, h: float, lowest: dict[str, float]) -> Iterator[SpringJoint]:
    at = np.array([x])
    for kind, modes in asdict(beam.modes).items():
        if not modes:
            continue
        linear, angular = DIRECTIONS[kind]
        stretches = kind == "stretch"
        stiffness = float(beam.resistance(kind)(at)[0]) / h
        # damping in proportion to stiffness that gives the first mode its ratio
        damping = 2.0 * beam.damping_ratio * stiffness / lowest[f"{kind}_1"]
        yield SpringJoint(f"{kind}_{k}", stretches, linear if stretches else angular, stiffness, damping)
