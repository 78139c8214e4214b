"""An elastic body in a tree: floating frame, modal coordinates η, and nodes at which other bodies are attached.

Source: Jin and Bauer, Kane's dynamical equations of flexible multibody systems with tree structure, 1991; here for the
sweeps, with displacements to second order. A point ρ of the body is displaced by

    u = Σ φ_μ η_μ + ½ Σ g_μν η_μ η_ν

g is how much the point recedes while the body bends (foreshortening). It is what stiffens a rotating or loaded body.
Energies are exact to second order in η and η̇; the equations of motion follow from them without further terms left
out, so that they conserve energy and momentum.

In the tree an elastic body is a pair: the rigid or massless body of its joint, and on it one that carries the modes as
its joint. A node is a further joint, whose place depends on the modes of its parent and which has no dofs of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from cosim import ops
from cosim.multibody.elastic_spatial import ElasticInertia, ElasticVector
from cosim.multibody.spatial import SpatialInertia, SpatialVector, symmetric_matrix
from cosim.types import Numeric


class ModalIntegrals(NamedTuple):
    """Constants of m modes; integrals over the mass of the body, h1 to h6 as in the source."""

    moment: Numeric  # (m, 3) ∫φ: ∂(m c)/∂η
    moment_curve: Numeric  # (m, m, 3) ∫g
    spin: Numeric  # (m, 3) h1 = ∫ρ × φ
    spin_slope: Numeric  # (m, m, 3) [μ, ν] ∫(φ_ν × φ_μ + ρ × g_μν); the first term is −h4
    inertia_slope: Numeric  # (m, 3, 3) h2 = ∂J/∂η
    inertia_curve: Numeric  # (m, m, 3, 3) ∂²J/∂η∂η: h5 + h5ᵀ, and ∫(2 ρ·g 1 − ρ gᵀ − g ρᵀ)
    mass: Numeric  # (m, m) ∫φ·φ, the trace of h6


def _along(coefficients: Numeric, x: Numeric) -> Numeric:
    """Σ_μ c_μ x_μ over the first index."""
    return ops.total(c * x[mu] for mu, c in enumerate(coefficients))


class ElasticBody(NamedTuple):
    """Constants of an elastic body: those of `Body` in its undeformed state, and its modes."""

    rotation: Numeric
    position: Numeric
    mass: Numeric
    moment: Numeric
    inertia: Numeric
    rotor: Numeric  # (m,) zeros
    modal: ModalIntegrals

    def own_inertia(self, motion: ModalMotion) -> ElasticInertia:
        """M of the body alone, in its present shape."""
        eta, modal = motion.shape, self.modal
        curved = _along(modal.inertia_curve, eta)
        inertia = self.inertia + _along(modal.inertia_slope + 0.5 * curved, eta)
        return ElasticInertia(
            self.mass * np.eye(3),
            ops.skew(self.own_moment(motion)),
            inertia,
            modal.moment + _along(modal.moment_curve, eta),
            self._spins(eta),
            modal.mass,
        )

    def own_force(self, motion: ModalMotion) -> ElasticVector:
        """Q of the body alone: −d/dt of its momenta without accelerations, and of the modes ∂T/∂η − d/dt ∂T/∂η̇."""
        omega, eta, rate, modal = motion.omega, motion.shape, motion.rate, self.modal
        c = self.own_moment(motion)
        c_rate = _along(modal.moment + _along(modal.moment_curve, eta), rate)
        c_bias = _along(_along(modal.moment_curve, rate), rate)
        linear = ops.cross(omega, ops.cross(omega, c) + 2.0 * c_rate) + c_bias

        slopes = modal.inertia_slope + _along(modal.inertia_curve, eta)  # ∂J/∂η (m, 3, 3)
        inertia = self.inertia + _along(modal.inertia_slope + 0.5 * _along(modal.inertia_curve, eta), eta)
        spin = _along(self._spins(eta), rate)
        spin_rates = _along(np.swapaxes(modal.spin_slope, 0, 1), rate)  # d/dt of the rows of N
        angular = ops.cross(omega, inertia @ omega + spin) + _along(slopes, rate) @ omega + _along(spin_rates, rate)

        turned = spin_rates - _along(modal.spin_slope, rate)
        pull = ops.array([omega @ (slope @ omega) for slope in slopes])
        return ElasticVector(-linear, -angular, 0.5 * pull - turned @ omega)

    def own_moment(self, motion: ModalMotion) -> Numeric:
        """m c (3,) in its present shape"""
        eta, modal = motion.shape, self.modal
        return self.moment + _along(modal.moment + 0.5 * _along(modal.moment_curve, eta), eta)

    def _spins(self, eta: Numeric) -> Numeric:
        """Rows N (m, 3): the angular momentum about the origin per unit of η̇."""
        return self.modal.spin + _along(np.swapaxes(self.modal.spin_slope, 0, 1), eta)


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
