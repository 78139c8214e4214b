"""The mass of an elastic body as points, and the constants of its motion that follow.

A point ρ moves by u = Σ φ_μ η_μ + ½ Σ g_μν η_μ η_ν with the modal coordinates η. Over the mass, g is replaced by its
best affine approximation, a + A ρ. It has the moments of g with 1 and ρ, and g enters the kinetic energy to second
order in η and η̇ only through them.

The functions 1, x, y, z have an orthonormal basis over the mass. The kinetic energy Σ ½ m |v|² of all points then
equals the energy of one point for each function of the basis, with the displacements projected on it, and of a rest
that is linear in η. It is a sum of squares, which no η makes negative.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cosim.core.types import Array
from cosim.mechanics.multibody.elastic_bodies import ModalMass

# a direction in which the mass extends less than this, relative to the longest one, counts as flat
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
        return modal_mass_of(
            self._project(basis, np.ones(len(self.mass))),
            self._project(basis, self.position),
            linear,
            self._project(basis, self.curve),
            np.einsum("p,pui,pvj->uvij", self.mass, rest, rest),
        )


def modal_mass_of(fraction: Array, position: Array, linear: Array, curve: Array, rest: Array) -> ModalMass:
    """Of points with the mass 1, see `ModalMass`, and rest (m, m, 3, 3): ∫ φ_μ φ_νᵀ of what they leave."""
    axial = [rest[..., i, j] - rest[..., j, i] for i, j in ((1, 2), (2, 0), (0, 1))]
    return ModalMass(
        fraction,
        position,
        linear,
        curve,
        rest_mass=np.einsum("uvii->uv", rest),
        rest_spin=np.stack(axial, axis=-1).swapaxes(0, 1),
        rest_inertia=2.0 * np.einsum("uvii,jk->uvjk", rest, np.eye(3)) - rest - rest.swapaxes(2, 3),
    )


def solids(mass: Array, position: Array, inertia: Array, shape: tuple[Array, Array], psi: Array) -> MassPoints:
    """Bodies with mass (p,) and principal moments of inertia (p, 3), as six points each; shape: (φ, g) of their
    centers, psi (p, m, 3): their rotations."""
    spread = 0.5 * inertia.sum(axis=1, keepdims=True) - inertia  # ∫ of x², y², z²
    reach = np.sqrt(np.maximum(3.0 * spread / mass[:, None], 0.0))
    parts = []
    for axis, direction in enumerate(np.eye(3)):
        for side in (-1.0, 1.0):
            arm = side * reach[:, axis, None] * direction
            parts.append(MassPoints(mass / 6.0, position + arm, *offset(shape, psi, arm)))
    return MassPoints(*map(np.concatenate, zip(*parts, strict=True)))


def offset(shape: tuple[Array, Array], psi: Array, arm: Array) -> tuple[Array, Array]:
    """(φ, g) of points at `arm` (p, 3) from others with these, which turn with them: u = θ × arm + ½ θ × (θ × arm)."""
    turned = np.cross(psi, arm[:, None])
    twice = np.cross(psi[:, :, None], turned[:, None])
    return shape[0] + turned, shape[1] + 0.5 * (twice + twice.swapaxes(1, 2))
