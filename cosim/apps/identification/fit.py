"""The numbers that recordings determine, by least squares of the equation error.

The error is linear in the values β: in masses, first moments and inertias about the frames of links, in frictions,
rotor inertias and offsets. First Σ (e / σ)² has its least value over all β, possible or not, which depends on no start
and on no unit. What it leaves is σ of each joint, and the floor that any fit of these numbers has. Then the least value
over what a machine can have, see `possible`: a convex problem as well. A small weight on changes decides what the
motion leaves open, which stays as it is in the rig.

The errors are reduced to triangles once. For numbers that are not linear they are made anew around the values found
last, until nothing changes: Gauss and Newton's method within a region that shrinks where that makes the errors greater.
The others are solved for again wherever it goes, so that it searches in the numbers that are not linear alone (Golub
and Pereyra, SIAM Journal on Numerical Analysis 10, 1973).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from cosim.apps.identification.blocks import DELAY, BodyBlock, ShiftBlock, beta_scales
from cosim.apps.identification.intervals import jackknife
from cosim.apps.identification.possible import Bounds, least_squares_within
from cosim.apps.identification.recorded_errors import RecordedErrors, clusters_of, triangle
from cosim.apps.identification.variables import Variables
from cosim.core.types import Array

ROUNDS = 20  # of reductions
WEIGHINGS = 4  # rounds of weights of the joints
SETTLED_CHANGE = 1e-4  # relative change of numbers that are not linear in a round after which there is no other
SETTLED_GAIN = 1e-2  # of Σ (e / σ)², which a number that is wrong by a tenth of its standard deviation makes greater
FARTHEST = 0.7  # relative change of these in a round …
SHRINKS, GROWS = 0.25, 2.0  # … times these after a round that made the errors greater, and less
STATIC, COULOMB = ".static", ".coulomb"  # friction: ends of titles; the former is not less than the latter
LEAST_REACH = 1e-3  # of FARTHEST, at which the search ends
QUIET = 1e-3  # least noise, as a fraction of the signal of a drive: no model is closer
PRIOR = 1e-4  # weight of a change of the order of a body itself, in units of one sample
FAINT = 1e-10  # … of other numbers
DEFICIENT = 1e-6  # relative singular value below which a combination of β is not determined
MANY = 5  # recordings: with so many, each is one cluster
SAME_SLOPE = 1e-9  # relative change of a slope that is none
PROBED = 50  # rows at which slopes are compared


@dataclass(frozen=True)
class Fit:
    """β (size,) and the numbers (n,) that follow, their covariance (n, n) and the clusters from which it is; noise
    (nv,): what the least squares without bounds leave, and left (nv,) what the numbers leave, root mean squares in the
    unit of the signals of drives; by_values (n, size): of the values by β, 0 of held ones; slope (k, size): of the
    errors over their noise by β, 0 of held ones."""

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
    """Slopes and errors (k, nv, m + 1) near β₀ and the cluster (k,) of each; samples (nv,): samples in which a joint
    moves; least (nv,): no noise is less."""

    variables: Variables
    beta: Array
    errors: Array
    clusters: Array
    samples: Array
    least: Array

    @staticmethod
    def at(variables: Variables, recordings: Sequence[RecordedErrors], beta: Array) -> LinearProblem:
        errors, clusters, first = [], [], 0
        for recording in recordings:
            error, slope = recording(beta)
            errors.append(np.concatenate([slope, error[..., None]], axis=2))
            clusters.append(first + clusters_of(recording.samples, whole=len(recordings) >= MANY))
            first = int(clusters[-1].max(initial=first - 1)) + 1
        samples = np.sum([recording.samples.moving.sum(axis=0) for recording in recordings], axis=0)
        least = np.max([recording.least_noise(QUIET) for recording in recordings], axis=0)
        return LinearProblem(variables, beta, np.concatenate(errors), np.concatenate(clusters), samples, least)

    def rows(self, noise: Array, beta: Array) -> Array:
        """(nv (m + 1), m + 1): slopes and errors at β over the noise, as a triangle for each joint."""
        found = (self._triangles / noise[:, None, None]).reshape(-1, len(self.beta) + 1)
        found[:, -1] += found[:, :-1] @ (beta - self.beta)
        return found

    @property
    def is_finite(self) -> bool:
        return bool(np.isfinite(self.errors).all())

    @cached_property
    def _triangles(self) -> Array:
        """(nv, m + 1, m + 1)"""
        return np.array([triangle(self.errors[:, k]) for k in range(self.errors.shape[1])])

    def of_clusters(self, noise: Array, beta: Array) -> Iterator[Array]:
        """(k, m + 1) slopes and errors at β over the noise of each cluster."""
        for c in range(self.clusters.max() + 1):
            found = (self.errors[self.clusters == c] / noise[:, None]).reshape(-1, len(self.beta) + 1)
            found[:, -1] += found[:, :-1] @ (beta - self.beta)
            yield found

    def left(self, beta: Array) -> Array:
        """(nv,) root mean squares of the errors at β."""
        change = np.append(beta - self.beta, 1.0)
        squares = np.sum((self._triangles @ change) ** 2, axis=1)
        return np.sqrt(squares / np.maximum(self.samples, 1))

    def without_bounds(self, free: Sequence[int]) -> tuple[Array, Array]:
        """(β, σ (nv,) that it leaves) of the least squares of the β of these blocks, with weights 1 / σ."""
        columns = self.variables.columns(free)
        noise, beta = np.maximum(self.left(self.beta), self.least), self.beta
        for _ in range(WEIGHINGS):
            rows, beta = self.rows(noise, self.beta), self.beta.copy()
            beta[columns] -= least_squares(rows[:, columns], rows[:, -1])
            noise = np.maximum(self.left(beta), self.least)
        return beta, noise


def least_squares(matrix: Array, right: Array) -> Array:
    """The least x with the least |matrix x − right|, with columns of very different units."""
    scale = np.maximum(np.linalg.norm(matrix, axis=0), 1e-300)
    return np.linalg.lstsq(matrix / scale, right, rcond=DEFICIENT)[0] / scale


class FitStep(NamedTuple):
    """The errors near a β and their noise, and the β that makes them the least."""

    problem: LinearProblem
    noise: Array
    beta: Array


def fit(variables: Variables, recordings: Sequence[RecordedErrors], held: Collection[int] = ()) -> Fit:
    """held: blocks that stay as they are in the rig. Raises RunError where the possible numbers are not found."""
    free = [k for k in range(len(variables.blocks)) if k not in held]
    start = np.asarray(variables.linear(np.zeros(variables.size)), dtype=float)
    others = nonlinear_blocks(variables, recordings, start, free)
    linear = [k for k in free if k not in others]
    columns, stepped = variables.columns(free), variables.columns(others)
    weights, steps = _weights(variables, others, start), _steps(variables, others, start)
    begin = variables.linear_of_values(variables.rig)
    begin[stepped] = start[stepped]

    def rows(problem: LinearProblem, noise: Array, beta: Array) -> Array:
        """(k, size + 1) slopes and errors at β over the noise, with the changes from the rig."""
        of_changes = np.column_stack([np.diag(np.sqrt(weights)), np.sqrt(weights) * (beta - begin)])
        return np.vstack([problem.rows(noise, beta), of_changes])

    def step(problem: LinearProblem, moved: Sequence[int], reach: float = 0.0) -> FitStep:
        _, noise = problem.without_bounds(linear)
        beta, columns = problem.beta.copy(), variables.columns(moved)
        bounds = _bounds(variables, moved, others, beta, steps, reach)
        beta[columns] += least_squares_within(rows(problem, noise, beta)[:, [*columns, -1]], bounds)
        return FitStep(problem, noise, beta)

    def near(beta: Array) -> LinearProblem:
        problem = LinearProblem.at(variables, recordings, beta)
        if not others or not linear or not problem.is_finite:
            return problem
        return LinearProblem.at(variables, recordings, step(problem, linear).beta)

    def cost(problem: LinearProblem, noise: Array) -> float:
        found = float(np.sum(rows(problem, noise, problem.beta)[:, -1] ** 2))
        return found if problem.is_finite else math.inf

    reach = FARTHEST
    last = step(near(begin), free, reach)
    for _ in range(ROUNDS):
        if (np.abs(last.beta - last.problem.beta)[stepped] <= SETTLED_CHANGE * steps[stepped]).all():
            break
        there = near(last.beta)
        gain = cost(last.problem, last.noise) - cost(there, last.noise)
        if abs(gain) < SETTLED_GAIN:
            break
        if gain > 0.0:
            reach = min(GROWS * reach, FARTHEST)
            last = step(there, free, reach)
        else:
            reach *= SHRINKS
            if reach < LEAST_REACH * FARTHEST:
                break
            last = step(last.problem, free, reach)
    problem, noise, beta = last
    values = np.asarray(variables.values_of_linear(beta), dtype=float)
    is_free = np.isin(np.arange(variables.size), columns)
    spread = covariance(problem, noise, beta, weights, is_free)
    by_beta = np.where(is_free, variables.values_slope(beta), 0.0)
    left, slope = problem.left(beta), np.where(is_free, problem.rows(noise, beta)[:, :-1], 0.0)
    clusters = int(problem.clusters.max()) + 1
    return Fit(beta, values, by_beta @ spread @ by_beta.T, clusters, noise, left, by_beta, slope)


def _weights(variables: Variables, others: Sequence[int], start: Array) -> Array:
    """(size,) of changes of β: bodies and numbers that are not linear stay near the rig where nothing moves them, and
    others where they have no effect at all."""
    found = np.zeros(variables.size)
    for k, (block, place) in enumerate(zip(variables.blocks, variables.places, strict=True)):
        if isinstance(block, BodyBlock):
            found[place] = PRIOR / beta_scales(block) ** 2
        elif k in others:
            found[place] = PRIOR / _steps(variables, [k], start)[place] ** 2
        else:
            found[place] = FAINT / block.scale**2
    return found


def _steps(variables: Variables, others: Sequence[int], start: Array) -> Array:
    """(size,) changes of the order of the values themselves of numbers that are not linear."""
    found = np.zeros(variables.size)
    for k in others:
        block, place = variables.blocks[k], variables.places[k]
        found[place] = block.scale if isinstance(block, ShiftBlock) else np.abs(start[place])
    return found


def _bounds(
    variables: Variables, free: Sequence[int], others: Sequence[int], beta: Array, steps: Array, reach: float
) -> Bounds:
    """Of changes from β: least values, bodies, and for numbers that are not linear how far these errors hold."""
    lower, upper, bodies, places, first = [], [], [], {}, 0
    for k in free:
        block, place = variables.blocks[k], variables.places[k]
        own = beta[place]
        if isinstance(block, BodyBlock):
            bodies.append((block, own, np.arange(first, first + block.size)))
        signed = isinstance(block, BodyBlock | ShiftBlock)
        least, most = np.full(block.size, -np.inf) if signed else -own, np.full(block.size, np.inf)
        if k in others:
            least, most = -reach * (steps[place] if signed else own), reach * np.maximum(steps[place], own)
        lower.append(least)
        upper.append(most)
        places[block.title] = first
        first += block.size
    at = dict(zip(variables.titles, (float(beta[place.start]) for place in variables.places), strict=True))
    twins = [(title, title.removesuffix(STATIC) + COULOMB) for title in places if title.endswith(STATIC)]
    ordered = [(places[high], places[low], at[high] - at[low]) for high, low in twins if low in places]
    return Bounds(np.concatenate(lower), np.concatenate(upper), bodies, ordered)


def nonlinear_blocks(
    variables: Variables, recordings: Sequence[RecordedErrors], beta: Array, blocks: Sequence[int]
) -> list[int]:
    """Those on which the slope of the error by them depends."""
    probed = [replace(of, samples=of.samples.first(PROBED)) for of in recordings]

    def slopes(beta: Array) -> Array:
        return np.concatenate([of(beta, everywhere=True)[1] for of in probed])

    base, found = slopes(beta), []
    for k in blocks:
        block, place = variables.blocks[k], variables.places[k]
        if isinstance(block, BodyBlock):
            continue
        changed = beta.copy()
        changed[place] = 2.0 * beta[place] + block.scale
        before, after = base[..., place], slopes(changed)[..., place]
        if block.divides or block.title == DELAY or np.abs(after - before).max() > SAME_SLOPE * np.abs(before).max():
            found.append(k)
    return found


def covariance(problem: LinearProblem, noise: Array, beta: Array, weights: Array, free: Array) -> Array:
    """(size, size) of β, 0 of those that are not free: bool (size,)."""
    normals, scores = [], []
    for rows in problem.of_clusters(noise, beta):
        slopes = rows[:, :-1][:, free]
        normals.append(slopes.T @ slopes)
        scores.append(slopes.T @ rows[:, -1])
    found = np.zeros((len(beta), len(beta)))
    found[np.ix_(free, free)] = jackknife(np.array(normals), np.array(scores), weights[free])
    return found
