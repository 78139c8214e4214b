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

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from cosim import ops
from cosim.multibody.elastic_spatial import ElasticInertia, ElasticVector
from cosim.multibody.spatial import SpatialInertia, SpatialVector, outer, symmetric_matrix
from cosim.types import Numeric


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
        c, back = 0.5 * (eta @ bend), self._back
        b = self.linear + bend + outer(bend @ (2.0 * c), back)
        return self.position + eta @ self.linear + c + (c @ c) * back, b

    def bias(self, eta: Numeric, rate: Numeric) -> Numeric:
        """r̈ (3,) at η̈ = 0"""
        bend = _along(self.curve, eta)
        c_rate, c_bias = rate @ bend, _along(_along(self.curve, rate), rate)
        return c_bias + (2.0 * (c_rate @ c_rate) + (eta @ bend) @ c_bias) * self._back

    @property
    def _back(self) -> Numeric:
        size = self.position @ self.position
        return -0.5 * self.position / size if size > 0.0 else np.zeros(3)


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
        eta, modal, points = motion.shape, self.modal, self._points(motion.shape)
        c, inertia, f, n = np.zeros(3), 0.5 * _along(_along(modal.rest_inertia, eta), eta), 0.0, self._rest_spins(eta)
        h = modal.rest_mass
        for fraction, (r, b) in zip(modal.fraction, points, strict=True):
            c = c + fraction * r
            inertia = inertia + symmetric_matrix(lambda i, j, r=r: (r @ r if i == j else 0.0) - r[i] * r[j])
            f = f + fraction * b
            n = n + ops.array([ops.cross(r, each) for each in b])
            h = h + symmetric_matrix(lambda i, j, b=b: b[i] @ b[j], len(b))
        return ElasticInertia(self.mass * np.eye(3), ops.skew(c), inertia, f, n, h)

    def own_force(self, motion: ModalMotion) -> ElasticVector:
        """Q of the body alone: −Σ of the partial velocities of all points times their accelerations at v̇ = 0."""
        omega, eta, rate, modal = motion.omega, motion.shape, motion.rate, self.modal
        moved = _along(modal.rest_inertia, eta)  # ∂J/∂η of the rest
        spin = _along(self._rest_spins(eta), rate)
        linear = np.zeros(3)
        angular = ops.cross(omega, 0.5 * _along(moved, eta) @ omega + spin) + _along(moved, rate) @ omega
        pull = ops.array([omega @ (slope @ omega) for slope in moved])
        modal_force = -0.5 * pull + 2.0 * (_along(modal.rest_spin.swapaxes(0, 1), rate) @ omega)
        for fraction, point in zip(modal.fraction, self._curves, strict=True):
            r, b = point.place(eta)
            bias = ops.cross(omega, ops.cross(omega, r) + 2.0 * (rate @ b)) + point.bias(eta, rate)
            linear = linear + fraction * bias
            angular = angular + ops.cross(r, bias)
            modal_force = modal_force + b @ bias
        return ElasticVector(-linear, -angular, -modal_force)

    def own_moment(self, motion: ModalMotion) -> Numeric:
        """m c (3,) in its present shape"""
        return ops.total(
            fraction * r for fraction, (r, _) in zip(self.modal.fraction, self._points(motion.shape), strict=True)
        )

    def without_mass(self) -> ElasticBody:
        """The same body with no mass."""
        nothing = [np.zeros_like(part) for part in (self.moment, self.inertia, *self.modal)]
        return self._replace(mass=0.0, moment=nothing[0], inertia=nothing[1], modal=ModalMass(*nothing[2:]))

    def _points(self, eta: Numeric) -> list[tuple[Numeric, Numeric]]:
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
    return ops.total(c * x[mu] for mu, c in enumerate(coefficients))


class Shape(NamedTuple):
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
    def below(self) -> Shape:
        return Shape(self.omega, self.shape, self.rate)

    def moved_by(self, dofs: Sequence[int], parent_dofs: Sequence[int]) -> Iterable[tuple[int, SpatialVector]]:
        return ()  # its frame stays

    def moved_with(self, here: SpatialVector, above: SpatialVector) -> ElasticVector:
        return ElasticVector(*here, np.zeros(len(self.hinge)))

    def with_rate(self, velocity: SpatialVector) -> ElasticVector:
        return ElasticVector(*velocity, self.rate)

    def passed_on(self, at_parent: SpatialVector, force: ElasticVector) -> SpatialVector:
        return at_parent

    def composed(self, at_parent: SpatialInertia, inertia: ElasticInertia, carried: object) -> SpatialInertia:
        return at_parent


class NodeMotion(NamedTuple):
    """`BodyMotion` of a node; modes: its velocity per unit of each η̇ of its parent."""

    turn: Numeric
    position: Numeric
    hinge: tuple[SpatialVector, ...]  # none
    slip: Numeric
    drift: SpatialVector
    omega: Numeric
    bias: SpatialVector
    modes: tuple[SpatialVector, ...]

    @property
    def below(self) -> Numeric:
        return self.omega

    def moved_by(self, dofs: Sequence[int], parent_dofs: Sequence[int]) -> Iterable[tuple[int, SpatialVector]]:
        return zip(parent_dofs, self.modes, strict=True)

    def moved_with(self, here: SpatialVector, above: ElasticVector) -> SpatialVector:
        for s, acceleration in zip(self.modes, above.modal, strict=True):
            here = here + s * acceleration
        return here

    def with_rate(self, velocity: SpatialVector) -> SpatialVector:
        return velocity

    def passed_on(self, at_parent: SpatialVector, force: SpatialVector) -> ElasticVector:
        return ElasticVector(*at_parent, ops.array([s.dot(force) for s in self.modes]))

    def composed(
        self, at_parent: SpatialInertia, inertia: SpatialInertia, carried: Callable[[SpatialVector], SpatialVector]
    ) -> ElasticInertia:
        responses = [inertia @ s for s in self.modes]
        forces = [carried(response) for response in responses]
        f, n = ops.array([force.linear for force in forces]), ops.array([force.angular for force in forces])
        return ElasticInertia(
            *at_parent, f, n, symmetric_matrix(lambda i, j: self.modes[i].dot(responses[j]), len(self.modes))
        )
