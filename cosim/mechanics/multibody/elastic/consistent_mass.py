"""The constants of motion of a body with the mass matrix of finite elements.

Exact in the mass matrix M, by products of rigid motions and modes with it: mass, center of mass and inertia, and with
modes ∫φ, ∫ρ × φ and ∫φ·φ. The other integrals, ∫ρ φᵀ and ∫φ φᵀ, need the parts along x, y and z of displacements
alone. They are exact where M treats x, y and z alike and apart, as with solid elements. Otherwise they are taken over
the translations of the nodes, corrected so that they agree with the exact ones: they have the exact momenta, and their
kinetic energy is no more than the exact one, so that what is left is positive.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cosim.core.types import Array
from cosim.mechanics.multibody.elastic.mass_points import modal_mass_of
from cosim.mechanics.multibody.elastic.modal_link import RigidBody
from cosim.mechanics.multibody.elastic_bodies import ModalMass

FLAT = 1e-6  # a direction in which the mass extends less than this, relative to the longest one, counts as flat
NEGLIGIBLE_MASS = 1e-12  # part of a modal mass that is rounding
SEED = 1e-8  # part of the isotropic rest that stands in where nodes do not translate


class NodalMass(NamedTuple):
    """The mass matrix of a finite-element model, at the nodes that it has. matrix: M (n, n), sparse; position (p, 3) of
    its nodes, with n / p = 3 or 6 dofs each."""

    matrix: Any
    position: Array

    @property
    def rigid_motions(self) -> Array:
        """(n, 6): translations along and rotations about x, y and z of the origin, of all dofs."""
        return rigid_motions(self.position, self.matrix.shape[0] // len(self.position))

    @property
    def rigid_body(self) -> RigidBody:
        R = self.rigid_motions
        m = R.T @ (self.matrix @ R)
        across = m[3:, :3]  # m c ×
        moment = 0.5 * np.array([across[2, 1] - across[1, 2], across[0, 2] - across[2, 0], across[1, 0] - across[0, 1]])
        return float(np.trace(m[:3, :3]) / 3.0), moment, m[3:, 3:]

    def modal_mass(self, modes: Array) -> ModalMass:
        """Of modes (n, m), without second-order displacements."""
        mass, moment, inertia = self.rigid_body
        center = moment / mass
        second = 0.5 * np.trace(inertia) * np.eye(3) - inertia - mass * np.outer(center, center)
        squares, directions = np.linalg.eigh(second)
        sizes = np.sqrt(np.maximum(squares, 0.0))
        wide = sizes > FLAT * sizes.max()
        sizes, directions = sizes[wide], directions[:, wide].T
        fraction = np.array([np.sqrt(mass), *np.zeros(len(sizes))])
        position = np.array([np.sqrt(mass) * center, *(sizes[:, None] * directions)])

        per_node = self.matrix.shape[0] // len(self.position)
        scalar = sum(self.matrix[i::per_node, i::per_node] for i in range(3)) / 3.0
        shapes = modes.reshape(len(self.position), per_node, -1)[:, :3].swapaxes(1, 2)  # (p, m, 3)
        moved = (scalar @ shapes.reshape(len(shapes), -1)).reshape(shapes.shape)
        basis = np.column_stack([np.ones(len(shapes)), ((self.position - center) @ directions.T) / sizes])
        basis[:, 0] /= np.sqrt(mass)
        momentum = self.matrix @ modes
        linear, rest_mass = _bounded(
            np.einsum("pk,pui->kui", basis, moved),
            (fraction, position),
            self.rigid_motions.T @ momentum,
            modes.T @ momentum,
        )
        rest = np.einsum("pui,pvj->uvij", shapes, moved) - np.einsum("kui,kvj->uvij", linear, linear)
        m = modes.shape[1]
        still = np.zeros((len(position), m, m, 3))
        return modal_mass_of(fraction, position, linear, still, _with_trace(rest, rest_mass))._replace(
            rest_mass=rest_mass
        )


def rigid_motions(position: Array, per_node: int) -> Array:
    """(p · per_node, 6), as in `NodalMass`"""
    rows = np.zeros((len(position), per_node, 6))
    rows[:, :3, :3] = np.eye(3)
    rows[:, :3, 3:] = np.cross(np.eye(3)[None], position[:, None]).swapaxes(1, 2)
    if per_node == 6:
        rows[:, 3:, 3:] = np.eye(3)
    return rows.reshape(-1, 6)


def _bounded(linear: Array, points: tuple[Array, Array], momenta: Array, modal_mass: Array) -> tuple[Array, Array]:
    """(the displacements (k, m, 3) of points, near `linear`, with these momenta (6, m) of their rigid motions and no
    more than the modal mass (m, m); what they leave of it, not negative). points: (fraction, position).

    The least displacements with the momenta leave what is positive (Schur complement of the mass matrix in rigid
    motions and modes). The further ones are free of momenta, and their singular values relative to it are at most 1.
    """
    k, m, _ = linear.shape
    fraction, position = points
    rigid = np.concatenate([fraction[:, None, None] * np.eye(3), _turns(position)], axis=2)  # (k, 3, 6)
    rigid = rigid.reshape(-1, 6).T
    inverse = np.linalg.pinv(rigid, rcond=1e-9)
    least = inverse @ momenta
    further = linear.swapaxes(1, 2).reshape(3 * k, m)
    further = further - inverse @ (rigid @ further)
    scale = np.sqrt(np.diag(modal_mass))
    squares, vectors = np.linalg.eigh((modal_mass - least.T @ least) / np.outer(scale, scale))
    size = np.sqrt(np.where(squares > NEGLIGIBLE_MASS, squares, 0.0))
    ratio = (further / scale) @ vectors * np.divide(1.0, size, out=np.zeros(m), where=size > 0.0)
    left, ratios, right = np.linalg.svd(ratio, full_matrices=False)
    ratios = np.minimum(ratios, 1.0)
    back = size[:, None] * vectors.T * scale
    flat = least + (left * ratios) @ right @ back
    unused = np.eye(m) - (right.T * ratios**2) @ right
    return flat.reshape(k, 3, m).swapaxes(1, 2), back.T @ unused @ back


def _turns(position: Array) -> Array:
    """(k, 3, 3): velocity of each point by rotations about x, y and z"""
    return np.cross(np.eye(3)[None], position[:, None]).swapaxes(1, 2)


def _with_trace(rest: Array, wanted: Array) -> Array:
    """rest (m, m, 3, 3), made positive, with combinations of the modes such that the sum over its directions is wanted
    (m, m)."""
    m = len(rest)
    full = rest.swapaxes(1, 2).reshape(3 * m, 3 * m)
    squares, vectors = np.linalg.eigh(0.5 * (full + full.T))
    full = (vectors * np.maximum(squares, 0.0)) @ vectors.T
    rest = full.reshape(m, 3, m, 3).swapaxes(1, 2)
    seed = SEED * max(np.trace(wanted) / m, 1e-300)
    rest = rest + seed / 3.0 * np.einsum("uv,ij->uvij", np.eye(m), np.eye(3))
    root = _root(np.einsum("uvii->uv", rest))
    inverse = np.linalg.inv(root)
    turn = inverse @ _root(root @ wanted @ root) @ inverse
    return np.einsum("au,abij,bv->uvij", turn, rest, turn)


def _root(matrix: Array) -> Array:
    """The symmetric root of a symmetric matrix; negative eigenvalues count as 0."""
    squares, vectors = np.linalg.eigh(0.5 * (matrix + matrix.T))
    return (vectors * np.sqrt(np.maximum(squares, 0.0))) @ vectors.T
