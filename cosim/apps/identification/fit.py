"""The numbers that recordings determine, by least squares of the equation error.

The error is linear in the values β: in masses, first moments and inertias about the frames of links, in frictions,
rotor inertias and offsets. First Σ (e / σ)² has its least value over all β, possible or not, which depends on no start
and on no unit. What it leaves is σ of each joint, and the floor that any fit of these numbers has.

Then the least value over what a machine can have: bodies with positive definite pseudo-inertias, no negative friction.
Only the variables x of bodies, and of numbers that are not linear, are searched (Levenberg 1944, Marquardt 1963); all
others follow from them exactly, by least squares with bounds (variable projection: Golub and Pereyra, SIAM Journal on
Numerical Analysis 10, 1973, with Kaufman's derivative, BIT 15, 1975; bounds: Lawson and Hanson, Solving Least Squares
Problems, 1974). A Σ x² of a small weight decides what the motion leaves open, which stays as it is in the rig.

The errors are reduced to triangles once; they are made anew until nothing changes for numbers that are not linear.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from cosim.apps.identification.blocks import DELAY, BodyBlock
from cosim.apps.identification.intervals import jackknife
from cosim.apps.identification.recorded_errors import RecordedErrors, clusters_of, triangle, triangles_of
from cosim.apps.identification.variables import Variables
from cosim.core.types import Array

STEPS = 400  # of a search
ROUNDS = 8  # of reductions
WEIGHINGS = 4  # rounds of weights of the joints
SETTLED_CHANGE = 1e-4  # change of the variables in a round after which there is no other
ENOUGH_DECREASE = 3e-5  # relative decrease of the sum in a step at which a search ends
QUIET = 1e-3  # least noise, as a fraction of the signal of a drive: no model is closer
LONGEST_STEP = 2.0  # of a variable: by e² for a logarithm
DAMPING = 1e-3  # first one, of the diagonal
PRIOR = 1e-3  # of Σ x², in units of one sample
DEFICIENT = 1e-6  # relative singular value below which a combination of β is not determined
MANY = 5  # recordings: with so many, each is one cluster
SAME_SLOPE = 1e-9  # relative change of a slope that is none
PROBED = 50  # rows at which slopes are compared


@dataclass(frozen=True)
class Fit:
    """x (size,), β (size,) and the numbers (n,) that follow, their covariance (n, n) and the clusters from which it is;
    noise (nv,): what the least squares without bounds leave, and left (nv,) what the numbers leave, root mean squares
    in the unit of the signals of drives; by_values (n, size): of the values by the variables z, which are x where
    searched, else β, 0 for held ones; slope (k, size): of the errors over their noise by z."""

    x: Array
    beta: Array
    values: Array
    covariance: Array
    clusters: int
    noise: Array
    left: Array
    by_values: Array
    slope: Array

    @property
    def deviations(self) -> Array:
        """(n,) of the numbers."""
        return np.sqrt(np.diag(self.covariance))

    def delay(self, variables: Variables) -> float:
        """s"""
        values = dict(zip(variables.titles, variables.split(self.values), strict=True))
        return float(values[DELAY][0])


@dataclass(frozen=True)
class LinearProblem:
    """Triangles (c, nv, m + 1, m + 1) of the errors near β₀ and the samples (c, nv) in each; see `recorded_errors`."""

    variables: Variables
    beta: Array
    triangles: Array
    counts: Array
    least: Array

    @staticmethod
    def at(variables: Variables, recordings: Sequence[RecordedErrors], beta: Array) -> LinearProblem:
        triangles, counts = [], []
        for recording in recordings:
            clusters = clusters_of(recording.samples, whole=len(recordings) >= MANY)
            triangles.append(triangles_of(*recording(beta), clusters))
            of_cluster = [recording.samples.moving[clusters == c].sum(axis=0) for c in range(len(triangles[-1]))]
            counts.append(np.array(of_cluster))
        least = np.max([recording.least_noise(QUIET) for recording in recordings], axis=0)
        return LinearProblem(variables, beta, np.concatenate(triangles), np.concatenate(counts), least)

    def rows(self, noise: Array, beta: Array) -> Array:
        """(nv (m + 1), m + 1): slopes and errors of all clusters at β over the noise, as a triangle for each joint."""
        found = (self._joints / noise[:, None, None]).reshape(-1, len(self.beta) + 1)
        found[:, -1] += found[:, :-1] @ (beta - self.beta)
        return found

    @cached_property
    def _joints(self) -> Array:
        """(nv, m + 1, m + 1) of all clusters."""
        return np.array([triangle(self.triangles[:, k]) for k in range(self.triangles.shape[1])])

    def left(self, beta: Array) -> Array:
        """(nv,) root mean squares of the errors at β."""
        change = np.append(beta - self.beta, 1.0)
        squares = np.sum((self._joints @ change) ** 2, axis=1)
        return np.sqrt(squares / np.maximum(self.counts.sum(axis=0), 1))

    def without_bounds(self, free: Sequence[int]) -> tuple[Array, Array]:
        """(β, σ (nv,) that it leaves) of the least squares of the β of these blocks, with weights 1 / σ."""
        columns = self.variables.columns(free)
        noise, beta = np.maximum(self.left(self.beta), self.least), self.beta
        for _ in range(WEIGHINGS):
            rows, beta = self.rows(noise, self.beta), self.beta.copy()
            beta[columns] -= least_squares(rows[:, columns], rows[:, -1])
            noise = np.maximum(self.left(beta), self.least)
        return beta, noise


class ProjectedErrors:
    """The errors over σ as a function of searched variables, with all linear values eliminated; and Σ x²."""

    def __init__(self, problem: LinearProblem, noise: Array, searched: Sequence[int], linear: Sequence[int]) -> None:
        """searched, linear: blocks; all others are held."""
        self.variables = variables = problem.variables
        bounded = [k for k in linear if np.isfinite(variables.blocks[k].least)]
        self.searched = variables.columns(searched)
        self.bounded = variables.columns(bounded)
        self.unbounded = variables.columns([k for k in linear if k not in bounded])
        self.beta = problem.beta.copy()  # the begin of all columns below
        self.beta[self.bounded] = [variables.blocks[k].least for k in bounded]
        self.beta[self.unbounded] = 0.0
        rows = problem.rows(noise, self.beta)
        order = np.concatenate([self.unbounded, self.bounded, self.searched, [rows.shape[1] - 1]])
        R, first, second = triangle(rows[:, order]), len(self.unbounded), len(self.unbounded) + len(self.bounded)
        self._of_unbounded = R[:first]  # they make these rows 0, and no others have them
        rest = R[first:]
        self._by_bounded, self._by_searched, self._right = rest[:, first:second], rest[:, second:-1], rest[:, -1]

    def __call__(self, x: Array) -> tuple[Array, Array]:
        """(errors and x below them, their derivatives)."""
        change, slope = self._change(x)
        right = self._right + self._by_searched @ change
        values = self._bounded_values(right)
        errors, by_x = right + self._by_bounded @ values, self._by_searched @ slope
        if (active := values > 0.0).any():
            basis = np.linalg.qr(self._by_bounded[:, active])[0]
            by_x = by_x - basis @ (basis.T @ by_x)
        weight = np.sqrt(PRIOR)
        return np.concatenate([errors, weight * x]), np.concatenate([by_x, weight * np.eye(x.size)])

    def solution(self, x: Array) -> Array:
        """β (size,)."""
        change, _ = self._change(x)
        values = self._bounded_values(self._right + self._by_searched @ change)
        found = self.beta.copy()
        found[self.searched] += change
        found[self.bounded] += values
        if first := len(self.unbounded):
            R = self._of_unbounded
            right = R[:, first:] @ np.concatenate([values, change, [1.0]])
            found[self.unbounded] -= least_squares(R[:, :first], right)
        return found

    def _change(self, x: Array) -> tuple[Array, Array]:
        """(of β, its slope) of the searched variables."""
        whole = np.zeros(self.variables.size)
        whole[self.searched] = x
        beta, slope = np.asarray(self.variables.linear(whole), dtype=float), self.variables.linear_slope(whole)
        return (beta - self.beta)[self.searched], slope[np.ix_(self.searched, self.searched)]

    def _bounded_values(self, right: Array) -> Array:
        """Above their least ones."""
        from scipy.optimize import nnls

        matrix, values = self._by_bounded, np.zeros(len(self.bounded))
        scale = np.linalg.norm(matrix, axis=0)
        seen = scale > 0.0
        if not seen.any():
            return values
        values[seen] = nnls(matrix[:, seen] / scale[seen], -right)[0] / scale[seen]
        return values


def least_squares(matrix: Array, right: Array) -> Array:
    """The least x with the least |matrix x − right|, with columns of very different units."""
    scale = np.maximum(np.linalg.norm(matrix, axis=0), 1e-300)
    return np.linalg.lstsq(matrix / scale, right, rcond=DEFICIENT)[0] / scale


def fit(variables: Variables, recordings: Sequence[RecordedErrors], held: Collection[int] = ()) -> Fit:
    """held: blocks that stay as they are in the rig."""
    x, beta = np.zeros(variables.size), np.asarray(variables.linear(np.zeros(variables.size)), dtype=float)
    free = [k for k in range(len(variables.blocks)) if k not in held]
    linear = linear_blocks(variables, recordings, beta, free)
    searched = [k for k in free if k not in linear]
    settled = all(isinstance(variables.blocks[k], BodyBlock) for k in searched)  # in one round
    for _ in range(1 if settled else ROUNDS):
        problem = LinearProblem.at(variables, recordings, beta)
        _, noise = problem.without_bounds(free)
        errors = ProjectedErrors(problem, noise, searched, linear)
        before = x[errors.searched]
        x[errors.searched] = search(errors, before)
        beta = errors.solution(x[errors.searched])
        if np.abs(x[errors.searched] - before).max(initial=0.0) < SETTLED_CHANGE:
            break
    values = np.asarray(variables.values_of_linear(beta), dtype=float)
    slope = np.zeros((variables.size, variables.size))
    slope[:, errors.searched] = variables.linear_slope(x)[:, errors.searched]
    others = np.concatenate([errors.bounded, errors.unbounded])
    slope[others, others] = 1.0
    spread = covariance(problem, noise, beta, slope, errors.searched)
    by_z = variables.values_slope(beta) @ slope
    left, rows = problem.left(beta), problem.rows(noise, beta)[:, :-1] @ slope
    return Fit(x, beta, values, by_z @ spread @ by_z.T, len(problem.triangles), noise, left, by_z, rows)


def linear_blocks(
    variables: Variables, recordings: Sequence[RecordedErrors], beta: Array, blocks: Sequence[int]
) -> list[int]:
    """Those of one value on which the slope of the error by it does not depend."""
    probed = [replace(of, samples=of.samples.first(PROBED)) for of in recordings]

    def slopes(beta: Array) -> Array:
        return np.concatenate([of(beta, everywhere=True)[1] for of in probed])

    base, found = slopes(beta), []
    for k in blocks:
        block, place = variables.blocks[k], variables.places[k]
        if isinstance(block, BodyBlock) or block.size > 1 or block.divides or block.title == DELAY:
            continue
        changed = beta.copy()
        changed[place] = 2.0 * beta[place] + block.scale
        before, after = base[..., place], slopes(changed)[..., place]
        if np.abs(after - before).max() <= SAME_SLOPE * np.abs(before).max():
            found.append(k)
    return found


def covariance(problem: LinearProblem, noise: Array, beta: Array, slope: Array, searched: Array) -> Array:
    """(size, size) of the variables z, which are x where searched, else β; slope: ∂β/∂z, 0 for held ones."""
    change = np.append(beta - problem.beta, 1.0)
    normals, scores = [], []
    for of_cluster in problem.triangles:
        rows = (of_cluster / noise[:, None, None]).reshape(-1, len(change))
        by_z = rows[:, :-1] @ slope
        normals.append(by_z.T @ by_z)
        scores.append(by_z.T @ (rows @ change))
    prior = np.zeros(len(beta))
    prior[searched] = PRIOR
    return jackknife(np.array(normals), np.array(scores), prior)


def search(
    residual: Callable[[Array], tuple[Array, Array]], x: Array, damping: float = DAMPING, settled: float = 0.0
) -> Array:
    """The x that minimises the sum of squares of a residual (m,) with its derivatives (m, n), by Levenberg and
    Marquardt's method. damping: the first one; settled: decrease of the sum at which the search ends."""
    found, slope = residual(x)
    value = float(found @ found)
    for _ in range(STEPS):
        normal, gradient = slope.T @ slope, slope.T @ found
        while damping < 1e12:
            step = np.linalg.solve(normal + damping * np.diag(np.diag(normal)), -gradient)
            step *= min(1.0, LONGEST_STEP / np.abs(step).max(initial=LONGEST_STEP))
            with np.errstate(over="ignore", invalid="ignore"):
                tried, tried_slope = residual(x + step)
                new = float(tried @ tried)
            if new < value:
                break
            damping *= 8.0
        else:
            return x
        x, found, slope, damping = x + step, tried, tried_slope, max(damping / 8.0, 1e-14)
        if value - new < max(ENOUGH_DECREASE * value, settled):
            return x
        value = new
    return x
