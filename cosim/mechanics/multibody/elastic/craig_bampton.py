"""Reduction of finite elements: the root is held, other interfaces are rigid and move (Craig and Bampton, 1968).

The reduced coordinates are the motions of the interfaces, each six, with the static shapes that follow, and the natural
vibrations of the body with its interfaces held. The natural vibrations in these coordinates are the modes. Where a
closed loop holds interfaces, the modes are made from all static shapes of these, and the lowest natural vibrations with
them held: so they have every motion of these interfaces, and are exact where none is left.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import eigh
from scipy.sparse.linalg import ArpackError, eigsh, splu

from cosim.core.errors import InputError
from cosim.core.types import Array
from cosim.mechanics.multibody.elastic.consistent_mass import rigid_motions

MORE_VIBRATIONS = 10  # vibrations than modes, at least
MOTIONS = 6  # of a rigid interface
DENSE = 300  # dofs up to which all vibrations are computed at once
MASSLESS = 1e-14  # relative to the largest inverse of a squared frequency
NEGATIVE = 1e-9  # relative to the largest eigenvalue


def reduce(
    mass: Any,
    stiffness: Any,
    position: Array,
    root: Sequence[int],
    interfaces: Mapping[str, Sequence[int]],
    modes: int,
    vibrations: int | None,
    held: Collection[str] = (),
) -> tuple[Array, Array]:
    """(shapes (n, modes), squared frequencies (modes,) [rad²/s²]) of the lowest modes, of modal mass 1.

    mass, stiffness (n, n) sparse, dofs node by node; position (p, 3); root, interfaces: indices of nodes; vibrations:
    number of those with all interfaces held, None for some more than modes; held: names of interfaces of which the
    modes have all motions. Raises InputError for a singular or negative matrix and too many modes.
    """
    n, per_node = mass.shape[0], mass.shape[0] // len(position)
    free, spread = _interface_motions(position, per_node, root, interfaces)
    inner = free.nonzero()[0]
    if not inner.size and not interfaces:
        raise InputError("all nodes are in root: nothing can bend; take some out")
    if vibrations is None:
        vibrations = max(min(max(2 * modes, modes + MORE_VIBRATIONS), inner.size - 1), 0)
    if vibrations >= max(inner.size, 1):
        raise InputError(f"{vibrations} vibrations are more than the {inner.size} free dofs have; give fewer")
    K, M = stiffness.tocsc(), mass.tocsc()
    K_inner, M_inner = K[inner][:, inner].tocsc(), M[inner][:, inner].tocsc()
    vibrating = np.zeros((n, vibrations))
    vibrating[inner] = _lowest(K_inner, M_inner, vibrations)
    static = np.array(spread)
    if spread.shape[1] and inner.size:
        static[inner] = -_solver(K_inner)((K @ spread)[inner])
    at_held = np.repeat(np.array([name in held for name in interfaces], dtype=bool), MOTIONS)

    def natural(within: Array) -> tuple[Array, Array]:
        squares, vectors = _vibrations_of(within.T @ (K @ within), within.T @ (M @ within))
        return within @ vectors, squares

    shapes, squares = natural(np.concatenate([vibrating, static[:, ~at_held]], axis=1))
    most = squares.size + int(at_held.sum())
    if modes > most:
        what = (
            f"{modes} modes are more than the {vibrations} vibrations and {spread.shape[1]} motions of interfaces give"
        )
        raise InputError(f"{what}; give at most {most}, or more vibrations")
    if at_held.any():
        shapes, squares = natural(np.concatenate([shapes[:, : modes - at_held.sum()], static[:, at_held]], axis=1))
    return shapes[:, :modes], squares[:modes]


def _interface_motions(
    position: Array, per_node: int, root: Sequence[int], interfaces: Mapping[str, Sequence[int]]
) -> tuple[Array, Array]:
    """((n,) whether a dof is inside, (n, 6 k) motions of all dofs by the k interfaces)"""
    free = np.ones((len(position), per_node), dtype=bool)
    free[list(root)] = False
    columns = [np.zeros((position.shape[0] * per_node, 0))]
    for nodes in interfaces.values():
        chosen = list(nodes)
        free[chosen] = False
        motion = np.zeros((len(position), per_node, 6))
        arms = position[chosen] - position[chosen].mean(axis=0)
        motion[chosen] = rigid_motions(arms, per_node).reshape(len(chosen), per_node, 6)
        columns.append(motion.reshape(-1, 6))
    return free.ravel(), np.concatenate(columns, axis=1)


def _solver(matrix: Any) -> Any:
    try:
        return splu(matrix).solve
    except RuntimeError:
        what = (
            "the stiffness matrix is singular with the root held: a part of the mesh hangs loose or the root may turn"
        )
        raise InputError(f"{what}; join the parts, or give the root more nodes") from None


def _lowest(stiffness: Any, mass: Any, count: int) -> Array:
    """(size, count) vibrations with the lowest frequencies"""
    if not count:
        return np.zeros((stiffness.shape[0], 0))
    if stiffness.shape[0] <= DENSE:
        squares, vectors = _vibrations_of(stiffness.toarray(), mass.toarray())
    else:
        squares, vectors = _lowest_of_many(stiffness, mass, count)
    if squares.size < count:
        what = f"{count} vibrations are more than the {squares.size} that the masses of the body have"
        raise InputError(f"{what}; give {squares.size} or fewer")
    return vectors[:, :count]


def _lowest_of_many(stiffness: Any, mass: Any, count: int) -> tuple[Array, Array]:
    solve = _solver(stiffness)
    inverse = sparse.linalg.LinearOperator(stiffness.shape, matvec=solve, dtype=float)
    start = np.random.default_rng(0).standard_normal(stiffness.shape[0])  # the same modes every time
    try:
        squares, vectors = eigsh(stiffness, count, mass, sigma=0.0, OPinv=inverse, v0=start)
    except ArpackError as error:
        what = f"the vibrations of the body are not found: {error}"
        raise InputError(f"{what}; give fewer, or check the matrices") from None
    order = np.argsort(squares)
    if squares[order[0]] <= 0.0:
        what = f"the stiffness matrix with the root held has the eigenvalue {squares[order[0]]:.3g} of a vibration"
        raise InputError(f"{what}, which must be above 0; correct its signs, or give the root more nodes")
    order = order[squares[order] * MASSLESS < squares[order[0]]]
    return squares[order], vectors[:, order]


def _vibrations_of(stiffness: Array, mass: Array) -> tuple[Array, Array]:
    """(squared frequencies, shapes of modal mass 1). Raises InputError for matrices that are not positive.

    A mass matrix of lumped nodes has no mass in some dofs: its inverse problem has eigenvalues 0 there.
    """
    K, M = 0.5 * (stiffness + stiffness.T), 0.5 * (mass + mass.T)
    try:
        inverse, vectors = eigh(M, K)
    except np.linalg.LinAlgError:
        least = np.linalg.eigvalsh(K)[0]
        what = f"the stiffness matrix with the root held has the eigenvalue {least:.3g}, which must be above 0"
        raise InputError(f"{what}; correct its signs, or give the root more nodes") from None
    if inverse[0] < -NEGATIVE * inverse[-1]:
        raise InputError("the mass matrix has a negative eigenvalue; correct its signs")
    moving = inverse > MASSLESS * inverse[-1]
    inverse, vectors = inverse[moving][::-1], vectors[:, moving][:, ::-1]
    return 1.0 / inverse, vectors / np.sqrt(inverse)
