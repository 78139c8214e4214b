"""Finite elements of a straight beam along x: bending, stretching and twisting.

All have two unknowns per node, a deflection and an angle, and cubic shape functions by Friedman and Kosmatka (An
improved two-node Timoshenko beam finite element, 1993), which are exact for constant sections under end loads. Without
shear they are Hermite's, which also serve rods.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cosim.core.types import Array

_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(4)
GAUSS = 0.5 * (_POINTS + 1.0), 0.5 * _WEIGHTS  # on [0, 1], exact for the mass of cubic shapes


class Shapes(NamedTuple):
    """Of an element at points (k,): deflection and its slope, angle of the section and its slope; (k, 4) each, per unit
    of the deflections and angles of its two nodes."""

    deflection: Array
    slope: Array
    angle: Array
    curvature: Array


def shapes(x: Array, h: float, shear: Array | float) -> Shapes:
    """x (k,): places in the element, 0 to 1; h: its length [m]; shear: 12 EI / (κGA h²), 0 without shear."""
    x2, x3 = x * x, x * x * x
    rows = [
        # constant part, part of the shear; deflection, slope, angle, curvature
        [(1.0 - 3.0 * x2 + 2.0 * x3, 1.0 - x), (h * (x - 2.0 * x2 + x3), 0.5 * h * (x - x2))],
        [(3.0 * x2 - 2.0 * x3, x), (h * (x3 - x2), 0.5 * h * (x2 - x))],
        [(6.0 * (x2 - x) / h, 0.0 * x - 1.0 / h), (1.0 - 4.0 * x + 3.0 * x2, 0.5 - x)],
        [(6.0 * (x - x2) / h, 0.0 * x + 1.0 / h), (3.0 * x2 - 2.0 * x, x - 0.5)],
        [(6.0 * (x2 - x) / h, 0.0 * x), (1.0 - 4.0 * x + 3.0 * x2, 1.0 - x)],
        [(6.0 * (x - x2) / h, 0.0 * x), (3.0 * x2 - 2.0 * x, x)],
        [((12.0 * x - 6.0) / h**2, 0.0 * x), ((6.0 * x - 4.0) / h, 0.0 * x - 1.0 / h)],
        [((6.0 - 12.0 * x) / h**2, 0.0 * x), ((6.0 * x - 2.0) / h, 0.0 * x + 1.0 / h)],
    ]
    found = [
        np.stack([(own + shear * more) / (1.0 + shear) for own, more in (*rows[k], *rows[k + 1])], axis=-1)
        for k in range(0, len(rows), 2)
    ]
    return Shapes(*found)


class BeamLine(NamedTuple):
    """What resists and what moves along a line of elements, at the Gauss points (elements, 4) of each; the mass and the
    rotary inertia are per length. A rod, which stretches or twists, has a `rod` stiffness only."""

    mass: Array
    rotary: Array
    bending: Array  # EI
    shear: Array  # κGA, infinite for a beam that does not shear
    rod: Array  # EA or GJ


@dataclass(frozen=True)
class BeamMesh:
    """Equal elements of a line of some length [m]."""

    length: float
    elements: int

    @property
    def h(self) -> float:
        return self.length / self.elements

    @property
    def gauss_points(self) -> Array:
        """(elements, 4) m"""
        return self.h * (np.arange(self.elements)[:, None] + GAUSS[0])

    @property
    def gauss_weights(self) -> Array:
        """(elements, 4) m"""
        return np.tile(self.h * GAUSS[1], (self.elements, 1))

    def matrices(self, line: BeamLine) -> tuple[Array, Array]:
        """(mass, stiffness) of the unknowns: deflection and angle of node after node."""
        size = 2 * (self.elements + 1)
        mass, stiffness = np.zeros((size, size)), np.zeros((size, size))
        for e in range(self.elements):
            here = slice(2 * e, 2 * e + 4)
            N = shapes(GAUSS[0], self.h, self.shear(line)[e])
            w = self.gauss_weights[e]
            sheared = N.slope - N.angle
            mass[here, here] += _gram(w * line.mass[e], N.deflection) + _gram(w * line.rotary[e], N.angle)
            stiffness[here, here] += _gram(w * line.bending[e], N.curvature) + _gram(w * line.rod[e], N.slope)
            if self.shear(line)[e]:
                stiffness[here, here] += _gram(w * line.shear[e], sheared)
        return mass, stiffness

    def shear(self, line: BeamLine) -> Array:
        """12 EI / (κGA h²) (elements,)"""
        return 12.0 * line.bending.mean(axis=1) / (line.shear.mean(axis=1) * self.h**2)

    def evaluate(self, line: BeamLine, nodal: Array, x: Array) -> Shapes:
        """Of solutions `nodal` (size, m) at places x (k,) [m]: (k, m) each."""
        e = np.clip((x / self.h).astype(int), 0, self.elements - 1)
        N = shapes(x / self.h - e, self.h, self.shear(line)[e])
        unknowns = nodal[2 * e[:, None] + np.arange(4)]  # (k, 4, m)
        return Shapes(*(np.einsum("kn,knm->km", part, unknowns) for part in N))


def _gram(weights: Array, rows: Array) -> Array:
    """Σ w rᵀ r over the points."""
    return np.einsum("k,ki,kj->ij", weights, rows, rows)


def lowest_modes(mass: Array, stiffness: Array, fixed: list[int], count: int, rigid: int) -> Array:
    """(size, count) eigenvectors of K x = ω² M x with the lowest ω, unknowns `fixed` at 0, after the `rigid` motions.

    Without rigid motions it is M x = x / ω² K x: then a heavy body at the tip leaves the lowest modes exact."""
    from scipy.linalg import eigh  # takes longer to import than most rigs to read

    free = np.setdiff1d(np.arange(len(mass)), fixed)
    K, M = (matrix[np.ix_(free, free)] for matrix in (stiffness, mass))
    vectors = eigh(K, M)[1] if rigid else eigh(M, K)[1][:, ::-1]
    found = np.zeros((len(mass), count))
    found[free] = vectors[:, rigid : rigid + count]
    return found
