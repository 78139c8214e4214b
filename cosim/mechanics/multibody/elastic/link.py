"""An elastic link: the constants of its modes, the displacement of the places at which others are attached, and the
straight pieces as which it is drawn, along an axis or as a net between its nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from cosim.core import ops
from cosim.core.types import Array, Numeric
from cosim.mechanics.multibody.elastic_bodies import ModalMass, PointCurve
from cosim.mechanics.multibody.spatial import SpatialVector

PIECES = 8  # along an axis: five modes are still seen
KNOTS = 17  # most knots of a net
BESIDE = 0.02  # distance from the pieces over their size, from which on a place is beside them
NEAR = 0.25  # distance from a point of the grid over its pitch, within which nodes make one knot


class Displacement(NamedTuple):
    """The displacement of one point: its path, and the rotation θ = Σ ψ_μ η_μ of what is attached to it."""

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
    which it is drawn; length: of its axis along x [m], 0 where it has none; drawn: whether there are bodies for the
    pieces, in a model for drawings alone; in_equilibrium: whether it starts in its equilibrium.
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
    length: float = 0.0
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


def pieces_along(length: float, displacement: Callable[[Array], Displacement]) -> tuple[DrawnPiece, ...]:
    """Equal lengths of an axis x."""
    ends = [displacement(np.array([x, 0.0, 0.0])) for x in np.linspace(0.0, length, PIECES + 1)]
    return tuple(DrawnPiece(start, end) for start, end in pairwise(ends))


class Knots(NamedTuple):
    """Means over groups of nodes, of position (k, 3), φ (k, m, 3) and ψ (k, m, 3)."""

    position: Array
    linear: Array
    angular: Array


def knots_of(position: Array, linear: Array, angular: Array) -> Knots:
    """Of nodes: position (p, 3), φ (p, m, 3) and ψ (p, m, 3)."""
    groups = _groups(position)
    return Knots(*(np.array([part[group].mean(axis=0) for group in groups]) for part in (position, linear, angular)))


def net_of(knots: Knots) -> tuple[DrawnPiece, ...]:
    """A net between knots; a single one is joined to the origin."""
    m = knots.linear.shape[1]
    still = np.zeros((m, m, 3))
    ends = [Displacement(PointCurve(r, phi, still), psi) for r, phi, psi in zip(*knots, strict=True)]
    if len(ends) == 1 and knots.position.any():
        return (DrawnPiece(fixed_point(np.zeros(3), m), ends[0]),)
    return tuple(DrawnPiece(ends[i], ends[j]) for i, j in neighbours(knots.position))


def fixed_point(position: Array, modes: int) -> Displacement:
    """Of a point (3,) that stays where it is in the frame of the link."""
    return Displacement(PointCurve(position, np.zeros((modes, 3)), np.zeros((modes, modes, 3))), np.zeros((modes, 3)))


def _groups(position: Array) -> list[Array]:
    """The indices of the nodes that make each knot: those around the points of a grid along the axes of the link, the
    finest with at most KNOTS points that have nodes. In a direction in which the body is thin, the grid has one layer.
    """
    extents = np.ptp(position, axis=0)
    if not extents.any():
        return [np.arange(len(position))]
    places = cells = owners = np.zeros((0, 0))
    for count in range(KNOTS - 1, 0, -1):
        pitches = np.rint(count * extents / extents.max())
        wide = pitches > 0.0
        places = (position - position.min(axis=0))[:, wide] * pitches[wide] / extents[wide]
        cells, owners = np.unique(np.rint(places), axis=0, return_inverse=True)
        if len(cells) <= KNOTS:
            break
    groups = []
    for k, cell in enumerate(cells):
        own = np.flatnonzero(owners.ravel() == k)
        distances = np.linalg.norm(places[own] - cell, axis=1)  # in pitches
        groups.append(own[distances <= max(NEAR, distances.min())])
    return groups


def neighbours(points: Array) -> list[tuple[int, int]]:
    """Pairs of points (k, 3) with no other point nearer to both (Toussaint's relative neighbourhood graph, 1980). It
    connects all of them. Of equal distances the first one counts as less: so no three points are joined with each
    other, and there are at most k² / 4 pairs (Mantel)."""
    i, j = np.triu_indices(len(points), 1)
    order = np.argsort(np.linalg.norm(points[i] - points[j], axis=1), kind="stable")
    rank = np.zeros((len(points), len(points)), dtype=int)
    rank[i[order], j[order]] = rank[j[order], i[order]] = np.arange(1, len(order) + 1)
    joined = np.maximum(rank[i], rank[j]).min(axis=1, initial=len(order) + 1) == rank[i, j]
    return list(zip(i[joined].tolist(), j[joined].tolist(), strict=True))


def secant(piece: DrawnPiece) -> Displacement:
    """Of the middle of a piece: to first order in η its ends stay where they are in the link. It twists as they do."""
    ends = piece.start, piece.end
    position, linear, curve = (np.mean(parts, axis=0) for parts in zip(*(end.path for end in ends), strict=True))
    span = piece.end.path.position - piece.start.path.position
    length = float(np.linalg.norm(span))
    along = span / length
    turn = np.cross(along, piece.end.path.linear - piece.start.path.linear) / length
    twist = np.outer(np.mean([end.angular for end in ends], axis=0) @ along, along)
    return Displacement(PointCurve(position, linear, curve), turn + twist)


def with_bars_to(points: Sequence[Displacement], pieces: Sequence[DrawnPiece]) -> list[DrawnPiece]:
    """The pieces, and bars from the nearest end of one to places at which something is attached beside them."""
    ends = [end for piece in pieces for end in piece]
    if not ends:
        return []
    size = np.ptp([end.path.position for end in ends], axis=0).max()
    beside = [p for p in points if min(_distance(p.path.position, piece) for piece in pieces) > BESIDE * size]
    nearest = [min(ends, key=lambda e, at=p.path.position: float(np.linalg.norm(e.path.position - at))) for p in beside]
    return [*pieces, *map(DrawnPiece, nearest, beside)]


def _distance(at: Array, piece: DrawnPiece) -> float:
    start, span = piece.start.path.position, piece.end.path.position - piece.start.path.position
    share = np.clip((at - start) @ span / (span @ span), 0.0, 1.0)
    return float(np.linalg.norm(start + share * span - at))
