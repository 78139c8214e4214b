"""The numbers that a motion determines, by least squares of the equation error.

The variables x minimise Σ (e / σ)² + Σ x² (Levenberg 1944, Marquardt 1963), with exact derivatives. σ, the noise of
each joint, follows from the errors themselves. The second sum is 1 for a change of the order of the numbers themselves:
it decides only what the motion leaves open, which stays as it is in the rig. Intervals come from the linearised
problem.

The error is linear in masses, first moments and inertias about the frames of links, and in frictions. So all samples
are reduced to a triangle (QR) in these, on which the search runs; it is made anew until nothing changes, for what is
not linear.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cosim.apps.identification.equation_error import EquationError
from cosim.apps.identification.recorded_motion import MotionSamples
from cosim.apps.identification.variables import Variables
from cosim.core.types import Array

STEPS = 200  # of a search
ROUNDS = 8  # of reductions, with noises estimated anew
SETTLED_CHANGE = 1e-4  # change of the variables in a round after which there is no other
ENOUGH_DECREASE = 1e-9  # relative decrease of the sum at which a search ends
QUIET = 1e-3  # least noise, as a fraction of the signal of a drive: no model is closer
DAMPING = 1e-3  # first one, of the diagonal


@dataclass(frozen=True)
class Fit:
    """x (n,), its covariance (n, n), and the noise (nv,) of each joint, in the unit of the signals of drives."""

    x: Array
    covariance: Array
    noise: Array


@dataclass(frozen=True)
class SampledError:
    """The equation error of samples as a function of variables, 0 where a joint turns round."""

    variables: Variables
    equation: EquationError
    samples: MotionSamples

    def __call__(self, x: Array) -> tuple[Array, Array]:
        """(e (k, nv), ∂e/∂x (k, nv, size))."""
        variables, moving = self.variables, self.samples.moving
        values, slope = np.asarray(variables.values(x), dtype=float), variables.slope(x)
        delay = float(values[-1]) if variables.delayed else 0.0
        numbers = values[: len(values) - variables.delayed]
        found, by_numbers, by_delay = self.equation.evaluate(numbers, self.samples, delay)
        by_values = np.concatenate([by_numbers, by_delay[..., None]], axis=2) if variables.delayed else by_numbers
        found, by_values = self.samples.smoothed(found), self.samples.smoothed(by_values)
        return np.where(moving, found, 0.0), np.where(moving[..., None], by_values @ slope, 0.0)

    def least_noise(self) -> Array:
        """(nv,)"""
        return QUIET * np.maximum(np.sqrt(np.mean(self.samples.drive**2, axis=0)), 1e-12)

    def noise(self, found: Array, least: Array) -> Array:
        """(nv,), of errors that are left."""
        rows = np.maximum(self.samples.moving.sum(axis=0) - self.variables.size / found.shape[1], 1.0)
        return np.maximum(np.sqrt(np.sum(found**2, axis=0) / rows), least)

    def correlated(self, found: Array) -> Array:
        """(nv,) by how much the noise counts more than independent noise of that size: neighbouring errors are alike
        where the model is wrong. √((1 + ρ) / (1 − ρ)) with the correlation ρ of neighbours."""
        both = np.where(self.samples.moving[1:] & self.samples.moving[:-1], found[1:] * found[:-1], 0.0)
        pairs = np.maximum((self.samples.moving[1:] & self.samples.moving[:-1]).sum(axis=0), 1)
        variance = np.sum(found**2, axis=0) / np.maximum(self.samples.moving.sum(axis=0), 1)
        rho = np.clip(both.sum(axis=0) / pairs / np.maximum(variance, 1e-300), 0.0, 0.95)
        return np.sqrt((1.0 + rho) / (1.0 - rho))


@dataclass(frozen=True)
class Reduced:
    """The errors over their noise near x₀, up to a rotation: a triangle R times (β(x) − β(x₀), 1), β: see
    `VariableBlock.linear`."""

    variables: Variables
    triangle: Array
    beta: Array

    @staticmethod
    def at(error: SampledError, x: Array, noise: Array) -> Reduced:
        found, slope = error(x)
        by_beta = slope @ np.linalg.inv(error.variables.linear_slope(x))
        rows = np.concatenate([by_beta, found[..., None]], axis=2) / noise[:, None]
        flat = rows.reshape(-1, rows.shape[2])
        scale = np.maximum(np.linalg.norm(flat, axis=0), 1e-300)
        triangle = np.linalg.qr(flat / scale, mode="r") * scale
        return Reduced(error.variables, triangle, np.asarray(error.variables.linear(x), dtype=float))

    def __call__(self, x: Array) -> tuple[Array, Array]:
        """(errors and x below them, their derivatives)."""
        change = np.asarray(self.variables.linear(x), dtype=float) - self.beta
        errors = self.triangle @ np.append(change, 1.0)
        slope = self.triangle[:, :-1] @ self.variables.linear_slope(x)
        return np.concatenate([errors, x]), np.concatenate([slope, np.eye(x.size)])

    def covariance(self, x: Array, prior: float = 1.0) -> Array:
        """(size, size) of x; prior: the factor of Σ x²."""
        slope = self(x)[1][: -x.size]
        return np.linalg.inv(slope.T @ slope + prior * np.eye(x.size))

    def best_linear_change(self) -> Array:
        """Of β, (size,)."""
        matrix, right = self.triangle[:, :-1], -self.triangle[:, -1]
        scale = np.maximum(np.linalg.norm(matrix, axis=0), 1e-300)
        return np.linalg.lstsq(matrix / scale, right, rcond=1e-6)[0] / scale


def noise_at_start(error: SampledError) -> Array:
    """(nv,) of the errors that the best linear change of the numbers leaves."""
    x = np.zeros(error.variables.size)
    found, slope = error(x)
    scale = np.maximum(np.sqrt(np.mean(found**2, axis=0)), error.least_noise())
    change = Reduced.at(error, x, scale).best_linear_change()
    left = found + slope @ np.linalg.inv(error.variables.linear_slope(x)) @ change
    return error.noise(left, error.least_noise())


def fit(error: SampledError) -> Fit:
    """From the numbers of the rig on."""
    x, noise, least = np.zeros(error.variables.size), noise_at_start(error), error.least_noise()
    for _ in range(ROUNDS):
        before, x = x, search(Reduced.at(error, x, noise), x)
        noise = error.noise(error(x)[0], least)
        if np.abs(x - before).max() < SETTLED_CHANGE:
            break
    counted = noise * error.correlated(error(x)[0])
    return Fit(x, Reduced.at(error, x, counted).covariance(x), noise)


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
