"""The numbers that recordings determine, by least squares of the equation error.

The error is linear in the values β: in masses, first moments and inertias about the frames of links, in frictions,
rotor inertias and offsets. First Σ (e / σ)² has its least value over all β, possible or not, which depends on no start
and on no unit. What it leaves is σ of each joint, and the floor that any fit of these numbers has. Then the least value
over what a machine can have, see `possible`: a convex problem as well. A small weight on changes decides what the
motion leaves open, which stays as it is in the rig.

The errors are reduced to triangles once. For numbers that are not linear they are made anew around the values found
last, until nothing changes (Gauss and Newton's method).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from cosim.apps.identification.blocks import DELAY, BodyBlock, ShiftBlock, beta_scales
from cosim.apps.identification.intervals import jackknife
from cosim.apps.identification.possible import Bounds, least_squares_within
from cosim.apps.identification.recorded_errors import RecordedErrors, clusters_of, triangle, triangles_of
from cosim.apps.identification.variables import Variables
from cosim.core.types import Array

ROUNDS = 12  # of reductions
WEIGHINGS = 4  # rounds of weights of the joints
SETTLED_CHANGE = 1e-4  # relative change of numbers that are not linear in a round after which there is no other
FARTHEST = 0.7  # relative change of these in a round
QUIET = 1e-3  # least noise, as a fraction of the signal of a drive: no model is closer
PRIOR = 1e-4  # weight of a change of the order of a body itself, in units of one sample
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
    """Triangles (c, nv, m + 1, m + 1) of the errors near β₀ and the samples (c, nv) in each; see `recorded_errors`."""

    variables: Variables
    beta: Array
    triangles: Array
    sizes: Array
    least: Array

    @staticmethod
    def at(variables: Variables, recordings: Sequence[RecordedErrors], beta: Array) -> LinearProblem:
        triangles, sizes = [], []
        for recording in recordings:
            clusters = clusters_of(recording.samples, whole=len(recordings) >= MANY)
            triangles.append(triangles_of(*recording(beta), clusters))
            of_cluster = [recording.samples.moving[clusters == c].sum(axis=0) for c in range(len(triangles[-1]))]
            sizes.append(np.array(of_cluster))
        least = np.max([recording.least_noise(QUIET) for recording in recordings], axis=0)
        return LinearProblem(variables, beta, np.concatenate(triangles), np.concatenate(sizes), least)

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
        return np.sqrt(squares / np.maximum(self.sizes.sum(axis=0), 1))

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
    """The errors near β `before` and their noise, and the β that makes them the least."""

    problem: LinearProblem
    noise: Array
    before: Array
    beta: Array


def fit(variables: Variables, recordings: Sequence[RecordedErrors], held: Collection[int] = ()) -> Fit:
    """held: blocks that stay as they are in the rig. Raises RunError where the possible numbers are not found."""
    free = [k for k in range(len(variables.blocks)) if k not in held]
    start = np.asarray(variables.linear(np.zeros(variables.size)), dtype=float)
    others = nonlinear_blocks(variables, recordings, start, free)
    columns, stepped = variables.columns(free), variables.columns(others)
    weights, steps = _weights(variables, others, start), _steps(variables, others, start)

    def step(before: Array) -> FitStep:
        problem = LinearProblem.at(variables, recordings, before)
        _, noise = problem.without_bounds(free)
        rows = problem.rows(noise, before)[:, [*columns, -1]]
        beta = before.copy()
        bounds = _bounds(variables, free, others, before, steps)
        beta[columns] += least_squares_within(rows, weights[columns], bounds)
        return FitStep(problem, noise, before, beta)

    begin = variables.linear_of_values(variables.rig)
    begin[stepped] = start[stepped]
    last = step(begin)
    for _ in range(ROUNDS):
        if (np.abs(last.beta - last.before)[stepped] <= SETTLED_CHANGE * steps[stepped]).all():
            break
        last = step(last.beta)
    problem, noise, _, beta = last
    values = np.asarray(variables.values_of_linear(beta), dtype=float)
    is_free = np.isin(np.arange(variables.size), columns)
    spread = covariance(problem, noise, beta, weights, is_free)
    by_beta = np.where(is_free, variables.values_slope(beta), 0.0)
    left, slope = problem.left(beta), np.where(is_free, problem.rows(noise, beta)[:, :-1], 0.0)
    return Fit(beta, values, by_beta @ spread @ by_beta.T, len(problem.triangles), noise, left, by_beta, slope)


def _weights(variables: Variables, others: Sequence[int], start: Array) -> Array:
    """(size,) of changes of β: bodies and numbers that are not linear stay near the rig where nothing moves them."""
    found = np.zeros(variables.size)
    for k, (block, place) in enumerate(zip(variables.blocks, variables.places, strict=True)):
        if isinstance(block, BodyBlock):
            found[place] = PRIOR / beta_scales(block) ** 2
        elif k in others:
            found[place] = PRIOR / _steps(variables, [k], start)[place] ** 2
    return found


def _steps(variables: Variables, others: Sequence[int], start: Array) -> Array:
    """(size,) changes of the order of the values themselves of numbers that are not linear."""
    found = np.zeros(variables.size)
    for k in others:
        block, place = variables.blocks[k], variables.places[k]
        found[place] = block.scale if isinstance(block, ShiftBlock) else np.abs(start[place])
    return found


def _bounds(variables: Variables, free: Sequence[int], others: Sequence[int], beta: Array, steps: Array) -> Bounds:
    """Of changes from β: least values, bodies, and for numbers that are not linear how far these errors hold."""
    lower, upper, bodies, first = [], [], [], 0
    for k in free:
        block, place = variables.blocks[k], variables.places[k]
        own = beta[place]
        if isinstance(block, BodyBlock):
            bodies.append((block, own, np.arange(first, first + block.size)))
        farthest = np.full(block.size, np.inf)
        if k in others:
            farthest = FARTHEST * (steps[place] if isinstance(block, ShiftBlock) else own)
        least = np.full(block.size, -np.inf) if isinstance(block, BodyBlock | ShiftBlock) else -own
        lower.append(np.maximum(least, -farthest))
        upper.append(farthest)
        first += block.size
    return Bounds(np.concatenate(lower), np.concatenate(upper), bodies)


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
    change = np.append(beta - problem.beta, 1.0)
    normals, scores = [], []
    for of_cluster in problem.triangles:
        rows = (of_cluster / noise[:, None, None]).reshape(-1, len(change))
        slopes = rows[:, :-1][:, free]
        normals.append(slopes.T @ slopes)
        scores.append(slopes.T @ (rows @ change))
    found = np.zeros((len(beta), len(beta)))
    found[np.ix_(free, free)] = jackknife(np.array(normals), np.array(scores), weights[free])
    return found
