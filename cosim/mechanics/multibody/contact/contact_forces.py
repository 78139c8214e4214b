"""The forces of points of contact between two events: the law of contact in accelerations, with known modes.

A point is open or closed; a closed one sticks, or slides along a unit vector d of the tangents. With the accelerations
u̇ = W f + c of the rows t1, t2, n of all points, closed ones have

    0 ≤ f_n ⊥ u̇_n ≥ 0,
    sticks  |f_t| ≤ μ f_n, and f_t = −μ f_n u̇_t / |u̇_t| where u̇_t ≠ 0,
    slides  f_t = −μ f_n d,

(Pfeiffer and Glocker, Multibody Dynamics with Unilateral Contacts, 1996). Beyond an event, in a step that is then cut,
the law holds on smoothly: u̇_n > 0 means that a point lifts, u̇_t ≠ 0 that it begins to slide. With x the forces of
the rows that are left, f = B x, it is the problem of `ContactSolver`, whose matrix is not symmetric where points slide.
Where there are more forces than the motion needs, those of least norm are taken, which is how points that are equally
soft would share a load.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from cosim.core import ops
from cosim.core.types import Numeric
from cosim.mechanics.multibody.contact.cone import NORMAL
from cosim.mechanics.multibody.contact.contact_solver import ContactSolver
from cosim.mechanics.multibody.contact.shapes import ContactLaw

PROXIMAL = 1e-6  # of the mean mobility of a point
TOLERANCE = 1e-11  # of the accelerations that the law is required of
LEAST_SCALE = 1e-3  # m/s², of the accelerations: less is compared with it, since it may be rounding
TINY = 1e-300
REFINED = 3  # times that a projection is repeated: each takes away all but PROXIMAL of what is left
ROWS = 3  # of a point


class PointModes(NamedTuple):
    """closed (k,): 1 for points that touch; direction (2 k,): unit vectors along t1 and t2 of those that slide, else
    0."""

    closed: Numeric
    direction: Numeric

    def of(self, j: int) -> tuple[Numeric, Numeric, Numeric]:
        """(closed, d1, d2) of point j."""
        return self.closed[j], self.direction[2 * j], self.direction[2 * j + 1]

    def slides(self, j: int) -> Numeric:
        """1 for a point that touches and slides."""
        closed, d1, d2 = self.of(j)
        return ops.where(ops.logical_and(closed > 0.5, d1 * d1 + d2 * d2 > 0.25), 1.0, 0.0)

    def held(self) -> Numeric:
        """(3 k,) 1 for rows whose velocity is kept at 0."""
        found = []
        for j in range(len(self.closed)):
            sticks = self.closed[j] * (1.0 - self.slides(j))
            found += [sticks, sticks, self.closed[j]]
        return ops.array(found)


class PointForces(NamedTuple):
    """forces (3 k,) [N]; law (3 k,): accelerations that the law holds of, of closed points, over `scale`; scale ():
    the sum of the accelerations without forces [m/s²]; passes, residual: of the solver, the residual over `scale`."""

    forces: Numeric
    law: Numeric
    scale: Numeric
    passes: Numeric
    residual: Numeric


@dataclass(frozen=True)
class ContactForces:
    """laws (k,): of the points."""

    laws: tuple[ContactLaw, ...]

    @property
    def _points(self) -> int:
        return len(self.laws)

    @cached_property
    def _solver(self) -> ContactSolver:
        return ContactSolver(self._points, tolerance=TOLERANCE, name="contact_forces", symmetric=False)

    def solved(self, W: Numeric, c: Numeric, modes: PointModes, known: Numeric) -> PointForces:
        """W (3 k, 3 k) [1/kg], c (3 k,) [m/s²], known (3 k,): forces from which the search begins [N]."""
        k = self._points
        turned, kept, friction = self._turned(modes), modes.held(), []
        matrix, mobility = W @ turned, np.diag(W)
        left = [[kept[i] * matrix[i, j] for j in range(ROWS * k)] for i in range(ROWS * k)]
        right, softness, scale = [], [], ops.sum(ops.abs(kept[i] * c[i]) for i in range(ROWS * k)) + LEAST_SCALE
        start = [known[i] * kept[i] / scale for i in range(ROWS * k)]
        for j, law in enumerate(self.laws):
            own, normal = range(ROWS * j, ROWS * (j + 1)), ROWS * j + NORMAL
            held = PROXIMAL / ROWS * ops.sum(mobility[i] for i in own) if k > 1 else 0.0
            for i in own:
                left[i][i] = left[i][i] + held * kept[i]
                # an open point moves away, whatever the others do
                opens = 1.0 - modes.closed[j] if i == normal else 0.0
                right.append(kept[i] * c[i] / scale + opens)
                softness.append(held * kept[i])
            friction.append(ops.where(modes.slides(j) > 0.5, 0.0, law.static))
        soft, given, mu = ops.array(left), ops.array(right), ops.array(friction)
        x, passes, residual, _ = self._solver(soft, given, mu, ops.array(start))
        if k > 1:  # as points that are a little soft share the load; then without the softness
            given = given - ops.array(softness) * x
            x, more, residual, _ = self._solver(soft, given, mu, x)
            passes = passes + more
        return PointForces(scale * (turned @ x), soft @ x + given, scale, passes, residual)

    def _turned(self, modes: PointModes) -> Numeric:
        """B (3 k, 3 k)"""
        n = ROWS * self._points
        found: list[list[Numeric]] = [[0.0] * n for _ in range(n)]
        for j, law in enumerate(self.laws):
            closed, *d = modes.of(j)
            slides, first = modes.slides(j), ROWS * j
            for i in range(2):
                found[first + i][first + i] = closed * (1.0 - slides)
                found[first + i][first + NORMAL] = -law.sliding * slides * d[i]
            found[first + NORMAL][first + NORMAL] = closed
        return ops.array(found)


def projecting(W: Numeric, demand: Numeric, held: Numeric) -> Numeric:
    """Λ (n,) with W Λ = −demand in the rows that are held, 0 in the others: of dependent rows the one of least norm.

    W (n, n): symmetric; held (n,): 1 or 0."""
    n, mean = len(demand), PROXIMAL / len(demand) * ops.sum(np.diag(W)) + TINY
    rows = [[held[i] * held[j] * W[i, j] for j in range(n)] for i in range(n)]
    for i in range(n):
        rows[i][i] = ops.where(held[i] > 0.5, rows[i][i] + mean, 1.0)
    matrix, wanted, found = ops.array(rows), -held * demand, np.zeros(n)
    for _ in range(REFINED):
        found = ops.solve(matrix, wanted + mean * found)
    return found
