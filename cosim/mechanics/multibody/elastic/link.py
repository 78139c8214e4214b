"""An elastic link: the constants of its modes, and the displacement of the places at which others are attached."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cosim.core import ops
from cosim.core.types import Array, Numeric
from cosim.mechanics.multibody.elastic_bodies import ModalMass, PointCurve
from cosim.mechanics.multibody.spatial import SpatialVector


class Displacement(NamedTuple):
    """Of one point: its path, and the rotation θ = Σ ψ_μ η_μ of what is attached to it."""

    path: PointCurve
    angular: Array  # ψ (m, 3)

    @property
    def is_none(self) -> bool:
        return not any(np.any(part) for part in (self.path.linear, self.path.curve, self.angular))

    def place(self, eta: Numeric) -> tuple[Numeric, Numeric]:
        """(axes (3, 3), origin (3,)) in the frame of the body. The rotation is θ for small angles: it is about θ, and
        the tangent of half its angle is |θ| / 2."""
        g = 0.5 * (eta @ self.angular)
        across = ops.skew(g)
        return np.eye(3) + (across + across @ across) * (2.0 * ops.reciprocal(1.0 + g @ g)), self.path.place(eta)[0]

    def motion(self, eta: Numeric, rate: Numeric) -> tuple[tuple[SpatialVector, ...], SpatialVector, SpatialVector]:
        """(velocities per unit of each η̇, velocity, acceleration at η̈ = 0) in the frame of the body. The angular
        velocity of a rotation with the Gibbs vector g is 2 (ġ + g × ġ) / (1 + g·g)."""
        g, g_rate = 0.5 * (eta @ self.angular), 0.5 * (rate @ self.angular)
        scale = ops.reciprocal(1.0 + g @ g)
        _, b = self.path.place(eta)
        turns = [(psi + ops.cross(g, psi)) * scale for psi in self.angular]
        slip, bias = self.path.rates(eta, rate)
        spin = (g_rate + ops.cross(g, g_rate)) * (2.0 * scale)
        slowing = -2.0 * scale * (g @ g_rate)
        return tuple(map(SpatialVector, b, turns)), SpatialVector(slip, spin), SpatialVector(bias, slowing * spin)


class Remedies(NamedTuple):
    """What gives a link the modes that it lacks, as the end of a message: where constraints hold a mode, and where they
    hold the link along an axis that keeps its length."""

    held: str
    along: str


class DrawnPiece(NamedTuple):
    """A straight piece of an elastic link in drawings, between two of its points."""

    start: Displacement
    end: Displacement


@dataclass(frozen=True, eq=False)
class ElasticLink:
    """An elastic link. mass, m c (3,) and J (3, 3) of the undeformed link about the origin of its frame; modes:
    (name, unit) of each.

    The elastic forces are −K η − N η̇ − Σ h_μκλν η_κ η_λ η_ν. displacement(point): of a point (3,) of the undeformed
    link; it raises InputError for a point at which nothing can be attached. remedies: of too few modes. pieces(): as
    which it is drawn; drawn: whether there are bodies for them, in a model for drawings alone; in_equilibrium: whether
    it starts in its equilibrium.
    """

    mass: float
    moment: Array
    inertia: Array
    modes: tuple[tuple[str, str], ...]
    modal: ModalMass
    stiffness: Array  # K (m, m)
    damping: Array  # N (m, m)
    displacement: Callable[[Array], Displacement]
    hardening: Array  # h (m, m, m, m), symmetric
    remedies: Remedies
    pieces: Callable[[], tuple[DrawnPiece, ...]] = tuple
    drawn: bool = False
    in_equilibrium: bool = False

    @property
    def full_deflection(self) -> Array:
        """(m,) the modal coordinate with which a mode alone moves a point by the length of the link; inf where it only
        turns."""
        ends = [end.path for piece in self.pieces() for end in piece]
        if not ends:
            return np.full(len(self.modes), np.inf)
        size = np.linalg.norm(np.ptp([end.position for end in ends], axis=0))
        moved = np.linalg.norm([end.linear for end in ends], axis=2).max(axis=0)
        return np.divide(size, moved, out=np.full(len(moved), np.inf), where=moved > 0.0)
