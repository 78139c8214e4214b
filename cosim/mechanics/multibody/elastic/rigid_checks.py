"""Whether matrices of finite elements describe a body that nothing holds, at the nodes that come with them.

A stiffness matrix leaves the six rigid motions R of a body without force, K R = 0, and its mass matrix has the same
mass in all directions, Rᵀ M R. Neither is so with nodes in another order, coordinates in other units or a part held.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cosim.core.errors import InputError
from cosim.core.types import Array
from cosim.mechanics.multibody.elastic.consistent_mass import rigid_motions

FREE = 1e-3  # force of a rigid motion, relative to the sum of the sizes of its parts, that is rounding in a file
ISOTROPIC = 1e-3  # relative difference of the masses along x, y and z
NOTHING = 1e-9  # mass relative to the sum of the diagonal
MOTIONS = "shift along x", "shift along y", "shift along z", "turn about x", "turn about y", "turn about z"


def check_free(stiffness: Any, position: Array, numbers: list[int]) -> None:
    """Raises InputError for a stiffness (n, n), sparse, resisting a rigid motion of nodes (p, 3) of these numbers."""
    per_node = stiffness.shape[0] // len(position)
    rigid = rigid_motions(position - position.mean(axis=0), per_node)
    forces, sizes = np.abs(stiffness @ rigid), abs(stiffness) @ np.abs(rigid)
    relative = forces / np.maximum(sizes, np.finfo(float).tiny)
    row, motion = np.unravel_index(relative.argmax(), relative.shape)
    if relative[row, motion] > FREE:
        what = f"the stiffness matrix resists a {MOTIONS[motion]} of the whole body, at node {numbers[row // per_node]}"
        fix = "export it with nothing held, and the nodes in its order, in m, in the axes of its dofs"
        raise InputError(f"{what}; {fix}")


def check_isotropic(mass: Any, position: Array) -> None:
    """Raises InputError for a mass matrix (n, n), sparse, without mass, or with another one in each direction."""
    per_node = mass.shape[0] // len(position)
    shifts = rigid_motions(position, per_node)[:, :3]
    masses = np.diag(shifts.T @ (mass @ shifts))
    if masses.min() <= NOTHING * mass.diagonal().sum():
        raise InputError("the mass matrix has no mass; is it the stiffness matrix? exchange the files")
    if np.ptp(masses) > ISOTROPIC * masses.mean():
        along = ", ".join(f"{m:.4g} kg along {axis}" for m, axis in zip(masses, "xyz", strict=True))
        raise InputError(f"the mass matrix has {along}; export it with nothing held, and the dofs node after node")
