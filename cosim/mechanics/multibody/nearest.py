"""The configuration nearest to a guess at which loops are closed.

Minimised is |d|² subject to f = 0: f are the holonomic constraint rows, d the offset of every dof from its guess (a
rotation by its angle; 1 rad counts as 1 m). Loops that share no dof are separate problems. From each of several starts
the Levenberg–Marquardt method closes the loops, and Newton's method on the Lagrangian |d|²/2 + λ·f, damped likewise,
reduces the distance while they stay closed. The result is a local minimum, and no start led to a nearer one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cosim.mechanics.multibody.closure import Closure, ClosurePart
from cosim.mechanics.multibody.configuration_space import ChosenDofs, ConfigurationSpace

CLOSURE_TOLERANCE = 1e-10  # residual [m or rad] that counts as zero
MAX_ITERATIONS = 200  # of the Levenberg–Marquardt method
MAX_APPROACHES = 60  # steps that reduce the distance
ROUNDING = 1e-14  # relative to the largest element of a matrix
MIN_DAMPING = 1e-13  # of the Levenberg–Marquardt method
SMALLEST_WEIGHT = 1e-16  # of a dof in its damping, relative to the largest one
STALLED = 1.0 - 1e-6  # ratio of |f|² after a step to |f|² before it, above which the search has stalled
NEAREST = 1e-10  # step along the constraints at which the distance counts as minimal, relative to it
COMPLIANCE = 1e-11  # of constraint rows of length 1 in a step along them
DISTINCT = 1.0 - 1e-9  # ratio of distances below which one is less than the other; the first of equal ones counts
DENSE = 200  # unknowns up to which equations are solved as dense ones
STARTS, MANY_DOFS = 24, 50  # starts around the guess; fewer above this many dofs
FAR_DISTANCE = 0.5  # rad or m, distance of a solution from the guess below which fewer starts are made
WIDTH = 3.0  # rad or m, of the widest starts
CLOSED, OFF_BRANCH, VIOLATED = range(3)  # results of a search, best first
TURN = 2.0 * np.pi


@dataclass(frozen=True)
class ClosureSearch:
    """A search among the coordinates of some dofs for those that satisfy some rows."""

    closure: ClosurePart
    dofs: ChosenDofs
    guess: np.ndarray  # (nq,)
    t: float = 0.0

    @staticmethod
    def of(
        space: ConfigurationSpace,
        closure: Closure,
        rows: np.ndarray,
        dofs: np.ndarray,
        guess: np.ndarray,
        t: float,
        inexact: Mapping[int, float] | None = None,
    ) -> ClosureSearch:
        """rows, dofs: their indices. inexact: of the rows, the ones that only stay below a bound."""
        bounded = {int(r): inexact[int(r)] for r in rows if inexact and int(r) in inexact}
        exact = np.array([r for r in rows if int(r) not in bounded], dtype=int)
        return ClosureSearch(closure.part(exact, dofs, bounded), ChosenDofs(space, dofs), guess, t)

    def nearest(self, q: np.ndarray) -> np.ndarray:
        """Coordinates (nq,) that satisfy the rows on their intended branch, as near to the guess as any that are found;
        q: with the coordinates of other dofs.

        If no such coordinates are found, the ones on another branch, else the ones with the smallest violation."""
        best, rank, rng = q, (VIOLATED, np.inf), np.random.default_rng(0)
        most = max(3, STARTS * MANY_DOFS // max(MANY_DOFS, len(self.dofs)))
        for k in range(most):
            quality, distance = rank
            if quality == CLOSED and k > max(2, most * min(1.0, distance / FAR_DISTANCE)):
                break
            start, violation = self.close(self.dofs.moved(q, self._start(k, most, best, rank, rng)))
            if violation < CLOSURE_TOLERANCE:
                found = self._approach(start)
                intended = self.closure.intended(found, self.t).all()
                result = CLOSED if intended else OFF_BRANCH, self._distance(found)
            else:
                found, result = start, (VIOLATED, violation)
            if result < (rank[0], DISTINCT * rank[1]):
                best, rank = found, result
            if rank <= (CLOSED, NEAREST) or not len(self.dofs):
                break
        return best

    def _start(
        self, k: int, most: int, best: np.ndarray, rank: tuple[int, float], rng: np.random.Generator
    ) -> np.ndarray:
        """The step from the guess to start k: none at first, then at random. What is nearer than a solution lies in the
        ball with this solution on its surface; the first step goes to the opposite point."""
        if k == 0:
            return np.zeros(len(self.dofs))
        if rank[0] != CLOSED:
            return WIDTH * k / most * rng.normal(size=len(self.dofs))
        return -self._offset(best) if k == 1 else min(rank[1], WIDTH) * rng.uniform(-1.0, 1.0, len(self.dofs))

    def _offset(self, q: np.ndarray) -> np.ndarray:
        return self.dofs.offset(self.guess, q)

    def _distance(self, q: np.ndarray) -> float:
        return float(np.linalg.norm(self._offset(q)))

    def close(self, q: np.ndarray) -> tuple[np.ndarray, float]:
        """The Levenberg–Marquardt method on |f|²: (coordinates, largest remaining residual)."""
        f, G = self.closure(q, self.t)
        damping = 1e-3
        for _ in range(MAX_ITERATIONS):
            if np.abs(f).max(initial=0.0) < 1e-3 * CLOSURE_TOLERANCE or not np.isfinite(G).all():
                break
            while damping < 1e12:
                trial = self.dofs.moved(q, -damped_least_squares(G, f, damping))
                after, G_after = self.closure(trial, self.t)
                before, now = f @ f, after @ after
                if now < before:
                    q, f, G, damping = trial, after, G_after, max(0.1 * damping, MIN_DAMPING)
                    if now > STALLED * before:
                        return q, float(np.abs(f).max())
                    break
                if np.abs(f).max() < CLOSURE_TOLERANCE:
                    return q, float(np.abs(f).max())  # the remaining residual is rounding
                damping *= 10.0
            else:
                break
        return q, float(np.abs(f).max(initial=0.0))

    def _approach(self, q: np.ndarray) -> np.ndarray:
        """Closed coordinates at a local minimum of the distance, from closed coordinates."""
        damping = 0.0
        for _ in range(MAX_APPROACHES):
            q = self._unwound(q)
            d, (_, G) = self._offset(q), self.closure(q, self.t)
            along, multipliers = constrained_step(np.eye(len(d)), G, -d)
            if not np.abs(along).max(initial=0.0) > NEAREST * np.linalg.norm(d):
                break
            bend = self.closure.curvature(q, multipliers, self.t)
            while damping < 1e6:
                step, _ = constrained_step((1.0 + damping) * np.eye(len(d)) + bend, G, -d)
                trial, violation = self.close(self.dofs.moved(q, step))
                if violation < CLOSURE_TOLERANCE and self._distance(trial) < np.linalg.norm(d):
                    q, damping = trial, 0.1 * damping if damping > 0.01 else 0.0
                    break
                damping = max(10.0 * damping, 0.1)
            else:
                break
        return q

    def _unwound(self, q: np.ndarray) -> np.ndarray:
        """The coordinates without whole turns from the guess, where the rows allow that."""
        turns = np.round(self._offset(q) / TURN)
        for k in np.flatnonzero(turns):
            trial = self.dofs.moved(q, -TURN * turns[k] * np.eye(len(turns))[k])
            if self.dofs.units[k] == "rad" and np.abs(self.closure(trial, self.t)[0]).max() < CLOSURE_TOLERANCE:
                q = trial
        return q


def separate_parts(pattern: np.ndarray, movable: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """(rows, dofs) of the sets of rows that share no movable dof with others; rows without movable dofs are in none.
    pattern: (m, nv) whether a row depends on a dof."""
    pattern, parts = np.logical_and(pattern, movable), []
    left = pattern.any(axis=1)
    while left.any():
        rows, dofs = np.arange(len(pattern)) == left.argmax(), np.zeros_like(movable)
        while (pattern[rows].any(axis=0) & ~dofs).any():
            dofs = pattern[rows].any(axis=0)
            rows = pattern[:, dofs].any(axis=1)
        parts.append((np.flatnonzero(rows), np.flatnonzero(dofs)))
        left &= ~rows
    return parts


def damped_least_squares(G: np.ndarray, f: np.ndarray, damping: float) -> np.ndarray:
    """x that minimises |G x − f|² + damping · Σ (|G_k| x_k)² over the columns k, from the normal equations. Units of
    the dofs do not matter (Marquardt 1963); G may be rank-deficient."""
    normal = G.T @ G
    weights = normal.diagonal()
    floor = SMALLEST_WEIGHT * weights.max(initial=0.0) or 1.0
    return _solve(normal + damping * np.diag(np.maximum(weights, floor)), G.T @ f)


def constrained_step(H: np.ndarray, G: np.ndarray, force: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(x, λ) with H x + Gᵀ λ = force and G x = 0, but for a small compliance that lets G be rank-deficient."""
    n, m = len(H), len(G)
    sizes = np.linalg.norm(G, axis=1)
    sizes[sizes == 0.0] = 1.0
    unit = G / sizes[:, None]
    matrix = np.block([[H, unit.T], [unit, -COMPLIANCE * np.eye(m)]])
    solution = _solve(matrix, np.concatenate([force, np.zeros(m)]))
    return solution[:n], solution[n:] / sizes


def _solve(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """matrix⁻¹ · right, not finite for a singular matrix. Large ones are sparse, as a loop involves few dofs: elements
    below rounding are dropped."""
    try:
        if len(matrix) <= DENSE:
            return np.linalg.solve(matrix, right)
        import scipy.sparse.linalg  # slow to import

        kept = np.where(np.abs(matrix) > ROUNDING * np.abs(matrix).max(initial=0.0), matrix, 0.0)
        return scipy.sparse.linalg.splu(scipy.sparse.csc_array(kept)).solve(right)
    except (np.linalg.LinAlgError, RuntimeError):
        return np.full(len(right), np.nan)
