"""Least squares over what a machine can have: bodies that are possible, and no negative friction.

    minimise ½ |A Δβ + r|²   with every pseudo-inertia P(β + Δβ) ≥ ε and β + Δβ ≥ its least values

P is linear in mass, first moment and inertia about the frame (Wensing, Kim and Slotine, IEEE Robotics and Automation
Letters 3, 2018), so that the problem is convex (Sousa and Cortesão, International Journal of Robotics Research 33,
2014) and has one minimum, which an interior-point method finds without a start: Clarabel (Goulart and Chen, 2024).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from cosim.apps.identification.blocks import BodyBlock, pseudo_inertia_in_frame
from cosim.core.errors import RunError
from cosim.core.types import Array

THINNEST = 1e-6  # ε, of a pseudo-inertia in units of mass and size of the body in the rig
UPPER = [(i, j) for j in range(4) for i in range(j + 1)]  # of a matrix, by columns
AT_BOUND = 1e-6  # of one sample: the effect of what a number is above its least value, which it then has
SOLVED = ("Solved", "AlmostSolved")


class Bounds(NamedTuple):
    """lower, upper (n,): of changes, infinite for none; bodies: blocks whose pseudo-inertia is positive definite, each
    with its β before the change, and its columns; ordered: columns of which the first is not less than the second, with
    their difference before the change."""

    lower: Array
    upper: Array
    bodies: Sequence[tuple[BodyBlock, Array, Array]]
    ordered: Sequence[tuple[int, int, float]] = ()


def least_squares_within(rows: Array, bounds: Bounds) -> Array:
    """The change of β (n,) with the least |rows (change, 1)|². Raises RunError where it is not found."""
    from scipy.sparse import csc_matrix

    clarabel: Any = import_module("clarabel")

    A, r = rows[:, :-1], rows[:, -1]
    # of each value a change by 1 has the same effect: the columns have very different units
    scale = 1.0 / np.sqrt(np.sum(A**2, axis=0) + 1e-300)
    scale = np.where(scale > 1e100, 1.0, scale)
    P = (A * scale).T @ (A * scale)
    q = (A * scale).T @ r
    parts, rights, cones = [], [], []
    for sign, bound in ((-1.0, bounds.lower), (1.0, bounds.upper)):  # s = right − G x ≥ 0
        which = np.flatnonzero(np.isfinite(bound))
        G = np.zeros((len(which), len(scale)))
        G[np.arange(len(which)), which] = sign
        parts.append(G)
        rights.append(sign * bound[which] / scale[which])
        if len(which):
            cones.append(clarabel.NonnegativeConeT(len(which)))
    if bounds.ordered:
        G = np.zeros((len(bounds.ordered), len(scale)))
        for row, (high, low, _) in zip(G, bounds.ordered, strict=True):
            row[[high, low]] = -scale[high], scale[low]
        parts.append(G)
        rights.append(np.array([difference for *_, difference in bounds.ordered]))
        cones.append(clarabel.NonnegativeConeT(len(bounds.ordered)))
    for block, beta, columns in bounds.bodies:
        at_start, slopes = _pseudo_inertia(block, beta)
        G = np.zeros((len(UPPER), len(scale)))
        G[:, columns] = -slopes * scale[columns]
        parts.append(G)
        rights.append(at_start)
        cones.append(clarabel.PSDTriangleConeT(4))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    upper = csc_matrix(np.triu(P))
    solver = clarabel.DefaultSolver(upper, q, csc_matrix(np.vstack(parts)), np.concatenate(rights), cones, settings)
    found = solver.solve()
    if str(found.status) not in SOLVED:
        raise RunError(f"the possible numbers were not found: {found.status}; take fewer numbers with --fit")
    change = np.array(found.x) * scale
    # an interior point ends a little above the bounds on which it lies
    return np.where((change - bounds.lower) / scale < AT_BOUND, bounds.lower, change)


def _pseudo_inertia(block: BodyBlock, beta: Array) -> tuple[Array, Array]:
    """(less ε (10,), its slopes by β (10, size)), in units of the body in the rig, as a vector whose norm is that of
    the matrix."""
    unit = np.append(np.full(3, 1.0 / block.length), 1.0) / math.sqrt(block.mass)

    def vector(matrix: Array) -> Array:
        scaled = matrix * np.outer(unit, unit)
        return np.array([scaled[i, j] * (1.0 if i == j else math.sqrt(2.0)) for i, j in UPPER])

    start = vector(pseudo_inertia_in_frame(block.in_frame(beta)))
    slopes = [vector(pseudo_inertia_in_frame(block.in_frame(beta + change))) - start for change in np.eye(len(beta))]
    return start - vector(THINNEST * np.diag(1.0 / unit**2)), np.array(slopes).T
