"""The mass of an elastic body as points, and the constants of its motion that follow.

A point ρ moves by u = Σ φ_μ η_μ + ½ Σ g_μν η_μ η_ν with the modal coordinates η. Over the mass, g is replaced by its
best affine approximation, a + A ρ. Its moments with 1 and ρ are those of g, and only with these g enters the kinetic
energy to second order in η and η̇.

The functions 1, x, y, z have an orthonormal basis over the mass. The kinetic energy Σ ½ m |v|² of all points then is
that of one point for each function of the basis, with the displacements projected on it, and of a rest that is linear
in η. It is a sum of squares, which no η makes negative.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cosim.multibody.elastic_bodies import ModalMass
from cosim.types import Array

# a direction in which the mass extends less than this, relative to the longest one, is none
FLAT = 1e-9


class MassPoints(NamedTuple):
    """p points and m modes."""

    mass: Array  # (p,) kg
    position: Array  # ρ (p, 3) m
    linear: Array  # φ (p, m, 3)
    curve: Array  # g (p, m, m, 3)

    @property
    def affine(self) -> Array:
        """(p, k) the functions of the basis, k = 4 for a body, 2 for a line."""
        root = np.sqrt(self.mass)
        one = root / np.sqrt(self.mass.sum())
        center = self.mass @ self.position / self.mass.sum()
        arms = root[:, None] * (self.position - center)
        directions, sizes, _ = np.linalg.svd(arms, full_matrices=False)
        wide = sizes > FLAT * max(sizes[0], np.sqrt(self.mass.sum()) * FLAT)
        return np.column_stack([one, directions[:, wide]]) / root[:, None]

    @property
    def rigid_body(self) -> tuple[float, Array, Array]:
        """(mass [kg], m c (3,) [kg m], J (3, 3) [kg m²] about the origin) undeformed"""
        product = np.einsum("p,pi,pj->ij", self.mass, self.position, self.position)
        inertia = np.trace(product) * np.eye(3) - product
        return float(self.mass.sum()), self.mass @ self.position, inertia

    def with_affine_curve(self) -> MassPoints:
        """The same points with the affine approximation of g."""
        basis = self.affine
        return self._replace(curve=np.einsum("pk,k...->p...", basis, self._project(basis, self.curve)))

    def _project(self, basis: Array, values: Array) -> Array:
        return np.einsum("pk,p,p...->k...", basis, self.mass, values)

    def modal_mass(self) -> ModalMass:
        """The constants of the body; g is taken to be affine."""
        basis = self.affine
        linear = self._project(basis, self.linear)
        rest = self.linear - np.einsum("pk,k...->p...", basis, linear)
        outer = np.einsum("p,pui,pvj->uvij", self.mass, rest, rest)
        return ModalMass(
            fraction=self._project(basis, np.ones(len(self.mass))),
            position=self._project(basis, self.position),
            linear=linear,
            curve=self._project(basis, self.curve),
            rest_mass=np.einsum("uvii->uv", outer),
            rest_spin=np.stack(
                [
                    outer[..., 1, 2] - outer[..., 2, 1],
                    outer[..., 2, 0] - outer[..., 0, 2],
                    outer[..., 0, 1] - outer[..., 1, 0],
                ],
                axis=-1,
            ).swapaxes(0, 1),
            rest_inertia=2.0 * np.einsum("uvii,jk->uvjk", outer, np.eye(3)) - outer - outer.swapaxes(2, 3),
        )
