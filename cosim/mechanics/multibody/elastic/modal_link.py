"""An elastic link from modes that a file or a user gives: checked, damped, and with nodes by their places."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cosim.core.errors import InputError
from cosim.core.types import Array
from cosim.mechanics.multibody.elastic.link import Displacement, DrawnPiece, ElasticLink, Remedies
from cosim.mechanics.multibody.elastic_bodies import ModalMass, PointCurve

SYMMETRIC = 1e-8  # relative difference of a matrix and its transpose
ORTHOGONAL = 1e-2  # largest cosine between modes that come with frequencies
STIFF = 1e-12  # smallest squared frequency, relative to the largest
INDEPENDENT = 1e-10  # smallest eigenvalue of the cosines between modes
SAME_PLACE = 1e-6  # relative to the size of the body
ROUNDING = 1e-11  # relative to the largest number of an array
NEAREST = 3  # nodes that a message names

RigidBody = tuple[float, Array, Array]  # mass [kg], m c (3,) [kg m], J (3, 3) [kg m²] about the origin


def gram(modal: ModalMass) -> Array:
    """(m, m) ∫ φ_μ·φ_ν"""
    return modal.rest_mass + np.einsum("kui,kvi->uv", modal.linear, modal.linear)


def modal_link(
    body: RigidBody,
    modes: tuple[tuple[str, str], ...],
    modal: ModalMass,
    stiffness: Array,
    damping_ratio: float | Array,
    displacement: Callable[[Array], Displacement],
    remedies: Remedies,
    pieces: Callable[[], tuple[DrawnPiece, ...]],
) -> ElasticLink:
    """stiffness: K (m, m); damping_ratio: of all natural vibrations, or (m,) of each mode. A vibration in which
    several modes take part has the mean of their ratios, by elastic energy. pieces: see `ElasticLink`.

    Raises InputError for modes that are linearly dependent, a stiffness that is not symmetric or not positive, and
    ratios beyond 0 and 1.
    """
    from scipy.linalg import eigh  # takes longer to import than most rigs to read

    check_symmetric("stiffness", stiffness)
    for ratio in np.atleast_1d(damping_ratio):
        if not 0.0 <= ratio <= 1.0:
            raise InputError(f"the damping ratio {ratio:g} must be at least 0 and at most 1")
    masses = gram(modal)
    scale = _scale(masses)
    if np.linalg.eigvalsh(masses / np.outer(scale, scale))[0] < INDEPENDENT:
        raise InputError("the modes are linearly dependent; leave out those that are sums of others")
    squares, vectors = eigh(stiffness, masses)
    if squares[0] < -1e-9 * abs(squares[-1]):
        raise InputError(f"the stiffness has the negative eigenvalue {squares[0]:.4g} 1/s^2; correct its signs")
    if squares[0] <= STIFF * squares[-1]:
        k = int(np.abs(vectors[:, 0] * scale).argmax())
        what = f"nothing resists mode {k + 1}, which would drift; the rigid motions of a link belong to its joint"
        raise InputError(f"{what}: leave them out")
    shares = np.diag(stiffness)[:, None] * vectors**2 + np.finfo(float).tiny
    ratios = np.broadcast_to(damping_ratio, len(modes)) @ (shares / shares.sum(axis=0))
    rates = 2.0 * ratios * np.sqrt(np.maximum(squares, 0.0))
    moved = masses @ vectors
    hardening = np.zeros((len(modes),) * 4)
    damping = without_rounding((moved * rates) @ moved.T)
    modal = ModalMass(*map(without_rounding, modal))
    return ElasticLink(*body, modes, modal, stiffness, damping, displacement, hardening, remedies, pieces)


def stiffness_by(frequencies: Array, masses: Array) -> Array:
    """K of modes with these frequencies (m,) [rad/s] and masses (m, m). Raises InputError unless these are diagonal,
    and above 0."""
    scale = _scale(masses)
    cosines = np.abs(masses / np.outer(scale, scale)) - np.eye(len(masses))
    i, j = np.unravel_index(cosines.argmax(), cosines.shape)
    if cosines[i, j] > ORTHOGONAL:
        what = f"modes {min(i, j) + 1} and {max(i, j) + 1} are not orthogonal in the mass: their cosine is"
        raise InputError(f"{what} {cosines[i, j]:.3g}; give 'stiffness' in place of 'frequencies', or the right masses")
    return np.diag(frequencies**2 * np.diag(masses))


def _scale(masses: Array) -> Array:
    """Roots of modal masses (m,). Raises InputError for one that is 0."""
    scale = np.sqrt(np.maximum(np.diag(masses), 0.0))
    for k in np.flatnonzero(scale <= 0.0):
        raise InputError(f"mode {k + 1} moves no mass; leave it out")
    return scale


def check_symmetric(name: str, matrix: Array) -> None:
    """Raises InputError for a matrix, also a sparse one, that is not symmetric."""
    largest, difference = abs(matrix).max(), abs(matrix - matrix.T).max()
    if difference > SYMMETRIC * max(largest, 1e-300):
        raise InputError(
            f"the {name} matrix is not symmetric, by {difference / largest:.2g} of its largest number; correct it"
        )


def check_mass(found: RigidBody, mass: float | None, inertia: Array | None, prefix: str = "") -> None:
    """Raises InputError unless the mass [kg] and J (3, 3) about the origin, if given, agree with the nodes to 1 %.
    prefix: of the names of both."""
    if mass is not None and abs(found[0] - mass) > 0.01 * mass:
        raise InputError(
            f"the nodes have {found[0]:.4g} kg together, but {prefix}mass is {mass:.4g} kg; check the units of both"
        )
    if inertia is not None and np.abs(found[2] - inertia).max() > 0.01 * np.abs(inertia).max():
        has, given = (", ".join(f"{x:.4g}" for x in np.diag(J)) for J in (found[2], inertia))
        what = f"the nodes have the moments of inertia {has} kg*m^2 about the origin"
        raise InputError(f"{what}, but {prefix}inertia is {given}; check the units and the origin")


class Nodes:
    """Places at which something can be attached: position (p, 3), φ (p, m, 3), g (p, m, m, 3) and ψ (p, m, 3)."""

    def __init__(self, position: Array, linear: Array, curve: Array, angular: Array, words: str = "a node") -> None:
        self.position, self.words = position, words
        self.linear, self.curve, self.angular = map(without_rounding, (linear, curve, angular))

    def __call__(self, point: Array) -> Displacement:
        """`ElasticLink.displacement`"""
        distances = np.linalg.norm(self.position - point, axis=1)
        order = np.argsort(distances, kind="stable")
        size = np.linalg.norm(self.position, axis=1).max()
        k = order[0]
        here = self.linear[distances <= SAME_PLACE * size]
        if np.abs(here - self.linear[k]).max(initial=0.0) > SAME_PLACE * np.abs(self.linear).max():
            what = f"several nodes are at {_place(point)} m, and the modes move them apart"
            raise InputError(f"{what}; attach it at another node, or keep one of them")
        if distances[k] > SAME_PLACE * size:
            near = ", ".join(list(dict.fromkeys(_place(self.position[k]) for k in order))[:NEAREST])
            raise InputError(
                f"there is no node at {_place(point)} m; move it to {self.words}: the nearest are at {near}"
            )
        return Displacement(PointCurve(point, self.linear[k], self.curve[k]), self.angular[k])


def _place(point: Array) -> str:
    return f"({', '.join(f'{x:.6g}' for x in point)})"


def without_rounding(values: Array, rounding: float = ROUNDING) -> Array:
    """Numbers that are rounding, relative to the largest one, made exact zeros, which vanish from the code."""
    return np.where(np.abs(values) <= rounding * np.abs(values).max(initial=0.0), 0.0, values)
