"""Inertias that a body can have: ten variables of a link, all values of which give a possible mass, centre of mass
and inertia.

The pseudo-inertia of a body, P = ∫ (r, 1)(r, 1)ᵀ dm (4, 4), is positive definite for every distribution of mass that
fills a volume (Wensing, Kim and Slotine, IEEE Robotics and Automation Letters 3, 2018). With P₀ = U₀ U₀ᵀ of the rig,
P = U₀ L Lᵀ U₀ᵀ, and L is upper triangular with exponentials of variables on its diagonal (Rucker and Wensing, the same
7, 2022). Variables are 0 for the inertia of the rig, and 1 is a change of the order of itself.
"""

from __future__ import annotations

import numpy as np

from cosim.core import ops
from cosim.core.types import Array, Numeric
from cosim.mechanics.multibody.inertial_parameters import ELEMENTS

VARIABLES = 10
OF_INERTIA = range(1, 7)  # those that change neither the mass nor its centre
FLAT = 1e-3  # a thinner body, relative to its size, is made that thick: variables of a flat one would have no effect


def pseudo_inertia(mass: float, com: Array, inertia: Array) -> Array:
    """P (4, 4); inertia (3, 3): about the centre of mass."""
    spread = 0.5 * np.trace(inertia) * np.eye(3) - inertia
    top = spread + mass * np.outer(com, com)
    return np.block([[top, mass * com[:, None]], [mass * com[None, :], np.array([[mass]])]])


def upper_factor(mass: float, com: Array, inertia: Array) -> Array:
    """U₀ (4, 4), upper triangular, U₀ U₀ᵀ = P."""
    spread = 0.5 * np.trace(inertia) * np.eye(3) - inertia
    values, vectors = np.linalg.eigh(spread)
    least = FLAT**2 * max(values.max(), mass * 1e-6)
    solid = vectors @ np.diag(np.maximum(values, least)) @ vectors.T
    P = pseudo_inertia(mass, com, np.trace(solid) * np.eye(3) - solid)
    reverse = np.eye(4)[::-1]
    return reverse @ np.linalg.cholesky(reverse @ P @ reverse) @ reverse


def numbers_of_inertia(factor: Array, x: Numeric) -> Numeric:
    """(mass, com (3), inertia (6) about the centre of mass) of the variables x (10,); factor: U₀."""
    lower = [[0.0] * 4 for _ in range(4)]
    diagonal = [x[1], x[2], x[3], 0.0]
    for i in range(4):
        lower[i][i] = ops.exp(x[0] + diagonal[i])
    scale = ops.exp(x[0])
    for value, (i, j) in zip(range(4, 10), ((0, 1), (0, 2), (1, 2), (0, 3), (1, 3), (2, 3)), strict=True):
        lower[i][j] = scale * x[value]
    U = factor @ ops.array(lower)
    P = U @ U.T
    mass = P[3, 3]
    com = ops.array([P[k, 3] / mass for k in range(3)])
    spread = [[P[i, j] - mass * com[i] * com[j] for j in range(3)] for i in range(3)]
    total = spread[0][0] + spread[1][1] + spread[2][2]
    inertia = [(total if i == j else 0.0) - spread[i][j] for i, j in ELEMENTS]
    return ops.concatenate([ops.array([mass]), com, ops.array(inertia)])
