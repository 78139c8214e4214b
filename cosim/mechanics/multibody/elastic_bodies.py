"""An elastic body in a tree: floating frame, modal coordinates η, and nodes at which other bodies are attached.

Source: Jin and Bauer, Kane's dynamical equations of flexible multibody systems with tree structure, 1991; here for the
sweeps, with displacements to second order. A point ρ of the body is displaced by

    u = Σ φ_μ η_μ + ½ Σ g_μν η_μ η_ν

g is how much the point recedes while the body bends (foreshortening). It is what stiffens a rotating or loaded body.
With these displacements no term is left out, so that energy and momentum are conserved.

In the tree an elastic body is a pair: the rigid or massless body of its joint, and on it one that carries the modes as
its joint. A node is a further joint, whose place depends on the modes of its parent and which has no dofs of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations_with_replacement
from typing import NamedTuple

import numpy as np

from cosim.core import ops
from cosim.core.types import Numeric
from cosim.mechanics.multibody.elastic_spatial import ElasticInertia, ElasticVector
from cosim.mechanics.multibody.spatial import SpatialInertia, SpatialVector, outer, symmetric_matrix


class PointCurve(NamedTuple):
    """The path of a point, r = ρ + d + c − ½ (c·c / ρ·ρ) ρ, d = Σ φ_μ η_μ, c = ½ Σ g_μν η_μ η_ν.

    The last term keeps r·r = ρ·ρ + 2 ρ·(d + c) + d·d to fourth order: a body that turns by bending, as a whole, keeps
    its moment of inertia."""

    position: Numeric  # ρ (3,)
    linear: Numeric  # φ (m, 3)
    curve: Numeric  # g (m, m, 3)

    def place(self, eta: Numeric) -> tuple[Numeric, Numeric]:
        """(r (3,), b = ∂r/∂η (m, 3))"""
        bend = _along(self.curve, eta)
        c = 0.5 * (eta @ bend)
        r = self.position + eta @ self.linear + c + (0.5 * (c @ c)) * self._back
        return r, self.linear + bend @ self._kept(c)

    def rates(self, eta: Numeric, rate: Numeric) -> tuple[Numeric, Numeric]:
        """(ṙ (3,), r̈ (3,) at η̈ = 0)"""
        bend = _along(self.curve, eta)
        c_rate, c_bias, kept = rate @ bend, _form(self.curve, rate), self._kept(0.5 * (eta @ bend))
        return rate @ self.linear + c_rate @ kept, c_bias @ kept + (c_rate @ c_rate) * self._back

    def _kept(self, c: Numeric) -> Numeric:
        """∂r/∂c (3, 3), transposed"""
        return np.eye(3) + outer(c, self._back)

    @property
    def _back(self) -> Numeric:
        size = self.position @ self.position
        return -self.position / size if size > 0.0 else np.zeros(3)


class ModalMass(NamedTuple):
    """The mass of a body with m modes as k points, and a rest; see `elastic.mass_points`.

    A point is at r of `PointCurve`, has the velocity fraction · v + ω × r + Σ b_μ η̇_μ and the mass 1; the first one has
    the fraction √m, the others have none. The rest moves by φ η̇ + ω × φ η alone.
    """

    fraction: Numeric  # (k,) √kg
    position: Numeric  # (k, 3) √kg m, as all displacements of points
    linear: Numeric  # φ (k, m, 3)
    curve: Numeric  # g (k, m, m, 3)
    rest_mass: Numeric  # (m, m) ∫φ·φ
    rest_spin: Numeric  # (m, m, 3) [μ, ν] ∫φ_ν × φ_μ
    rest_inertia: Numeric  # (m, m, 3, 3) ∫2 φ_μ·φ_ν 1 − φ_μ φ_νᵀ − φ_ν φ_μᵀ


class ElasticBody(NamedTuple):
    """Constants of an elastic body: as in `Body` its joint's frame in the parent, its mass, m c and J about its origin
    in its undeformed state, and (m,) zeros in place of rotors."""

    rotation: Numeric
    position: Numeric
    mass: Numeric
    moment: Numeric
    inertia: Numeric
    rotor: Numeric
    modal: ModalMass

    def own_inertia(self, motion: ModalMotion) -> ElasticInertia:
        """M of the body alone, in its present shape."""
        eta, modal, places = motion.shape, self.modal, self._places(motion.shape)
        c, f = np.zeros(3), 0.0
        n, inertia = self._rest_spins(eta), 0.5 * _along(_along(modal.rest_inertia, eta), eta)
        for fraction, (r, b) in zip(modal.fraction, places, strict=True):
            c = c + fraction * r
            f = f + fraction * b
            n = n + ops.array([ops.cross(r, each) for each in b])
            inertia = inertia + symmetric_matrix(lambda i, j, r=r: (r @ r if i == j else 0.0) - r[i] * r[j])
        b = [ops.concatenate([each[mu] for _, each in places]) for mu in range(len(eta))]
        h = symmetric_matrix(lambda i, j: _plus_product(modal.rest_mass[i, j], b[i], b[j]), len(b))
        return ElasticInertia(self.mass * np.eye(3), ops.skew(c), inertia, f, n, h)

    def own_force(self, motion: ModalMotion) -> ElasticVector:
        """Q of the body alone: −Σ of the partial velocities of all points times their accelerations at v̇ = 0."""
        omega, eta, rate, modal = motion.omega, motion.shape, motion.rate, self.modal
        half, back = 0.5 * omega, -2.0 * omega
        moved = _along(modal.rest_inertia, eta)  # ∂J/∂η of the rest
        momentum = _along(moved, eta) @ half + _along(self._rest_spins(eta), rate)
        linear, angular = np.zeros(3), ops.cross(momentum, omega) - _along(moved, rate) @ omega
        square = symmetric_matrix(lambda i, j: half[i] * omega[j])
        pull = ops.array([ops.sum((slope * square).ravel()) for slope in moved])  # ½ ω·(∂J/∂η ω)
        modal_force = pull + _along(modal.rest_spin.swapaxes(0, 1), rate) @ back
        for fraction, point in zip(modal.fraction, self._curves, strict=True):
            (r, b), (r_rate, bias) = point.place(eta), point.rates(eta, rate)
            pulled = ops.cross(back, ops.cross(half, r) + r_rate) - bias  # −r̈ at v̇ = 0
            linear = linear + fraction * pulled
            angular = angular + ops.cross(r, pulled)
            modal_force = modal_force + b @ pulled
        return ElasticVector(linear, angular, modal_force)

    def own_moment(self, motion: ModalMotion) -> Numeric:
        """m c (3,) in its present shape"""
        return ops.sum(
            fraction * r for fraction, (r, _) in zip(self.modal.fraction, self._places(motion.shape), strict=True)
        )

    def without_mass(self) -> ElasticBody:
        """The same body with no mass."""
        nothing = [np.zeros_like(part) for part in (self.moment, self.inertia, *self.modal)]
        return self._replace(mass=0.0, moment=nothing[0], inertia=nothing[1], modal=ModalMass(*nothing[2:]))

    def _places(self, eta: Numeric) -> list[tuple[Numeric, Numeric]]:
        """(r (3,), b (m, 3)) of every point"""
        return [point.place(eta) for point in self._curves]

    @property
    def _curves(self) -> list[PointCurve]:
        return [PointCurve(*each) for each in zip(*self.modal[1:4], strict=True)]

    def _rest_spins(self, eta: Numeric) -> Numeric:
        """(m, 3) of the rest: angular momentum about the origin per unit of η̇"""
        return _along(self.modal.rest_spin.swapaxes(0, 1), eta)


def _along(coefficients: Numeric, x: Numeric) -> Numeric:
    """Σ_μ c_μ x_μ over the first index."""
    return ops.sum(c * x[mu] for mu, c in enumerate(coefficients))


def _form(coefficients: Numeric, x: Numeric) -> Numeric:
    """Σ c_μν x_μ x_ν, c symmetric in its first two indices"""
    pairs = combinations_with_replacement(range(len(x)), 2)
    return ops.sum((2.0 - (mu == nu)) * coefficients[mu, nu] * (x[mu] * x[nu]) for mu, nu in pairs)


def _plus_product(constant: float, x: Numeric, y: Numeric) -> Numeric:
    """constant + x · y, the products of numbers first, so that one is left"""
    products = sorted((a * b for a, b in zip(x, y, strict=True)), key=ops.is_symbolic)
    return constant + ops.sum(products)


class ModalShape(NamedTuple):
    """What the nodes of an elastic body depend on."""

    omega: Numeric
    shape: Numeric  # η (m,)
    rate: Numeric  # η̇ (m,)


class ModalMotion(NamedTuple):
    """`BodyMotion` of an elastic body; its hinge are the modes."""

    turn: Numeric
    position: Numeric
    hinge: tuple[ElasticVector, ...]
    slip: Numeric
    drift: ElasticVector
    omega: Numeric
    bias: ElasticVector
    shape: Numeric  # η (m,)
    rate: Numeric  # η̇ (m,)

    @property
    def below(self) -> ModalShape:
        return ModalShape(self.omega, self.shape, self.rate)

    def moved_by(self, dofs: Sequence[int], parent_dofs: Sequence[int]) -> Iterable[tuple[int, SpatialVector]]:
        return ()  # its frame stays

    def moved_with(self, carried: SpatialVector, above: SpatialVector) -> SpatialVector:
        return carried

    def at_own_rest(self, acceleration: SpatialVector) -> ElasticVector:
        return ElasticVector(*acceleration, np.zeros(len(self.hinge)))

    def with_rate(self, velocity: SpatialVector) -> ElasticVector:
        return ElasticVector(*velocity, self.rate)

    def passed_on(self, at_parent: SpatialVector, here: SpatialVector) -> SpatialVector:
        return at_parent

    def composed(self, at_parent: SpatialInertia, here: SpatialInertia) -> SpatialInertia:
        return at_parent


class NodeMotion(NamedTuple):
    """`BodyMotion` of a node; modes: its velocity per unit of each η̇ of its parent, in the axes of its parent."""

    turn: Numeric
    position: Numeric
    hinge: tuple[SpatialVector, ...]  # none
    slip: Numeric
    drift: SpatialVector
    omega: Numeric
    bias: SpatialVector
    modes: tuple[SpatialVector, ...]
    axes: Numeric  # its own along its parent's

    @property
    def below(self) -> Numeric:
        return self.omega

    def moved_by(self, dofs: Sequence[int], parent_dofs: Sequence[int]) -> Iterable[tuple[int, SpatialVector]]:
        own = [SpatialVector(self.axes.T @ s.linear, self.axes.T @ s.angular) for s in self.modes]
        return zip(parent_dofs, own, strict=True)

    def moved_with(self, carried: SpatialVector, above: ElasticVector) -> SpatialVector:
        for s, acceleration in zip(self.modes, above.modal, strict=True):
            carried = carried + s * acceleration
        return carried

    def at_own_rest(self, acceleration: SpatialVector) -> SpatialVector:
        return acceleration

    def with_rate(self, velocity: SpatialVector) -> SpatialVector:
        return velocity

    def passed_on(self, at_parent: SpatialVector, here: SpatialVector) -> ElasticVector:
        return ElasticVector(*at_parent, ops.array([s.dot(here) for s in self.modes]))

    def composed(self, at_parent: SpatialInertia, here: SpatialInertia) -> ElasticInertia:
        responses = [here @ s for s in self.modes]
        f = ops.array([force.linear for force in responses])
        n = ops.array([force.angular + ops.cross(self.position, force.linear) for force in responses])
        return ElasticInertia(
            *at_parent, f, n, symmetric_matrix(lambda i, j: self.modes[i].dot(responses[j]), len(self.modes))
        )
