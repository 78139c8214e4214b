"""An elastic link: the constants of its modes, and the displacement of the places at which others are attached."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cosim import ops
from cosim.multibody.elastic_bodies import ModalMass, PointCurve
from cosim.multibody.spatial import Hinge, SpatialVector
from cosim.types import Array, Numeric


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
        return np.eye(3) + (across + across @ across) * (2.0 / (1.0 + g @ g)), self.path.place(eta)[0]

    def hinge(self, eta: Numeric, rate: Numeric) -> Hinge:
        """Its motion by the modes, along its own axes. The angular velocity of a rotation with the Gibbs vector g is
        2 (ġ − g × ġ) / (1 + g·g)."""
        turn, _ = self.place(eta)
        _, linear = self.path.place(eta)
        g = 0.5 * (eta @ self.angular)
        scale = 1.0 / (1.0 + g @ g)
        columns = [
            SpatialVector(turn.T @ b, (psi - ops.cross(g, psi)) * scale)
            for b, psi in zip(linear, self.angular, strict=True)
        ]
        spin = ops.total(s.angular * rate[mu] for mu, s in enumerate(columns))
        slowing = (g @ (rate @ self.angular)) * scale
        bias = SpatialVector(turn.T @ self.path.bias(eta, rate), -slowing * spin)
        return Hinge(tuple(columns), SpatialVector(np.zeros(3), np.zeros(3)), bias)


class Segment(NamedTuple):
    """A part of a link that is drawn as a straight bar: along x of the place of its middle, with this length [m]."""

    middle: Displacement
    length: float


@dataclass(frozen=True, eq=False)
class ElasticLink:
    """mass, m c (3,) and J (3, 3) of the undeformed link about the origin of its frame; modes: (name, unit) of each.

    The elastic forces are −K η − N η̇ − Σ h_μκλν η_κ η_λ η_ν. displacement(point) gives that of a point (3,) of the
    undeformed link; it raises InputError for a point at which nothing can be attached.
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
    segments: tuple[Segment, ...] = ()
